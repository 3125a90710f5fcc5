"""What programs ask for with `isinstance`: the bases that Paddle's layers of one family share."""

from __future__ import annotations

from .builtin import BuiltinLayer


class _BatchNormBase(BuiltinLayer):
    """Batch norms but for the old `BatchNorm`."""


class _InstanceNormBase(BuiltinLayer):
    """Instance norms."""


class _ConvNd(BuiltinLayer):
    """Convolutions and transposed ones."""


_FAMILIES = {
    "BatchNorm{}D": _BatchNormBase,
    "InstanceNorm{}D": _InstanceNormBase,
    "Conv{}D": _ConvNd,
    "Conv{}DTranspose": _ConvNd,
}
BASES = {name.format(axes): base for name, base in _FAMILIES.items() for axes in (1, 2, 3)}
