"""Paddle's `incubate`: what may still change."""

from __future__ import annotations

from . import autograd
