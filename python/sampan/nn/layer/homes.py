"""Modules that hold the built-in layers by family, as Paddle's sources do: `nn.layer.conv`, `nn.layer.loss` …"""

from __future__ import annotations

import sys
import types
from importlib.machinery import ModuleSpec
from importlib.util import module_from_spec

_FAMILIES = {
    "activation": "CELU ELU GELU GLU Hardshrink Hardsigmoid Hardswish Hardtanh LeakyReLU LogSigmoid LogSoftmax Maxout "
    "Mish PReLU RReLU ReLU ReLU6 SELU Sigmoid Silu Softmax Softmax2D Softplus Softshrink Softsign Swish Tanh "
    "Tanhshrink ThresholdedReLU",
    "distance": "PairwiseDistance",
    "vision": "ChannelShuffle PixelShuffle PixelUnshuffle",
}


def _family(name: str) -> str:
    for family, names in _FAMILIES.items():
        if name in names.split():
            return family
    for family, ends in {"loss": "Loss WithLoss", "conv": "Conv1 Conv2 Conv3 ConvNd", "pooling": "Pool"}.items():
        if any(part in name for part in ends.split()):
            return family
    return "norm" if "Norm" in name else "common"


def publish(classes: dict[str, type]) -> dict[str, types.ModuleType]:
    """Makes the modules, which can then be imported from."""
    made: dict[str, types.ModuleType] = {}
    for name, cls in classes.items():
        family = _family(name)
        path = f"{__package__}.{family}"
        if family not in made:
            # With a spec it can be imported by another name as well.
            made[family] = sys.modules[path] = module_from_spec(ModuleSpec(path, None))
            made[family].__doc__ = f"Built-in layers: {family}."
        setattr(made[family], name, cls)
    return made
