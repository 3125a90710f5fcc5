"""Networks in eight bits: Paddle's `quantization`, and saved networks made smaller and faster."""

from . import observers, quanters
from .base import BaseObserver, BaseQuanter
from .config import QuantConfig
from .factory import ObserverFactory, QuanterFactory, quanter
from .network import quantize_network
from .passes import PTQ, QAT

__all__ = [
    "PTQ",
    "QAT",
    "BaseObserver",
    "BaseQuanter",
    "ObserverFactory",
    "QuantConfig",
    "QuanterFactory",
    "observers",
    "quanter",
    "quanters",
    "quantize_network",
]
