"""A backend of ONNX: what `onnx.backend.test` and its like call. `model` is an `onnx.ModelProto`.

    import onnx.backend.test, sampan.onnx.backend as backend
    tests = onnx.backend.test.BackendTest(backend, __name__)
"""

from __future__ import annotations

import numpy

from .. import _core


def _array(value):
    if value is None:
        return None
    if isinstance(value, (list, tuple)):
        return [_array(v) for v in value]
    if value.dtype.name == "bfloat16":
        # NumPy lacks it: such arrays hold the bits.
        return value.view("int16").numpy().view(numpy.uint16)
    return value.numpy()


def _tensor(value, dtype=None):
    if value is None or isinstance(value, _core.Tensor):
        return value
    if isinstance(value, (list, tuple)) and (not value or isinstance(value[0], numpy.ndarray)):
        return [_tensor(v) for v in value]
    array = numpy.asarray(value)
    if dtype is not None and dtype.name == "bfloat16" and array.dtype.itemsize == 2:
        return _core.to_tensor_py(numpy.ascontiguousarray(array).view(numpy.int16)).view("bfloat16")
    return _core.to_tensor_py(array)


class SampanRep:
    """A model that is ready to run."""

    def __init__(self, model):
        self._model = model

    def run(self, inputs, **kwargs):
        """What the model gives, as arrays, for arrays in order or by name."""
        known = self._model.inputs()
        if isinstance(inputs, dict):
            inputs = [inputs[name] for name, _, _ in known]
        elif not isinstance(inputs, (list, tuple)):
            inputs = [inputs]
        given = [_tensor(x, known[i][2] if i < len(known) else None) for i, x in enumerate(inputs)]
        return tuple(_array(y) for y in self._model.run(given))


def supports_device(device: str) -> bool:
    """Is there such a device? The CPU is."""
    return device.split(":")[0] == "CPU"


def is_compatible(model, device: str = "CPU", **kwargs) -> bool:
    """Can the model be run? It is tried when it is prepared."""
    return supports_device(device)


def prepare(model, device: str = "CPU", **kwargs) -> SampanRep:
    """Reads a model."""
    if not supports_device(device):
        raise ValueError(f"(InvalidArgument) onnx.backend: there is no device {device!r}; 'CPU' is one.")
    return SampanRep(_core.OnnxModel.from_bytes(model.SerializeToString()))


def run_model(model, inputs, device: str = "CPU", **kwargs):
    """Runs a model once."""
    return prepare(model, device, **kwargs).run(inputs)


def run_node(node, inputs, device: str = "CPU", outputs_info=None, **kwargs):
    """Runs one node, an `onnx.NodeProto`."""
    from onnx import helper

    names = [name for name in node.input if name]
    types = {name: numpy.asarray(x).dtype for name, x in zip(names, inputs)}
    infos = [helper.make_tensor_value_info(n, helper.np_dtype_to_tensor_dtype(types[n]), None) for n in names]
    empty = [helper.make_empty_tensor_value_info(n) for n in node.output if n]
    opset = kwargs.get("opset_version")
    imports = {"opset_imports": [helper.make_opsetid("", opset)]} if opset else {}
    graph = helper.make_graph([node], "node", infos, empty)
    return run_model(helper.make_model(graph, **imports), inputs, device)
