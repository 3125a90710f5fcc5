"""`jit.load`: a saved network as a layer."""

from __future__ import annotations

import os

from .. import _core
from ..nn import Layer


class TranslatedLayer(Layer):
    """A network that a file describes. It runs, and it can be trained further.

    `jit.load` makes one; its parameters are those of the file, `param_0`, `param_1` …
    """

    def __init__(self, graph=None):
        super().__init__()
        if graph is None:
            raise TypeError("(InvalidType) TranslatedLayer: jit.load(path) makes one.")
        from ..nn.initializer import Constant

        self.__dict__["_graph"] = graph
        places = []
        kept = 0
        for name, tensor, shared in graph.weights():
            if not shared:
                places.append(tensor)
                continue
            if str(tensor.dtype.name) in ("float32", "float64", "float16", "bfloat16"):
                made = self.create_parameter(tensor.shape, dtype=tensor.dtype, default_initializer=Constant(0.0))
                made.set_value(tensor)
                made.stop_gradient = tensor.stop_gradient
                made.name = name
                self.add_parameter(f"param_{kept}", made)
            else:
                made = tensor
                self.register_buffer(f"param_{kept}", made)
            places.append(made)
            kept += 1
        self.__dict__["_places"] = places
        self.eval()

    def forward(self, *inputs):
        """What the saved network computes."""
        graph = self._graph
        graph.set_training(self.training)
        given = [x if isinstance(x, _core.Tensor) else _core.to_tensor_py(x) for x in inputs]
        results = graph.run(given, self._places)
        return results[0] if len(results) == 1 else results

    def program(self, method_name: str = "forward"):
        """The graph that runs."""
        return self._graph

    def _input_spec(self, method_name: str = "forward"):
        from ..static import InputSpec

        return [InputSpec(shape, dtype, name) for name, shape, dtype in self._graph.inputs()]

    def _output_spec(self, method_name: str = "forward"):
        from ..static import InputSpec

        return [InputSpec(shape, dtype, f"output_{i}") for i, (shape, dtype) in enumerate(self._graph.outputs())]


def load(path, **configs) -> TranslatedLayer:
    """Reads what `jit.save` wrote, here or in Paddle 2 or 3, as a layer in eval mode.

    `model_filename` and `params_filename` name files in a folder, as older programs do.
    """
    unknown = set(configs) - {"model_filename", "params_filename", "keep_name_table"}
    if unknown:
        raise ValueError(f"(InvalidArgument) jit.load: there is no config {sorted(unknown)[0]!r}.")
    path = os.fspath(path)
    model, params = configs.get("model_filename"), configs.get("params_filename")
    if model or os.path.isdir(path):
        program = os.path.join(path, model or "__model__")
        return TranslatedLayer(_core.Graph.load_files(program, os.path.join(path, params or "__params__")))
    for end in (".pdmodel", ".json", ".pdiparams"):
        path = path.removesuffix(end)
    if not any(os.path.exists(path + end) for end in (".pdmodel", ".json")):
        raise ValueError(
            f"(NotFound) jit.load: The ``path`` ({path}) to load model not exists. Hint: there must be {path}.pdmodel "
            f"or {path}.json."
        )
    return TranslatedLayer(_core.Graph.load(path))
