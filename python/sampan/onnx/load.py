"""`onnx.load`: an ONNX file as a layer."""

from __future__ import annotations

import os

from .. import _core
from ..jit.translated import TranslatedLayer
from ..nn import Layer

_FLOATS = ("float32", "float64", "float16", "bfloat16")


class OnnxLayer(Layer):
    """A model that runs node by node: what it does depends on values, so that no graph of calls says it."""

    def __init__(self, model):
        super().__init__()
        self.__dict__["_model"] = model
        places = []
        for at, (name, tensor) in enumerate(model.weights()):
            if tensor.dtype.name in _FLOATS and not tensor.stop_gradient:
                from ..nn.initializer import Constant

                made = self.create_parameter(tensor.shape, dtype=tensor.dtype, default_initializer=Constant(0.0))
                made.set_value(tensor)
                made.name = name
                self.add_parameter(f"param_{at}", made)
            else:
                made = tensor
                self.register_buffer(f"param_{at}", made)
            places.append(made)
        self.__dict__["_places"] = places
        self.eval()

    def forward(self, *inputs):
        """What the model computes; sequences are lists, and None an optional that holds nothing."""
        given = [x if x is None or isinstance(x, (list, _core.Tensor)) else _core.to_tensor_py(x) for x in inputs]
        results = self._model.run(given, self._places)
        return results[0] if len(results) == 1 else results


def load(path, memory_limit: int | None = None) -> Layer:
    """Reads an ONNX file as a layer in eval mode, with the weights that lie in its folder.

    The layer runs, and can be traced, saved by `jit.save`, exported and trained further. A model with loops or branches
    that depend on values runs and trains, node by node, and cannot be saved in another format; `memory_limit` is how many
    bytes its values may take at once, without it half of the machine's memory.
    """
    if isinstance(path, bytes):
        model = _core.OnnxModel.from_bytes(path, memory_limit)
    else:
        model = _core.OnnxModel.load(os.fspath(path), memory_limit)
    try:
        graph = model.graph()
    except (RuntimeError, ValueError, NotImplementedError, TypeError):
        return OnnxLayer(model)
    return TranslatedLayer(graph)
