"""Pictures: Paddle's `vision`, with models, transforms, datasets and ops."""

from . import image, models, ops, transforms
from .image import get_image_backend, image_load, set_image_backend
from .models import *  # noqa: F403
from .transforms import *  # noqa: F403

__all__ = ["get_image_backend", "image_load", "set_image_backend"]
