"""ONNX Runtime: a file whose every intermediate result is asked for."""

from __future__ import annotations

import json

import numpy as np

from ... import _core
from .._tree import plain

_DTYPES = {"tensor(float)": "float32", "tensor(double)": "float64", "tensor(int64)": "int64", "tensor(int32)": "int32"}


def _need(name):
    try:
        return __import__(name)
    except ImportError:
        raise ImportError(f"(Unavailable) align: an .onnx file as a side needs the package {name}. Hint: pip install {name}.") from None


def _attribute(onnx, attribute):
    value = onnx.helper.get_attribute_value(attribute)
    if isinstance(value, bytes):
        value = value.decode("utf-8", "replace")
    return plain(list(value) if hasattr(value, "__iter__") and not isinstance(value, str) else value)


# ONNX's names of settings, in the words of PyTorch.
_WORDS = {
    "kernel_shape": "kernel_size",
    "strides": "stride",
    "dilations": "dilation",
    "group": "groups",
    "epsilon": "eps",
    "axis": "dim",
    "alpha": "negative_slope",
}


def _config(onnx, node) -> dict:
    found = {a.name: _attribute(onnx, a) for a in node.attribute if a.type not in (4, 5, 9, 10)}
    config = {_WORDS.get(k, k): v for k, v in found.items()}
    pads = config.pop("pads", None)
    if pads is not None:
        half = len(pads) // 2
        config["padding"] = pads[:half] if pads[:half] == pads[half:] else pads
    if node.op_type == "AveragePool":
        config["count_include_pad"] = bool(config.get("count_include_pad", 0))
    if "ceil_mode" in config:
        config["ceil_mode"] = bool(config["ceil_mode"])
    if node.op_type == "BatchNormalization":
        config["momentum"] = 1.0 - config.get("momentum", 0.9)
        config["training"] = bool(config.pop("training_mode", 0))
    return config


def record_file(path, inputs):
    """Runs an .onnx file on arrays, and gives the recording: every node's output, weights and structure."""
    from .._recording import Recording

    onnx, runtime = _need("onnx"), _need("onnxruntime")
    try:
        model = onnx.load(path)
    except Exception as error:
        raise ValueError(f"(InvalidArgument) align: {path} is no ONNX model that can be read: {error}") from None
    graph = model.graph
    weights = {w.name: onnx.numpy_helper.to_array(w) for w in graph.initializer}
    wanted = [name for node in graph.node for name in node.output if name]
    known = {o.name for o in graph.output}
    graph.output.extend(onnx.ValueInfoProto(name=name) for name in wanted if name not in known)
    options = runtime.SessionOptions()
    # Fused nodes would have other results, or none.
    options.graph_optimization_level = runtime.GraphOptimizationLevel.ORT_DISABLE_ALL
    session = runtime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    arrays = inputs if isinstance(inputs, dict) else dict(zip(names, inputs if isinstance(inputs, (tuple, list)) else [inputs]))
    arrays = {n: np.asarray(arrays[n], _DTYPES.get(i.type)) for n, i in zip(names, session.get_inputs()) if n in arrays}
    asked = [o.name for o in session.get_outputs()]
    results = dict(zip(asked, session.run(asked, arrays)))
    sections = {"inputs": {}, "forward": {}, "parameters": {}}
    keys = {}
    for i, name in enumerate(names):
        keys[name] = f"input{i}"
        sections["inputs"][f"input{i}"] = sections["forward"][f"input{i}"] = arrays[name]
    layers, calls, used = [{"name": "", "class": "Graph"}], [], {}
    for node in graph.node:
        key = (node.name or node.op_type).strip("/").replace("/", ".") or node.op_type
        used[key] = used.get(key, 0) + 1
        key = key if used[key] == 1 else f"{key}@{used[key]}"
        own = [n for n in node.input if n in weights]
        roles = ["weight", "bias", "running_mean", "running_var"]
        described = []
        for n, role in zip(own, roles):
            value = weights[n]
            if node.op_type == "Gemm" and role == "weight" and not any(a.name == "transB" and a.i for a in node.attribute):
                value = value.T
            full = f"{key}.{role}"
            described.append({"name": full, "shape": list(value.shape), "dtype": str(value.dtype), "buffer": "running" in role})
            sections["parameters"][full] = np.ascontiguousarray(value)
        if described:
            layers.append({"name": key, "class": node.op_type, "config": _config(onnx, node), "parameters": described})
        outputs = []
        for i, name in enumerate(n for n in node.output if n):
            keys[name] = key if i == 0 else f"{key}:{i}"
            if isinstance(results.get(name), np.ndarray):
                sections["forward"][keys[name]] = results[name]
                outputs.append(keys[name])
        call = {"key": key, "layer": key if described else "", "op": node.op_type, "function": not described}
        call |= {"config": _config(onnx, node), "inputs": [keys[n] for n in node.input if n in keys], "outputs": outputs}
        calls.append(call)
    ends = [keys[name] for name in known if name in keys]
    calls.append({"key": "(output)", "layer": "", "op": "output", "function": True, "inputs": ends, "outputs": ends})
    structure = {"format": 1, "side": "onnxruntime", "version": runtime.__version__, "layers": layers, "calls": calls}
    return Recording(_core.Recording(json.dumps(structure), sections, True))


def align_file(reference, candidate, inputs, mapping, checks, tolerance):
    """Compares an .onnx file with a model, or two files."""
    from .._align import _once
    from .._report import compare

    sides = [record_file(m, inputs) if isinstance(m, str) else _once(m, inputs, None, None, None).recording for m in (reference, candidate)]
    return compare(*sides, mapping=mapping, checks=checks, tolerance=tolerance)
