"""What can watch and steer `Model.fit`, `evaluate` and `predict`."""

from .base import Callback, CallbackList, config_callbacks
from .checkpoint import EarlyStopping, ModelCheckpoint
from .progress import ProgBarLogger
from .schedule import LRScheduler, ReduceLROnPlateau
from .writers import VisualDL, WandbCallback
