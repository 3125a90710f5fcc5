"""A table of the layers of a network: shapes and parameters."""

from __future__ import annotations

import math

from ..nn import LayerList, Sequential
from .inspection import evaluating, listening, own_parameters, random_input, shapes_of

__all__ = ["summary"]


class _Row:
    """One layer: its name and what it was seen to take and give."""

    def __init__(self, layer, number: int):
        last = layer.full_name().rpartition("_")[2]
        self.name = f"{type(layer).__name__}-{int(last) + 1 if last.isdigit() else number}"
        own = own_parameters(layer)
        self.trainable = sum(math.prod(p.shape) for p in own if not p.stop_gradient)
        self.params = sum(math.prod(p.shape) for p in own)
        self.inputs = self.outputs = None

    def cells(self) -> tuple[str, str, str, str]:
        return self.name, str(self.inputs), str(self.outputs), f"{self.params:,}"


def _elements(shapes) -> int:
    """Elements of one shape or of nested lists of them."""
    if all(isinstance(extent, int) for extent in shapes):
        return math.prod(shapes) if shapes else 0
    return sum(_elements(s) for s in shapes)


def summary(net, input_size=None, dtypes=None, input=None) -> dict:
    """Runs a network once and prints its layers with shapes and numbers of parameters.

    `input_size` is a shape, an `InputSpec`, or a list of them, one for each argument of `forward`; `dtypes` is one
    dtype or as many. Instead of both, `input` is what `forward` gets: a tensor, a list or a dict. Returns
    `total_params` and `trainable_params`.

    >>> import sampan
    >>> info = sampan.summary(sampan.nn.Linear(4, 3), (1, 4))  # doctest: +ELLIPSIS
    ----...
    >>> info
    {'total_params': 15, 'trainable_params': 15}

    """
    if input_size is None and input is None:
        raise ValueError("(InvalidArgument) summary: input_size and input cannot be None at the same time.")
    sizes = _sizes(input_size) if input is None else _known(shapes_of(input))
    rows: dict[int, _Row] = {}

    def note(layer, inputs, outputs):
        row = rows.setdefault(id(layer), _Row(layer, len(rows) + 1))
        row.inputs, row.outputs = shapes_of(inputs), shapes_of(outputs)

    with evaluating(net), listening(_shown(net), note):
        net(*_make(sizes, _dtypes(dtypes, input_size))) if input is None else net(input)
    text, info = _table(list(rows.values()), sizes)
    print(text)
    return info


def _shown(net) -> list:
    """The layers that have a row: no mere containers, and not the network itself unless it is all there is."""
    rows, hidden = [], set()
    for layer in net.sublayers(include_self=True):
        is_container = isinstance(layer, (Sequential, LayerList))
        if layer in hidden or (not is_container and layer is net and net.sublayers()):
            continue
        if is_container and layer._parameters:
            # A recurrent network computes as a whole, and owns what the cells inside it name.
            hidden.update(layer.sublayers())
        if not is_container or layer._parameters:
            rows.append(layer)
    return rows


def _sizes(given) -> list:
    """`input_size` as a list of shapes, which may be nested, without unknown extents."""
    if isinstance(given, int):
        return [(_extent(given, [0]),)]
    if hasattr(given, "dtype") and hasattr(given, "shape"):
        return [_shape(given.shape)]
    if isinstance(given, (list, tuple)) and given and all(e is None or isinstance(e, int) for e in given):
        # A list of ints is several inputs of one axis; a tuple of them is a shape.
        return [_shape(given)] if isinstance(given, tuple) else [_shape((e,)) for e in given]
    if not isinstance(given, (list, tuple)) or not given:
        raise TypeError(
            f"(InvalidType) summary: input_size is a tuple, an InputSpec or a list of them, received "
            f"{type(given).__name__}."
        )
    return [_nested(item) for item in given]


def _nested(item):
    if isinstance(item, int):
        return _shape((item,))
    if hasattr(item, "dtype") and hasattr(item, "shape"):
        return _shape(item.shape)
    if isinstance(item, (list, tuple)) and all(e is None or isinstance(e, int) for e in item):
        return _shape(item)
    if isinstance(item, (list, tuple)):
        return [_nested(i) for i in item]
    raise TypeError(
        f"(InvalidType) summary: expected a shape or an InputSpec in input_size, received {type(item).__name__}."
    )


def _shape(extents) -> tuple[int, ...]:
    unknown = [0]
    return tuple(_extent(e, unknown) for e in extents)


def _extent(extent, unknown: list[int]) -> int:
    if extent is None or extent == -1:
        unknown[0] += 1
        if unknown[0] > 1:
            raise ValueError("(InvalidArgument) summary: only the extent of the batch can be None or -1 in input_size.")
        return 1
    if extent <= 0:
        raise ValueError(
            f"(InvalidArgument) summary: expected extents greater than zero in input_size, received {extent}."
        )
    return extent


def _known(shapes) -> list:
    return [tuple(shapes)] if all(isinstance(e, int) for e in shapes) else [s for s in shapes]


def _dtypes(given, input_size):
    if given is not None:
        return list(given) if isinstance(given, (list, tuple)) else given
    # An InputSpec knows its own.
    specs = input_size if isinstance(input_size, (list, tuple)) else [input_size]
    if specs and all(hasattr(s, "dtype") for s in specs):
        return [s.dtype for s in specs]
    return "float32"


def _make(sizes, dtypes):
    if isinstance(sizes, tuple):
        return random_input(sizes, dtypes[0] if isinstance(dtypes, list) else dtypes)
    each = dtypes if isinstance(dtypes, list) else [dtypes] * len(sizes)
    if len(each) < len(sizes):
        raise ValueError(f"(InvalidArgument) summary: {len(sizes)} inputs, but dtypes has {len(each)}.")
    return [_make(size, dtype) for size, dtype in zip(sizes, each)]


def _table(rows: list[_Row], sizes) -> tuple[str, dict]:
    head = ("Layer (type)", "Input Shape", "Output Shape", "Param #")
    cells = [row.cells() for row in rows]
    least = (15, 20, 20, 15)
    widths = [max([least[i], *(len(c[i]) for c in cells)]) for i in range(4)]
    width = max(75, sum(widths) + 5)

    def line(parts):
        return " ".join(f"{part:^{w}}" for part, w in zip(parts, widths))

    total, trainable = sum(r.params for r in rows), sum(r.trainable for r in rows)
    mega = 4 / 2**20
    sized, passed, held = _elements(sizes) * mega, 2 * sum(_elements(r.outputs) for r in rows) * mega, total * mega
    lines = ["-" * width, line(head), "=" * width, *map(line, cells), "=" * width]
    lines += [
        f"Total params: {total:,}",
        f"Trainable params: {trainable:,}",
        f"Non-trainable params: {total - trainable:,}",
    ]
    lines += ["-" * width, f"Input size (MB): {sized:.2f}", f"Forward/backward pass size (MB): {passed:.2f}"]
    lines += [
        f"Params size (MB): {held:.2f}",
        f"Estimated Total Size (MB): {sized + passed + held:.2f}",
        "-" * width,
        "",
    ]
    return "\n".join(lines), {"total_params": total, "trainable_params": trainable}
