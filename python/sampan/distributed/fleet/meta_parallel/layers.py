"""Linear, embedding and loss, cut into parts: each process of the group `model` holds one."""

from __future__ import annotations

from .... import nn
from ....nn import functional as F
from .exchange import copy_to_parts, join_parts, largest_of_parts, sum_of_parts, take_part


def _group(given):
    from ..fleet import get_hybrid_communicate_group

    return get_hybrid_communicate_group().get_model_parallel_group() if given is None else given


def _share(extent: int, group, layer: str, name: str) -> int:
    if extent % group.nranks:
        raise ValueError(f"(InvalidArgument) {layer}: {name} {extent} is not divisible by {group.nranks} processes.")
    return extent // group.nranks


class _Cut(nn.Layer):
    def _cut_parameter(self, whole: list[int], axis: int, group, attr, is_bias=False):
        """This process's part of a parameter, cut along an axis. The whole is drawn, by the same seed in every process, so
        that the parts together are what one process would have."""
        full = self.create_parameter(whole, attr=attr, is_bias=is_bias)
        if group.nranks == 1:
            return full
        size = whole[axis] // group.nranks
        start = group.rank * size
        part = full[start : start + size] if axis == 0 else full[:, start : start + size]
        # Nothing is drawn for the part, so that the next layer is what one process would have, too.
        zeros = nn.initializer.Constant(0.0)
        told = False if attr is False else None
        cut = self.create_parameter(part.shape, attr=told, is_bias=is_bias, default_initializer=zeros)
        cut.set_value(part.detach().clone())
        cut.stop_gradient = full.stop_gradient
        cut.is_distributed, cut.split_axis = True, axis
        return cut


class ColumnParallelLinear(_Cut):
    """A linear layer whose outputs are cut: each process computes some of them, and with `gather_output` gets all."""

    def __init__(
        self,
        in_features,
        out_features,
        weight_attr=None,
        has_bias=None,
        gather_output=True,
        fuse_matmul_bias=False,
        mp_group=None,
        name=None,
    ):
        super().__init__()
        self._group = _group(mp_group)
        self.gather_output, self.is_mp = gather_output, self._group.nranks > 1
        self.output_size_per_partition = _share(out_features, self._group, "ColumnParallelLinear", "out_features")
        self.weight = self._cut_parameter([in_features, out_features], 1, self._group, weight_attr)
        # Paddle's None means no bias.
        self.bias = self._cut_parameter([out_features], 0, self._group, None, is_bias=True) if has_bias else None

    def forward(self, x):
        y = F.linear(copy_to_parts(x, self._group), self.weight, self.bias)
        return join_parts(y, self._group) if self.gather_output else y


class RowParallelLinear(_Cut):
    """A linear layer whose inputs are cut: each process computes a part of every sum. With `input_is_parallel` each has its
    part of the inputs already."""

    def __init__(
        self,
        in_features,
        out_features,
        weight_attr=None,
        has_bias=True,
        input_is_parallel=False,
        fuse_matmul_bias=False,
        mp_group=None,
        name=None,
    ):
        super().__init__()
        self._group = _group(mp_group)
        self.input_is_parallel, self.is_mp = input_is_parallel, self._group.nranks > 1
        self.input_size_per_partition = _share(in_features, self._group, "RowParallelLinear", "in_features")
        self.weight = self._cut_parameter([in_features, out_features], 0, self._group, weight_attr)
        self.bias = self.create_parameter([out_features], is_bias=True) if has_bias else None

    def forward(self, x):
        x = x if self.input_is_parallel else take_part(x, self._group)
        y = sum_of_parts(F.linear(x, self.weight), self._group)
        return y if self.bias is None else y + self.bias


class VocabParallelEmbedding(_Cut):
    """An embedding whose rows are cut: each process looks its own up, and the sum has all."""

    def __init__(self, num_embeddings, embedding_dim, weight_attr=None, mp_group=None, name=None):
        super().__init__()
        self._group = _group(mp_group)
        self.per_part_size = _share(num_embeddings, self._group, "VocabParallelEmbedding", "num_embeddings")
        self.vocab_start_index = self._group.rank * self.per_part_size
        self.weight = self._cut_parameter([num_embeddings, embedding_dim], 0, self._group, weight_attr)

    def forward(self, x):
        if self._group.nranks == 1:
            return F.embedding(x, self.weight)
        own = (x >= self.vocab_start_index) & (x < self.vocab_start_index + self.per_part_size)
        rows = F.embedding((x - self.vocab_start_index) * own.astype(x.dtype), self.weight)
        return sum_of_parts(rows * own.astype(rows.dtype).unsqueeze(-1), self._group)


def split(x, size, operation, axis=0, num_partitions=1, gather_out=True, weight_attr=None, bias_attr=None, name=None):
    """A linear layer or an embedding, cut into `num_partitions` parts, one for each process of the group `model`: `size` is the shape
    of its weight, `axis` the axis that is cut, and `gather_out` gives every process the whole. It is made anew by each call."""
    group = _group(None)
    if num_partitions != group.nranks:
        raise ValueError(
            f"(InvalidArgument) split: num_partitions is {num_partitions}, but {group.nranks} processes share layers. Hint: "
            "fleet.init with mp_degree."
        )
    if operation == "embedding" and axis == 0:
        return VocabParallelEmbedding(*size, weight_attr=weight_attr)(x)
    if operation != "linear" or axis not in (0, 1):
        raise ValueError(
            f"(InvalidArgument) split: operation is linear, cut along axis 0 or 1, or embedding, cut along axis 0; got "
            f"{operation!r} and {axis}."
        )
    biased = bias_attr is not False
    if axis == 0:
        layer = RowParallelLinear(
            *size, weight_attr=weight_attr, has_bias=biased, input_is_parallel=x.shape[-1] != size[0]
        )
    else:
        layer = ColumnParallelLinear(*size, weight_attr=weight_attr, has_bias=biased, gather_output=gather_out)
    return layer(x)


class ParallelCrossEntropy(nn.Layer):
    """The cross entropy of scores whose classes are cut: `[..., classes / processes]` and labels `[..., 1]` give
    `[..., 1]`."""

    def __init__(self, mp_group=None, name=None, ignore_index=-100):
        super().__init__()
        self._group, self.ignore_index = _group(mp_group), ignore_index

    def forward(self, input, label):
        label = label if label.ndim == input.ndim else label.unsqueeze(-1)
        classes = input.shape[-1]
        start = self._group.rank * classes
        shifted = input - largest_of_parts(input.max(-1, keepdim=True), self._group)
        total = sum_of_parts(shifted.exp().sum(-1, keepdim=True), self._group)
        own = (label >= start) & (label < start + classes)
        at = (label - start) * own.astype(label.dtype)
        score = shifted.take_along_axis(at, -1) * own.astype(input.dtype)
        loss = total.log() - sum_of_parts(score, self._group)
        return loss * (label != self.ignore_index).astype(loss.dtype)
