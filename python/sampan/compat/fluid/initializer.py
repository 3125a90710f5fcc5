"""First values of parameters, with the names and arguments of 1.x."""

from __future__ import annotations

from ...nn import initializer as new


def ConstantInitializer(value=0.0, force_cpu=False):
    """All elements have one value."""
    return new.Constant(value)


def UniformInitializer(low=-1.0, high=1.0, seed=0, diag_num=0, diag_step=0, diag_val=1.0):
    """Uniform between two numbers."""
    return new.Uniform(low, high)


def NormalInitializer(loc=0.0, scale=1.0, seed=0):
    """Normal with a mean and a standard deviation."""
    return new.Normal(loc, scale)


def TruncatedNormalInitializer(loc=0.0, scale=1.0, seed=0):
    """Normal, without what lies two standard deviations or more away from the mean."""
    return new.TruncatedNormal(loc, scale)


def XavierInitializer(uniform=True, fan_in=None, fan_out=None, seed=0):
    """Xavier's, uniform or normal."""
    return (new.XavierUniform if uniform else new.XavierNormal)(fan_in=fan_in, fan_out=fan_out)


def MSRAInitializer(uniform=True, fan_in=None, seed=0):
    """Kaiming's, uniform or normal."""
    return (new.KaimingUniform if uniform else new.KaimingNormal)(fan_in=fan_in)


def BilinearInitializer():
    """For transposed convolutions that enlarge."""
    return new.Bilinear()


def NumpyArrayInitializer(value):
    """The values of an array."""
    return new.Assign(value)


Initializer = new.Initializer
Constant, Uniform, Normal, TruncatedNormal = (
    ConstantInitializer,
    UniformInitializer,
    NormalInitializer,
    TruncatedNormalInitializer,
)
Xavier, MSRA, Bilinear = XavierInitializer, MSRAInitializer, BilinearInitializer
