"""The high-level API: a network with optimizer, loss and metrics, trained in one call."""

from . import callbacks, progressbar
from .dynamic_flops import flops
from .model import Model
from .model_summary import summary

__all__ = ["Model", "flops", "summary"]
