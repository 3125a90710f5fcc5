"""Mixed precision: Paddle's `amp`, on the CPU as well."""

from __future__ import annotations

from . import debugging
from .auto_cast import (
    amp_guard,
    auto_cast,
    autocast,
    get_autocast_cpu_dtype,
    get_autocast_dtype,
    get_autocast_gpu_dtype,
    is_autocast_enabled,
)
from .decorate import amp_decorate, decorate
from .grad_scaler import AmpScaler, GradScaler

__all__ = [
    "GradScaler",
    "auto_cast",
    "decorate",
    "get_autocast_cpu_dtype",
    "get_autocast_dtype",
    "get_autocast_gpu_dtype",
    "is_autocast_enabled",
    "is_bfloat16_supported",
    "is_float16_supported",
]


def is_float16_supported(device: str | None = None) -> bool:
    """Can float16 be computed with? Everywhere."""
    return True


def is_bfloat16_supported(device: str | None = None) -> bool:
    """Can bfloat16 be computed with? Everywhere."""
    return True
