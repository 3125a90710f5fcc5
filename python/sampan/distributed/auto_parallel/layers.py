"""Built-in layers with distributed inputs or parameters."""

from __future__ import annotations

import re

from ... import _core
from .calls import _mapped, mesh_of
from .placement import Replicate
from .tensor import OnMesh, moved, on, wrap

# Layers that are one op: what they were told are its other arguments.
_ONE_OP = frozenset(
    "Linear Embedding LayerNorm Dropout ReLU GELU Sigmoid Tanh Silu Swish ELU LeakyReLU Hardswish ReLU6 Mish Softplus Softmax "
    "LogSoftmax Flatten Conv1D Conv2D Conv3D MaxPool2D AvgPool2D AdaptiveAvgPool2D CrossEntropyLoss MSELoss L1Loss SmoothL1Loss "
    "BCEWithLogitsLoss".split()
)
_NAMES = {
    "BCEWithLogitsLoss": "binary_cross_entropy_with_logits",
    "CrossEntropyLoss": "cross_entropy",
    "LeakyReLU": "leaky_relu",
    "ReLU6": "relu6",
}


def _op_of(kind: str):
    plain = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", kind).lower()
    spelled = {"layernorm": "layer_norm", "l1loss": "l1_loss", "mseloss": "mse_loss", "smooth_l1loss": "smooth_l1_loss"}
    spelled.update({"logsoftmax": "log_softmax", "maxpool2d": "max_pool2d", "max_pool2d": "max_pool2d"})
    spelled.update(
        {"avgpool2d": "avg_pool2d", "adaptiveavgpool2d": "adaptive_avg_pool2d", "smoothl1loss": "smooth_l1_loss"}
    )
    return _core.op(_NAMES.get(kind) or spelled.get(plain.replace("_", ""), plain))


def _as_one_op(layer, args):
    """Calls the op that a layer is."""
    op, kind, settings = _op_of(type(layer).__name__), type(layer).__name__, layer._settings
    if settings.get("padding_mode", "zeros") != "zeros":
        return NotImplemented
    told = dict(zip(op._params, args))
    for name in op._params[len(args) :]:
        if layer._parameters.get(name) is not None:
            told[name] = layer._parameters[name]
        elif name == "training":
            told[name] = layer.training
        elif name in settings and name not in ("weight", "bias") and settings[name] is not None:
            told[name] = settings[name]
    if kind == "LayerNorm" and isinstance(told["normalized_shape"], int):
        told["normalized_shape"] = [told["normalized_shape"]]
    if kind == "CrossEntropyLoss" and settings.get("weight") is not None:
        told["weight"] = settings["weight"]
    return op(**told)


def _whole(layer, forward, mesh, args, kwargs):
    """Any other layer, with whole parameters and inputs, the same in every process."""
    cut = [p for p in layer.parameters() if isinstance(p, OnMesh)]
    parts = [_core._plain(p) for p in cut]
    try:
        for p, part in zip(cut, parts):
            p._replace(
                _core._plain(moved(wrap(part, p.process_mesh, p.placements, p.shape), [Replicate()] * mesh.ndim))
            )

        def whole(t):
            return _core._plain(moved(on(t, mesh), [Replicate()] * mesh.ndim))

        found = forward(*_mapped(list(args), whole), **{key: _mapped(value, whole) for key, value in kwargs.items()})
    finally:
        for p, part in zip(cut, parts):
            p._replace(part)
    return _mapped(found, lambda t: wrap(t, mesh, [Replicate()] * mesh.ndim, t.shape))


def forward_of(layer, forward):
    """What a built-in layer computes; distributed if an input or a parameter is."""

    def call(*args, **kwargs):
        mesh = mesh_of([*args, *kwargs.values(), *layer.parameters()])
        if mesh is None:
            return forward(*args, **kwargs)
        if type(layer).__name__ in _ONE_OP and not kwargs:
            found = _as_one_op(layer, args)
            if found is not NotImplemented:
                return found
        return _whole(layer, forward, mesh, args, kwargs)

    return call
