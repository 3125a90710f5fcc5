"""What is done to a picture between the file and the network: Paddle's `vision.transforms`.

Pictures are Pillow's, NumPy arrays `[H, W, C]` or tensors `[C, H, W]`, and stay what they are. Bytes are computed as
Pillow does it, to the same bits, in arrays too, for which Paddle asks OpenCV. Random numbers come from the package's
generator, which `sampan.seed` starts anew.
"""

from . import functional, transforms
from .functional import *  # noqa: F403
from .transforms import *  # noqa: F403

__all__ = [*transforms.__all__, *(name for name in functional.__all__ if name != "adjust_saturation")]
del globals()["adjust_saturation"]
