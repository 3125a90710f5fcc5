"""Modules that hold the built-in layers by family, as Paddle's sources do: `nn.layer.conv`, `nn.layer.loss` …"""

from __future__ import annotations

import sys
import types

_FAMILIES = {
    "activation": "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Maxout Mish "
    "PReLU RReLU ReLU ReLU6 SELU Sigmoid Silu Softmax Softmax2D Softplus Softshrink Softsign Swish Tanh Tanhshrink "
    "ThresholdedReLU",
    "distance": "PairwiseDistance",
    "vision": "ChannelShuffle PixelShuffle PixelUnshuffle",
}


def _family(name: str) -> str:
    for family, names in _FAMILIES.items():
        if name in names.split():
            return family
    for family, ends in {"loss": "Loss WithLoss", "conv": "Conv1 Conv2 Conv3", "pooling": "Pool"}.items():
        if any(part in name for part in ends.split()):
            return family
    return "norm" if "Norm" in name else "common"


def _make(classes: dict[str, type]) -> dict[str, types.ModuleType]:
    made: dict[str, types.ModuleType] = {}
    for name, cls in classes.items():
        family = _family(name)
        path = f"{__package__}.{family}"
        if family not in made:
            made[family] = sys.modules[path] = types.ModuleType(path, f"Built-in layers: {family}.")
        setattr(made[family], name, cls)
    return made


def publish(classes: dict[str, type]) -> None:
    """Makes the modules."""
    globals().update(_make(classes))
