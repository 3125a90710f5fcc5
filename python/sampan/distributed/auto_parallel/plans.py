"""What a plan does with a layer: how its parameters are cut, and what happens to what goes in and comes out."""

from __future__ import annotations

from ... import _core
from ...nn import functional as F
from ...nn.layer import Layer
from .api import reshard, shard_tensor
from .calls import _ready
from .moves import spans
from .placement import Replicate, Shard
from .tensor import OnMesh, wrap


def _along(mesh, name: str, placement, others=None) -> list:
    """A placement along one axis of the mesh; along the others it is what it was."""
    placements = list(others) if others is not None else [Replicate()] * mesh.ndim
    placements[mesh._axis(name)] = placement
    return placements


def _first(values, change):
    """The same values with the first one changed, which is the data where there are several."""
    if isinstance(values, (tuple, list)):
        return type(values)([change(values[0]), *values[1:]])
    return change(values)


def _on(mesh, tensor):
    """A tensor on the mesh: one that is not there yet is the same everywhere."""
    return tensor if isinstance(tensor, OnMesh) else shard_tensor(tensor, mesh, [])


class Plan:
    """What is done with a layer."""

    def apply(self, layer: Layer, mesh, names: list[str]) -> None:
        """Changes a layer; `names` are the parameters meant, none for all."""
        raise NotImplementedError

    def _cut(self, layer, mesh, names, dim_of) -> None:
        for name in names:
            parameter = layer._parameters.get(name)
            if parameter is None or isinstance(parameter, OnMesh):
                continue
            setattr(layer, name, shard_tensor(parameter, mesh, _along(mesh, "mp", Shard(dim_of(parameter)))))


class ColWiseParallel(Plan):
    """Cuts the weight of a `Linear` or `Embedding` by its columns, and the bias with it. The output is cut along its last axis,
    unless `gather_output`."""

    def __init__(self, gather_output: bool = False):
        self.gather_output = gather_output

    def apply(self, layer, mesh, names):
        self._cut(layer, mesh, names or ["weight", "bias"], lambda parameter: parameter.ndim - 1)
        if self.gather_output:

            def whole(tensor):
                return reshard(tensor, mesh, _along(mesh, "mp", Replicate(), tensor.placements))

            layer.register_forward_post_hook(lambda _, inputs, outputs: _first(outputs, whole))


class RowWiseParallel(Plan):
    """Cuts the weight of a `Linear` or `Embedding` by its rows; the bias is whole. The input of a `Linear` is cut along its last
    axis: it comes so from a layer cut by columns, and is cut here if not `is_input_parallel`."""

    def __init__(self, is_input_parallel: bool = True):
        self.is_input_parallel = is_input_parallel

    def apply(self, layer, mesh, names):
        self._cut(layer, mesh, [n for n in names if n != "bias"] or ["weight"], lambda parameter: 0)
        if not self.is_input_parallel:

            def part(tensor):
                tensor = _on(mesh, tensor)
                return reshard(tensor, mesh, _along(mesh, "mp", Shard(len(tensor.shape) - 1), tensor.placements))

            layer.register_forward_pre_hook(lambda _, inputs: _first(inputs, part))


class PrepareLayerInput(Plan):
    """Changes what goes into a layer: `fn(process_mesh=mesh)` gives a hook for `register_forward_pre_hook`."""

    def __init__(self, fn=None):
        self.fn = _callable(fn, type(self).__name__)

    def apply(self, layer, mesh, names):
        layer.register_forward_pre_hook(self.fn(process_mesh=mesh))


class PrepareLayerOutput(Plan):
    """Changes what comes out of a layer: `fn(process_mesh=mesh)` gives a hook for `register_forward_post_hook`."""

    def __init__(self, fn=None):
        self.fn = _callable(fn, type(self).__name__)

    def apply(self, layer, mesh, names):
        layer.register_forward_post_hook(self.fn(process_mesh=mesh))


def _callable(fn, name: str):
    if not callable(fn):
        raise TypeError(f"(InvalidType) {name}: fn is a function of a mesh that gives a hook, got {fn!r}.")
    return fn


class _Sequence(Plan):
    """Sequences cut along the axis of tensor parallelism. Data is `[batch, length, width]`; with `need_transpose` it is turned to
    `[length, batch, width]` where the cut begins, and back where it ends."""

    def __init__(self, need_transpose: bool = True):
        self.need_transpose = need_transpose

    def _enter(self, mesh):
        def cut(tensor):
            tensor = _on(mesh, tensor)
            tensor = tensor.transpose([1, 0, 2]) if self.need_transpose else tensor
            # The batch may be cut along another axis of the mesh; the sequence is the other one of the first two axes.
            dims = [p.get_dim() for p in tensor.placements if p.is_shard()]
            dim = 1 if 0 in dims else 0
            return reshard(tensor, mesh, _along(mesh, "mp", Shard(dim), tensor.placements))

        return lambda values: _first(values, cut)

    def _leave(self, mesh):
        def join(tensor):
            tensor = _on(mesh, tensor)
            tensor = reshard(tensor, mesh, _along(mesh, "mp", Replicate(), tensor.placements))
            return tensor.transpose([1, 0, 2]) if self.need_transpose else tensor

        return lambda values: _first(values, join)


class SequenceParallelBegin(_Sequence):
    """From the output of this layer on, sequences are cut."""

    def apply(self, layer, mesh, names):
        enter = self._enter(mesh)
        layer.register_forward_post_hook(lambda _, inputs, outputs: enter(outputs))


