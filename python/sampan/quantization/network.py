"""Saved networks made smaller and faster, as `sampan quantize` does it."""

from __future__ import annotations

import os

from .. import _core

_VALUES = {"minmax": 0.0, "percentile": 99.99, "entropy": 0.0, "average": 0.9}


def _graph(network, input_spec):
    from ..jit.saving import traced

    if not isinstance(network, (str, os.PathLike)):
        return traced(network, input_spec, None, "quantize_network")[0]
    path = os.fspath(network)
    stem, ending = os.path.splitext(path)
    if ending == ".onnx":
        return _core.OnnxModel.load(path).graph()
    if ending in (".pdmodel", ".json"):
        return _core.Graph.load_files(path, stem + ".pdiparams")
    return _core.Graph.load(path)


def quantize_network(network, path, mode="static", data=None, input_spec=None, method="minmax", value=None, opset_version=17):
    """Writes a network whose weights, or all that its layers compute with, are smaller.

    `network` is a layer (with `input_spec`, as for `jit.save`) or the path of a saved one: without an ending, `.pdmodel`,
    `.json` or `.onnx`. `path` is where it goes: without an ending for Paddle's files, or `.onnx`. `mode` is

    * `"static"`: weights and what flows between layers are int8; ranges are found with `data`, an iterable of batches, each a
      tensor or array or a list of them. `method` chooses a range: `"minmax"`, `"percentile"` (`value` 99.99), `"entropy"`, or
      `"average"` of the batches (`value` 0.9);
    * `"dynamic"`: the same, with ranges that each sample decides when it is there;
    * `"int8"`, `"fp16"`, `"bf16"`: weights alone.

    >>> import sampan, tempfile
    >>> net = sampan.nn.Sequential(sampan.nn.Linear(64, 64), sampan.nn.ReLU(), sampan.nn.Linear(64, 8))
    >>> spec = [sampan.static.InputSpec([None, 64], "float32", "x")]
    >>> x = sampan.randn([16, 64])
    >>> to = tempfile.mkdtemp() + "/small"
    >>> sampan.quantization.quantize_network(net, to, data=[x], input_spec=spec)
    (2, 2)
    >>> bool((sampan.jit.load(to)(x) - net(x)).abs().max() < 0.1)
    True
    """
    weights = {"int8": "int8", "fp16": "float16", "float16": "float16", "bf16": "bfloat16", "bfloat16": "bfloat16"}
    if mode not in ("static", "dynamic", *weights):
        raise ValueError(f"(InvalidArgument) quantize_network: there is no mode {mode!r}; known are static, dynamic, int8, fp16, bf16.")
    if (mode == "static") != (data is not None):
        raise ValueError(
            "(InvalidArgument) quantize_network: the mode 'static' needs calibration data, and no other takes any. Hint: pass "
            "data=[x], a list or loader of batches."
        )
    graph = _graph(network, input_spec)
    if mode == "dynamic":
        small = graph.quantize_dynamic()
    elif mode in weights:
        small = graph.quantize_weights(weights[mode])
    else:
        calibration = _core.Calibration(graph, method, _VALUES.get(method, 0.0) if value is None else value)
        count = len(graph.inputs())
        for batch in data:
            batch = list(batch) if isinstance(batch, (list, tuple)) else [batch]
            tensors = [b if isinstance(b, _core.Tensor) else _tensor(b) for b in batch[:count]]
            calibration.feed(tensors)
        small = calibration.finish()
    path = os.fspath(path)
    if path.endswith(".onnx"):
        small.save_onnx(path, opset_version)
    else:
        small.save(path.removesuffix(".pdmodel").removesuffix(".json"), [])
    return small.quantized()[:2]


def _tensor(value):
    from .. import to_tensor

    return to_tensor(value)
