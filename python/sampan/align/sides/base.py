"""What the recorder asks of a library."""

from __future__ import annotations

import contextlib
from abc import ABC, abstractmethod

import numpy as np

from .._tree import plain

# Layers of the libraries that run others, which are looked into.
CONTAINERS = set(
    "Sequential ModuleList ModuleDict LayerList LayerDict Transformer TransformerEncoder TransformerDecoder "
    "TransformerEncoderLayer TransformerDecoderLayer Layer Module DataParallel ParameterList ParameterDict".split()
)


# Layers with others in them that are one thing all the same.
COMPOSITES = set("MultiheadAttention MultiHeadAttention LSTM GRU SimpleRNN RNN BiRNN".split())


class Side(ABC):
    """A library: how its models are walked, watched and run again."""

    name = ""
    version = ""

    # ---- models
    @abstractmethod
    def layers(self, model) -> list:
        """All layers with their names, the model itself first, under an empty name."""

    @abstractmethod
    def parameters(self, layer) -> list:
        """The layer's own parameters and buffers: (name, tensor, is a buffer, is trained)."""

    @abstractmethod
    def is_builtin(self, layer) -> bool:
        """Does the library itself bring this class?"""

    def is_leaf(self, layer) -> bool:
        """Is the layer one thing, which is not looked into?"""
        name = type(layer).__name__
        if not self.is_builtin(layer) or name in CONTAINERS:
            return False
        return name in COMPOSITES or not self.has_layers(layer)

    def has_layers(self, layer) -> bool:
        """Are there layers in it?"""
        return bool(getattr(layer, "_sub_layers", None) or getattr(layer, "_modules", None))

    def config(self, layer) -> dict:
        """The settings of a layer."""
        found = {k: plain(v) for k, v in vars(layer).items() if not k.startswith("_") and k != "training"}
        return {k: v for k, v in found.items() if v is not None or getattr(layer, k, 0) is None}

    # ---- tensors
    @abstractmethod
    def is_tensor(self, value) -> bool:
        """Is it a tensor of the library?"""

    @abstractmethod
    def array(self, tensor) -> np.ndarray:
        """A copy of the values; bfloat16, which NumPy lacks, as float32."""

    @abstractmethod
    def tensor(self, array, like=None):
        """A tensor of an array."""

    def identity(self, tensor) -> tuple:
        """What tells tensors apart, and their versions."""
        return id(tensor), getattr(tensor, "inplace_version", 0)

    @abstractmethod
    def differentiable(self, tensor) -> bool:
        """Does a gradient flow to or through it?"""

    @abstractmethod
    def leaf(self, tensor):
        """A copy without history, which asks for a gradient where it can have one."""

    @abstractmethod
    def gradients(self, outputs, inputs, upstream) -> list:
        """Gradients of outputs by inputs, None where there is none."""

    @abstractmethod
    def on_gradient(self, tensor, hear) -> None:
        """Calls `hear(gradient)` when it is known."""

    def gradient(self, parameter):
        """The gradient of a parameter, or None."""
        return parameter.grad

    def taken(self, gradient):
        """A gradient that later passes do not change; None stays None."""
        return None if gradient is None else gradient.clone()

    @abstractmethod
    def random_state(self):
        """The state of the library's random numbers."""

    @abstractmethod
    def set_random_state(self, state) -> None:
        """Goes back to a state of the random numbers."""

    # ---- watching
    @abstractmethod
    def hook(self, layer, before, after) -> list:
        """Calls `before(layer, args, kwargs)` and `after(layer, args, kwargs, output)`; gives what removes that."""

    def functions(self, hear):
        """A context in which `hear(name, arguments, outputs, again)` learns of calls between the layers."""
        return contextlib.nullcontext()

    @abstractmethod
    def tensor_class(self):
        """The class whose `backward` is watched."""

    def no_fast_paths(self):
        """A context in which layers call their inner layers."""
        return contextlib.nullcontext()

    # ---- training
    @abstractmethod
    def optimizer(self, optimizer, names) -> dict:
        """Class, settings and groups of an optimizer; `names` tells parameters by identity."""

    @abstractmethod
    def steps(self, optimizer, before, after):
        """A context in which `before()` and `after()` are called around each step of an optimizer."""

    def learning_rate(self, optimizer) -> float:
        return float(optimizer.get_lr())

    @abstractmethod
    def set_value(self, parameter, array) -> None:
        """Writes values into a parameter or buffer."""
