"""Element types: their objects, their limits, questions about them."""

from __future__ import annotations

from collections import namedtuple

from . import _core
from ._core import Tensor

NAMES = ("bool", "uint8", "int8", "int16", "int32", "int64", "float16", "bfloat16", "float32", "float64", "complex64", "complex128")
OTHER_NAMES = {
    "half": "float16",
    "float": "float32",
    "double": "float64",
    "short": "int16",
    "int": "int32",
    "long": "int64",
    "cfloat": "complex64",
    "cdouble": "complex128",
}


def objects() -> dict[str, _core.dtype]:
    """The dtypes by every name they have."""
    found = {}
    for name in NAMES:
        try:
            found[name] = _core._dtype(name)
        except TypeError:
            continue
    found.update({other: found[name] for other, name in OTHER_NAMES.items() if name in found})
    return found


class iinfo:
    """The limits of an integer type.

    >>> import sampan
    >>> sampan.iinfo("int8").max
    127
    """

    def __init__(self, dtype):
        dtype = _core._dtype(dtype)
        name = dtype.name
        if "int" not in name:
            raise ValueError(f"(InvalidArgument) iinfo: an integer dtype is needed, got {name}. Hint: finfo.")
        self.bits = 8 * dtype.itemsize
        unsigned = name.startswith("u")
        self.min = 0 if unsigned else -(2 ** (self.bits - 1))
        self.max = 2**self.bits - 1 if unsigned else 2 ** (self.bits - 1) - 1
        self.dtype = name

    def __repr__(self) -> str:
        return f"paddle.iinfo(min={self.min}, max={self.max}, bits={self.bits}, dtype={self.dtype})"


# Bits of the exponent and of the fraction, and decimal digits that survive.
_FORMATS = {"float16": (5, 10, 3), "bfloat16": (8, 7, 2), "float32": (8, 23, 6), "float64": (11, 52, 15)}


class finfo:
    """The limits of a float type.

    >>> import sampan
    >>> sampan.finfo("float16").max
    65504.0
    """

    def __init__(self, dtype=None):
        dtype = _core._dtype(_core.get_default_dtype() if dtype is None else dtype)
        name = {"complex64": "float32", "complex128": "float64"}.get(dtype.name, dtype.name)
        if name not in _FORMATS:
            raise ValueError(f"(InvalidArgument) finfo: a float dtype is needed, got {name}. Hint: iinfo.")
        exponent, fraction, digits = _FORMATS[name]
        bias = 2 ** (exponent - 1) - 1
        self.bits = 1 + exponent + fraction
        self.eps = 2.0**-fraction
        self.max = (2.0 - self.eps) * 2.0**bias
        self.min = -self.max
        self.tiny = self.smallest_normal = 2.0 ** (1 - bias)
        self.resolution = 10.0**-digits
        self.dtype = dtype.name

    def __repr__(self) -> str:
        names = ("min", "max", "eps", "resolution", "smallest_normal", "tiny")
        values = ", ".join(f"{name}={getattr(self, name):g}" for name in names)
        return f"paddle.finfo({values}, bits={self.bits}, dtype={self.dtype})"


def is_tensor(x) -> bool:
    """Is it a tensor?"""
    return isinstance(x, Tensor)


def _dtype_of(x, asker: str) -> str:
    if not isinstance(x, Tensor):
        raise TypeError(f"(InvalidType) {asker}: a Tensor is needed, got {type(x).__name__}.")
    return x.dtype.name


def is_floating_point(x) -> bool:
    """Are its elements floats?"""
    return "float" in _dtype_of(x, "is_floating_point")


def is_integer(x) -> bool:
    """Are its elements integers?"""
    return "int" in _dtype_of(x, "is_integer")


def is_complex(x) -> bool:
    """Are its elements complex numbers?"""
    return "complex" in _dtype_of(x, "is_complex")


TopKRetType = namedtuple("TopKRetType", ["values", "indices"])


class Size(list):
    """A shape: a list that also equals a tuple. A part of it, or it and more, is one too.

    >>> import sampan
    >>> sampan.Size([2, 3]) + (4,)
    paddle.Size([2, 3, 4])
    """

    __slots__ = ()

    def __eq__(self, other) -> bool:
        return list.__eq__(self, list(other) if isinstance(other, tuple) else other)

    def __ne__(self, other) -> bool:
        return list.__ne__(self, list(other) if isinstance(other, tuple) else other)

    __hash__ = None

    def __getitem__(self, key):
        found = list.__getitem__(self, key)
        return Size(found) if isinstance(key, slice) else found

    def __add__(self, other) -> Size:
        return Size([*self, *other]) if isinstance(other, (list, tuple)) else NotImplemented

    def __radd__(self, other) -> Size:
        return Size([*other, *self]) if isinstance(other, (list, tuple)) else NotImplemented

    def __mul__(self, times) -> Size:
        return Size(list.__mul__(self, times))

    __rmul__ = __mul__

    def __repr__(self) -> str:
        return f"paddle.Size({list.__repr__(self)})"

    def numel(self) -> int:
        """The number of elements of a tensor of this shape."""
        from math import prod

        return prod(self)


def _of_dtype(name: str, dtype: str):
    def make(*args, **kwargs):
        return Tensor(*args, dtype=dtype, **kwargs)

    make.__name__ = make.__qualname__ = name
    make.__doc__ = f"A tensor of {dtype}: `{name}([1, 2])`, or `{name}(2, 3)`, whose values are unspecified."
    return make


TYPED = {
    f"{name}Tensor": _of_dtype(f"{name}Tensor", dtype)
    for name, dtype in {
        "Float": "float32",
        "Double": "float64",
        "Half": "float16",
        "BFloat16": "bfloat16",
        "Byte": "uint8",
        "Char": "int8",
        "Short": "int16",
        "Int": "int32",
        "Long": "int64",
        "Bool": "bool",
    }.items()
}
