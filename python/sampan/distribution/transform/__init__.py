"""Functions with an inverse and a known change of volume, which turn one distribution into another."""

from .base import Transform, Type
from .compound import ChainTransform, IndependentTransform, ReshapeTransform, StackTransform
from .elementwise import (
    AbsTransform,
    AffineTransform,
    ExpTransform,
    PowerTransform,
    SigmoidTransform,
    TanhTransform,
)
from .simplex import SoftmaxTransform, StickBreakingTransform

__all__ = [
    "Transform",
    "AbsTransform",
    "AffineTransform",
    "ChainTransform",
    "ExpTransform",
    "IndependentTransform",
    "PowerTransform",
    "ReshapeTransform",
    "SigmoidTransform",
    "SoftmaxTransform",
    "StackTransform",
    "StickBreakingTransform",
    "TanhTransform",
]
