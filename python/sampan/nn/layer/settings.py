"""Attributes of built-in layers that are settings: `conv._stride`, `dropout.p`, `embedding._num_embeddings`.

Most are arguments of the constructor, with or without an underscore. The tables say where an attribute has another name
or another form.
"""

from __future__ import annotations

from collections.abc import Callable

# Attribute: argument of the constructor.
_RENAMED = {
    "ksize": "kernel_size",
    "divisor": "divisor_override",
    "return_indices": "return_mask",
    "lambd": "threshold",
    "_param_attr": "weight_attr",
    "eps": "epsilon",
    "norm": "p",
    "dim": "axis",
    "kernel_sizes": "kernel_size",
    "strides": "stride",
    "paddings": "padding",
    "dilations": "dilation",
    "output_sizes": "output_size",
}


def _list(value, n: int) -> list:
    if isinstance(value, int):
        return [value] * n
    return list(value) * n if isinstance(value, (list, tuple)) and len(value) == 1 else value


def _algorithm(padding) -> str:
    return padding.upper() if isinstance(padding, str) else "EXPLICIT"


def _axes(layer) -> int:
    """The number of spatial axes that the class's name tells."""
    return int(next(c for c in type(layer)._definition.name if c.isdigit()))


def _per_axis(name: str) -> Callable:
    return lambda layer, told: _list(told[name], _axes(layer))


def _channels_last(layer, told) -> bool:
    return not str(told.get("data_format", "NC")).startswith("NC")


_CONV = {
    "_stride": _per_axis("stride"),
    "_dilation": _per_axis("dilation"),
    "_kernel_size": _per_axis("kernel_size"),
    "_updated_padding": lambda layer, told: _list(told["padding"], _axes(layer)),
    "_padding_mode": lambda layer, told: told.get("padding_mode", "zeros"),
    "_channel_dim": lambda layer, told: -1 if _channels_last(layer, told) else 1,
    "_op_type": lambda layer, told: f"conv{_axes(layer)}d",
    "_padding_algorithm": lambda layer, told: _algorithm(told["padding"]),
    "output_padding": lambda layer, told: told.get("output_padding", 0),
    "_device": lambda layer, told: None,
    "_use_cudnn": lambda layer, told: False,
}
_PAD = {
    "padding": lambda layer, told: _list(told["padding"], 2 * _axes(layer)),
    "_pad": lambda layer, told: _list(told["padding"], 2 * _axes(layer)),
    "value": lambda layer, told: told.get("value", 0.0),
    "_n_dim": lambda layer, told: _axes(layer),
}
_NORM = {
    "_in_place": lambda layer, told: False,
    "_fuse_with_relu": lambda layer, told: False,
    "_use_global_stats": lambda layer, told: told.get("use_global_stats"),
}
_RNN = {
    "mode": lambda layer, told: type(layer)._mode(told),
    "num_directions": lambda layer, told: 1 if told["direction"] == "forward" else 2,
    "state_components": lambda layer, told: 2 if layer._definition.name == "LSTM" else 1,
    "proj_size": lambda layer, told: told.get("proj_size", 0),
    "could_use_cudnn": lambda layer, told: False,
    "_all_weights": lambda layer, told: list(layer._parameters.values()),
}
_MODES = {"Circular": "circular", "Reflection": "reflect", "Replication": "replicate"}
_PAD["_mode"] = lambda layer, told: told.get("mode") or next(
    (mode for start, mode in _MODES.items() if layer._definition.name.startswith(start)), "constant"
)
_OF_CLASS = {
    "LayerNorm": {"_normalized_shape": lambda layer, told: _list(told["normalized_shape"], 1)},
    "MultiHeadAttention": {
        "head_dim": lambda layer, told: told["embed_dim"] // told["num_heads"],
        "kdim": lambda layer, told: told["embed_dim"] if told["kdim"] is None else told["kdim"],
        "vdim": lambda layer, told: told["embed_dim"] if told["vdim"] is None else told["vdim"],
    },
    "Embedding": {
        "_size": lambda layer, told: list(layer.weight.shape),
        "_num_embeddings": lambda layer, told: layer.weight.shape[0],
        "_embedding_dim": lambda layer, told: layer.weight.shape[1],
        "_is_distributed": lambda layer, told: False,
        "_remote_prefetch": lambda layer, told: False,
    },
    "Fold": {
        name: (lambda layer, told, key=f"{name}s": told[key])
        for name in ("output_size", "kernel_size", "stride", "padding", "dilation")
    },
    "LPPool2D": {"stride": lambda layer, told: told["kernel_size"] if told["stride"] is None else told["stride"]},
    "AdaptiveLogSoftmaxWithLoss": {
        "cutoffs": lambda layer, told: [*told["cutoffs"], told["n_classes"]],
        "shortlist_size": lambda layer, told: told["cutoffs"][0],
        "n_clusters": lambda layer, told: len(told["cutoffs"]),
        "head_size": lambda layer, told: told["cutoffs"][0] + len(told["cutoffs"]),
        "is_head_bias": lambda layer, told: told["head_bias"],
        "tail_weights": lambda layer, told: [
            [layer._parameters[f"tail_weights.{i}.{k}"] for k in range(2)] for i in range(len(told["cutoffs"]))
        ],
    },
}


