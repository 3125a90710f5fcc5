"""Functions that fill tensors that exist already: Paddle's `nn.init`."""

from __future__ import annotations

from .. import _core
from . import initializer as I
from .initializer import calculate_gain

__all__ = [
    "calculate_gain",
    "constant_",
    "dirac_",
    "eye_",
    "kaiming_normal_",
    "kaiming_uniform_",
    "normal_",
    "ones_",
    "orthogonal_",
    "trunc_normal_",
    "uniform_",
    "xavier_normal_",
    "xavier_uniform_",
    "zeros_",
]


def kaiming_uniform_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu"):
    """Uniform values whose deviation suits a nonlinearity, by He."""
    return I.KaimingUniform(negative_slope=a, nonlinearity=nonlinearity, mode=mode)(tensor)


def kaiming_normal_(tensor, a=0, mode="fan_in", nonlinearity="leaky_relu"):
    """Normal values whose deviation suits a nonlinearity, by He."""
    return I.KaimingNormal(negative_slope=a, nonlinearity=nonlinearity, mode=mode)(tensor)


def xavier_uniform_(tensor, gain=1.0, fan_in=None, fan_out=None):
    """Uniform values whose deviation suits inputs and outputs, by Glorot."""
    return I.XavierUniform(gain=gain, fan_in=fan_in, fan_out=fan_out)(tensor)


def xavier_normal_(tensor, gain=1.0, fan_in=None, fan_out=None):
    """Normal values whose deviation suits inputs and outputs, by Glorot."""
    return I.XavierNormal(gain=gain, fan_in=fan_in, fan_out=fan_out)(tensor)


def uniform_(tensor, a=0.0, b=1.0):
    """Uniform values in `[a, b)`."""
    return I.Uniform(low=a, high=b)(tensor)


def normal_(tensor, mean=0.0, std=1.0):
    """Normal values."""
    return I.Normal(mean=mean, std=std)(tensor)


def trunc_normal_(tensor, mean=0.0, std=1.0, a=-2.0, b=2.0):
    """Normal values between `a` and `b`."""
    return I.TruncatedNormal(mean=mean, std=std, a=a, b=b)(tensor)


def constant_(tensor, val):
    """One value everywhere."""
    return I.Constant(value=val)(tensor)


def ones_(tensor):
    """Ones."""
    return constant_(tensor, 1.0)


def zeros_(tensor):
    """Zeros."""
    return constant_(tensor, 0.0)


def dirac_(tensor, groups=1):
    """A convolution's weight that passes its input on."""
    return I.Dirac(groups=groups)(tensor)


def eye_(tensor):
    """The identity matrix."""
    if tensor.ndim != 2:
        raise AssertionError(f"(InvalidArgument) eye_: a matrix is needed, got {tensor.ndim} axes.")
    tensor.set_value(_core.op("eye")(tensor.shape[0], tensor.shape[1], tensor.dtype))
    return tensor


def orthogonal_(tensor, gain=1):
    """A matrix whose rows or columns are orthogonal."""
    return I.Orthogonal(gain=gain)(tensor)
