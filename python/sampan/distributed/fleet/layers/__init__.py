"""Layers of `fleet`, where Paddle's programs look for them."""

from . import mpu

__all__ = ["mpu"]
