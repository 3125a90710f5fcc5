"""The work of one pass through a network."""

from __future__ import annotations

import math
import warnings

from .. import nn
from .inspection import evaluating, listening, own_parameters, random_input, shapes_of

__all__ = ["flops"]


def _conv(layer, inputs, output):
    kernel = math.prod(layer.weight.shape[2:])
    channels = layer.weight.shape[1]
    if "Transpose" in type(layer).__name__:
        # The weight is [in, out / groups, …], and each input is used by its group alone.
        channels = layer.weight.shape[0] // (getattr(layer, "_groups", None) or 1)
    return output.size * (channels * kernel + (getattr(layer, "bias", None) is not None))


def _linear(layer, inputs, output):
    return layer.weight.shape[0] * output.size


def _elements(layer, inputs, output):
    return inputs[0].size


def _batch_norm(layer, inputs, output):
    return 2 * inputs[0].size


def _pool(layer, inputs, output):
    return output.size


def _adaptive_pool(layer, inputs, output):
    window = math.prod(i // o for i, o in zip(inputs[0].shape[2:], output.shape[2:]))
    return (window + 1) * output.size


def _nothing(layer, inputs, output):
    return 0


# Multiply-adds count once, as in Paddle; layers that are not here count nothing.
_RULES = {
    "Conv1D Conv2D Conv3D Conv1DTranspose Conv2DTranspose Conv3DTranspose": _conv,
    "Linear": _linear,
    "BatchNorm2D BatchNorm": _batch_norm,
    "ReLU ReLU6 Dropout": _nothing,
    "LeakyReLU": _elements,
    "AvgPool1D AvgPool2D AvgPool3D": _pool,
    "AdaptiveAvgPool1D AdaptiveAvgPool2D AdaptiveAvgPool3D": _adaptive_pool,
}


def _rules() -> dict:
    return {getattr(nn, n): rule for names, rule in _RULES.items() for n in names.split() if hasattr(nn, n)}


def flops(net, input_size, custom_ops=None, print_detail=False) -> int:
    """Runs a network once, prints and returns the work of a pass: multiply-adds of products, elements of what is
    cheaper.

    `input_size` is the shape of the input. `custom_ops` maps a class of layers to a function `(layer, inputs, output)`
    that adds to `layer.total_ops`. With `print_detail` there is a table of all layers.

    >>> import sampan
    >>> sampan.flops(sampan.nn.Sequential(sampan.nn.Linear(4, 3)), [1, 4])
    <class 'sampan.nn.Linear'>'s flops has been counted
    Total Flops: 12     Total Params: 15
    12

    """
    if not isinstance(net, nn.Layer):
        warnings.warn(f"flops: net must be a Layer, received {type(net).__name__}.", stacklevel=2)
        return -1
    leaves = list(dict.fromkeys(layer for layer in net.sublayers(include_self=True) if not list(layer.children())))
    custom, rules = custom_ops or {}, _rules()
    for kind in dict.fromkeys(type(layer) for layer in leaves):
        if kind in custom:
            print(f"Customize Function has been applied to {kind}")
        elif kind in rules:
            print(f"{kind}'s flops has been counted")
        else:
            print(f"Cannot find suitable count function for {kind}. Treat it as zero FLOPs.")
    seen = {}

    def count(layer, inputs, output):
        work = seen.get(layer, (None, None, 0))[2]
        if type(layer) in custom:
            layer.__dict__["total_ops"] = work
            custom[type(layer)](layer, inputs, output)
            work = int(layer.total_ops)
        elif type(layer) in rules:
            work += rules[type(layer)](layer, inputs, output)
        first = output[0] if isinstance(output, (list, tuple)) else output
        seen[layer] = (shapes_of(inputs[0]) if inputs else [], shapes_of(first), work)

    try:
        with evaluating(net), listening(leaves, count):
            net(random_input(input_size, "float32"))
    finally:
        for layer in leaves:
            layer.__dict__.pop("total_ops", None)
    rows = [
        [layer.full_name(), *seen[layer][:2], sum(math.prod(p.shape) for p in own_parameters(layer)), seen[layer][2]]
        for layer in leaves
        if layer in seen
    ]
    total, params = sum(row[4] for row in rows), sum(row[3] for row in rows)
    if print_detail:
        _print_table(["Layer Name", "Input Shape", "Output Shape", "Params", "Flops"], rows)
    print(f"Total Flops: {total}     Total Params: {params}")
    return total


def _print_table(head, rows) -> None:
    texts = [[str(cell) for cell in row] for row in [head, *rows]]
    widths = [max(len(row[i]) for row in texts) + 2 for i in range(len(head))]
    rule = "+" + "+".join("-" * w for w in widths) + "+"
    lines = ["|" + "|".join(f"{cell:^{w}}" for cell, w in zip(row, widths)) + "|" for row in texts]
    print("\n".join([rule, lines[0], rule, *lines[1:], rule]))
