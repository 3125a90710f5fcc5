"""Which dtype a result has."""
import numpy as np

from . import case

_NUMBERS = {"float": float, "int": int, "bool": bool}
_WAYS = {
    "zeros": lambda paddle, x, dtype: paddle.zeros([1], dtype=dtype),
    "full_like": lambda paddle, x, dtype: paddle.full_like(x, 1, dtype=dtype),
    "cast": lambda paddle, x, dtype: paddle.cast(x, dtype),
    "astype": lambda paddle, x, dtype: x.astype(dtype),
    "to": lambda paddle, x, dtype: x.to(dtype=dtype),
    "sum": lambda paddle, x, dtype: paddle.sum(x, dtype=dtype),
}


@case(each=[(way, name) for way in _WAYS for name in _NUMBERS if (way, name) != ("sum", "bool")])
def of_python(paddle, way, name):
    return _WAYS[way](paddle, paddle.to_tensor([1.5, 2.5]), _NUMBERS[name])


@case(each=list(_WAYS))
def of_python_whatever_the_default_is(paddle, way):
    x = paddle.to_tensor([1.5, 2.5])
    paddle.set_default_dtype("float64")
    found = _WAYS[way](paddle, x, float)
    paddle.set_default_dtype("float16")
    return found, _WAYS[way](paddle, x, float)


@case(each=["zeros", "full_like"])
def of_python_complex_numbers(paddle, way):
    return str(_WAYS[way](paddle, paddle.to_tensor([1.5]), complex).dtype).split(".")[-1]


@case(each=["int32", "int64"])
def of_an_angle(paddle, dtype):
    return paddle.atan2(paddle.to_tensor(np.array([1, -2, 0], dtype)), paddle.to_tensor(np.array([1, 0, -3], dtype)))


@case(each=["float16", "float32", "float64"])
def of_a_median(paddle, dtype):
    return paddle.median(paddle.to_tensor(np.array([1, 2, 4, 8], dtype)))


@case(each=["int8", "int64", "uint8"])
def of_a_copied_sign(paddle, dtype):
    x, y = np.array([1, 2, 0]), np.array([1, 0, 1]) * (1 if dtype == "uint8" else -1)
    x, y = (paddle.to_tensor(v.astype(dtype)) for v in (x, y))
    return paddle.copysign(x, y), paddle.copysign(x, -1.0), paddle.copysign(x, -0.0)


def of_powers_of_truth(paddle):
    x = paddle.to_tensor([True, False])
    return 2**x, x**2


@case(
    each=["mean", "nanmedian", "rad2deg", "deg2rad"],
    right={"float32": True},
    because="a float cut to the integers of its argument is another number",
)
def of_what_is_no_integer(paddle, name):
    whole = paddle.to_tensor(np.array([1, 2], "uint8" if "2" in name else "int64"))
    return {str(getattr(paddle, name)(whole).dtype).split(".")[-1]: True}