def _derived(layer, name: str) -> Callable | None:
    kind = layer._definition.name if layer._definition is not None else type(layer).__name__
    table = _OF_CLASS.get(kind)
    if table is None:
        if kind.startswith("Conv"):
            table = _CONV
        elif kind[:-2].endswith("Pad"):
            table = _PAD
        elif "BatchNorm" in kind:
            table = _NORM
        elif kind in ("SimpleRNN", "LSTM", "GRU"):
            table = _RNN
        else:
            return None
    return table.get(name)


def argument(layer, name: str) -> str | None:
    """The argument of the constructor that an attribute shows."""
    told = layer._settings
    for key in (name, name.removeprefix("_"), _RENAMED.get(name)):
        if key in told:
            return key
    return None


# Layers whose settings are attributes with an underscore; a name without one is the user's own there.
_UNDERSCORED = (
    *"Adaptive Fractional BatchNorm InstanceNorm SyncBatchNorm LayerNorm GroupNorm SpectralNorm Bilinear CELU".split(),
    *"ChannelShuffle Conv1D Conv2D Conv3D CosineSimilarity ELU Embedding GELU GLU HSigmoid Hard LeakyReLU".split(),
    *"Linear LogSoftmax Maxout NLLLoss PReLU Pixel Poisson RReLU SELU Silu Soft Thresholded".split(),
)
_NOT_UNDERSCORED = "AdaptiveAvgPool1D AdaptiveMaxPool1D AdaptiveLogSoftmaxWithLoss SoftMarginLoss".split()


def changed(layer, name: str) -> str | None:
    """The argument of the constructor that an assignment to an attribute changes."""
    if layer._definition is None:
        return None
    kind = layer._definition.name
    if not name.startswith("_") and kind.startswith(_UNDERSCORED) and kind not in _NOT_UNDERSCORED:
        return None
    return argument(layer, name)


# Layers whose parameters belong to layers inside them or have numbers: they have none of the names of the arguments.
_MADE_OF_PARTS = (
    *"MultiHeadAttention Transformer TransformerEncoderLayer TransformerDecoderLayer SimpleRNN LSTM GRU".split(),
    "AdaptiveLogSoftmaxWithLoss",
)
# The argument of a parameter, where it is not called like it.
_ATTRIBUTES = {
    "InstanceNorm": {"scale": "weight_attr", "weight": None},
    "PReLU": {"_weight": "weight_attr", "weight": None},
}


def lacking(layer, name: str) -> str | None:
    """The argument by which a layer does without the parameter of that name."""
    definition = layer._definition
    if definition is None or definition.name in _MADE_OF_PARTS:
        return None
    if definition.name == "BatchNorm" and name == "weight":
        return "param_attr"
    found = _ATTRIBUTES.get(definition.name.rstrip("123D"), {}).get(name, f"{name}_attr")
    return found if any(found == p for p, *_ in definition.params) else None


def setting(layer, name: str) -> tuple[bool, object]:
    """Was the layer built from, or does it know, something of that name? And what?"""
    if lacking(layer, name) is not None:
        return True, None
    if name == "weight" and type(layer)._definition is not None and layer._definition.name == "NLLLoss":
        return False, None  # It is `_weight`.
    derived = _derived(layer, name)
    if derived is not None:
        return True, derived(layer, layer._settings)
    key = argument(layer, name)
    if key is not None:
        return True, layer._settings[key]
    if name in ("name", "_name"):
        return True, None
    if name == "_full_name":
        return True, layer.full_name()
    return False, None