class SequenceParallelEnd(_Sequence):
    """Before this layer, cut sequences become whole."""

    def apply(self, layer, mesh, names):
        leave = self._leave(mesh)
        layer.register_forward_pre_hook(lambda _, inputs: leave(inputs))


class SequenceParallelEnable(_Sequence):
    """This layer alone computes on cut sequences."""

    def __init__(self):
        super().__init__(True)

    def apply(self, layer, mesh, names):
        enter, leave = self._enter(mesh), self._leave(mesh)
        layer.register_forward_pre_hook(lambda _, inputs: enter(inputs))
        layer.register_forward_post_hook(lambda _, inputs, outputs: leave(outputs))


class SequenceParallelDisable(_Sequence):
    """This layer alone computes on whole sequences, among others that compute on cut ones."""

    def apply(self, layer, mesh, names):
        enter, leave = self._enter(mesh), self._leave(mesh)
        layer.register_forward_pre_hook(lambda _, inputs: leave(inputs))
        layer.register_forward_post_hook(lambda _, inputs, outputs: enter(outputs))


class PrepareContextParallel(Plan):
    """From the inputs of this layer on, sequences are cut along the axis `sep` of the mesh: of each tensor `[batch, length, …]` the
    second axis."""

    def __init__(self, backend: str = "p2p"):
        self.backend = _backend(backend, type(self).__name__)

    def apply(self, layer, mesh, names):
        def cut(tensor):
            if not isinstance(tensor, _core.Tensor) or tensor.ndim < 2:
                return tensor
            tensor = _on(mesh, tensor)
            return reshard(tensor, mesh, _along(mesh, "sep", Shard(1), tensor.placements))

        def hook(_, args, kwargs):
            return tuple(map(cut, args)), {key: cut(value) for key, value in kwargs.items()}

        layer.register_forward_pre_hook(hook, with_kwargs=True)


class ContextParallel(Plan):
    """A layer that gives query, key and value `[batch, length, heads, width]` to `scaled_dot_product_attention`: they come cut
    along the length, each process computes some heads with the whole of it, and the output is cut along the length again. Both
    backends of Paddle, `p2p` and `all2all`, are this exchange."""

    def __init__(self, backend: str = "p2p"):
        self.backend = _backend(backend, type(self).__name__)

    def apply(self, layer, mesh, names):
        def turned(dim):
            def turn(tensor):
                if not isinstance(tensor, OnMesh) or tensor.ndim != 4:
                    return tensor
                return reshard(tensor, mesh, _along(mesh, "sep", Shard(dim), tensor.placements))

            return turn

        heads, length = turned(2), turned(1)

        def before(_, args, kwargs):
            # The mask and what else follows query, key and value are as they are.
            return (*map(heads, args[:3]), *args[3:]), {
                key: heads(value) if key in ("q", "k", "v", "query", "key", "value") else value
                for key, value in kwargs.items()
            }

        layer.register_forward_pre_hook(before, with_kwargs=True)
        layer.register_forward_post_hook(lambda _, inputs, outputs: _first(outputs, length))


def _backend(name: str, who: str) -> str:
    if name not in ("p2p", "all2all"):
        raise ValueError(f"(InvalidArgument) {who}: the backend is p2p or all2all, got {name!r}.")
    return name


class ConvParallel(Plan):
    """A `Conv2D` of which each process along the axis `mp` computes some columns of the output, from the columns of the input that
    they need. The output is cut along its width."""

    def apply(self, layer, mesh, names):
        told, width = layer._settings, 2 if layer._settings["data_format"] == "NHWC" else 3
        (stride_h, stride), (pad_h, pad), dilation = (_pair(told[name]) for name in ("stride", "padding", "dilation"))
        if dilation[1] != 1 or told["padding_mode"] != "zeros":
            raise ValueError("(InvalidArgument) ConvParallel: a dilation along the width, and padding other than zeros, are not cut.")
        axis = mesh._axis("mp")

        def forward(x):
            x, here = _on(mesh, x), mesh.coordinates()
            kernel, columns = layer.weight.shape[3], x.shape[width]
            count = (columns + 2 * pad - kernel) // stride + 1
            parts = spans(count, mesh.shape[axis])
            if here is None or parts[-1][0] == parts[-1][1]:
                # Somebody would have nothing to compute.
                return whole(x)
            wanted = [p if p.is_shard(0) else Replicate() for p in x.placements]
            wanted[axis] = Replicate()
            result = [*wanted]
            result[axis] = Shard(width)
            start, end = parts[here[axis]]
            first, last = start * stride - pad, (end - 1) * stride - pad + kernel
            part = _ready(x, wanted, result, mesh)
            part = part[(slice(None),) * width + (slice(max(first, 0), min(last, columns)),)]
            edges = [max(-first, 0), max(last - columns, 0), 0, 0]
            part = F.pad(part, edges, data_format=told["data_format"])
            weight, bias = (
                None if p is None else _ready(_on(mesh, p), [Replicate()] * mesh.ndim, result, mesh)
                for p in (layer.weight, layer.bias)
            )
            found = F.conv2d(
                part, weight, bias, [stride_h, stride], [pad_h, 0], dilation, told["groups"], told["data_format"]
            )
            shape = list(found.shape)
            shape[0], shape[width] = x.shape[0], count
            return wrap(found, mesh, result, shape)

        whole, layer.forward = layer.forward, forward


def _pair(value) -> list[int]:
    pair = [value, value] if isinstance(value, int) else list(value)
    if len(pair) != 2 or not all(isinstance(n, int) for n in pair):
        raise ValueError(f"(InvalidArgument) ConvParallel: a number, or one for height and width, is needed, got {value!r}.")
    return pair
