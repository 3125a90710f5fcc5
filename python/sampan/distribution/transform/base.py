"""The base of all transforms."""

import enum
from collections.abc import Sequence

import sampan

from .. import variable
from ..distribution import Distribution


class Type(enum.Enum):
    """How a transform pairs its inputs with its outputs."""

    BIJECTION = "bijection"
    INJECTION = "injection"
    SURJECTION = "surjection"
    OTHER = "other"

    @classmethod
    def is_injective(cls, _type):
        """Whether no two inputs give one output."""
        return _type in (cls.BIJECTION, cls.INJECTION)


class Transform:
    """A function y = f(x) that knows its inverse and the logarithm of how much it stretches volume.

    A subclass gives `_forward`, `_inverse` and one of `_forward_log_det_jacobian` and `_inverse_log_det_jacobian`, and,
    where they differ from a real number each, `_domain`, `_codomain`, `_forward_shape` and `_inverse_shape`.
    A transform called with a Tensor transforms it; called with a Distribution it gives a TransformedDistribution, and
    with another transform the chain of both, itself first.

    >>> import sampan
    >>> from sampan.distribution import Transform
    >>> class Double(Transform):
    ...     def _forward(self, x):
    ...         return 2.0 * x
    ...     def _inverse(self, y):
    ...         return y / 2.0
    ...     def _forward_log_det_jacobian(self, x):
    ...         return sampan.log(sampan.full_like(x, 2.0))
    >>> x = sampan.to_tensor([1.0, 2.0])
    >>> Double()(x).tolist(), round(Double().inverse_log_det_jacobian(x)[0].item(), 4)
    ([2.0, 4.0], -0.6931)
    """

    _type = Type.INJECTION

    @classmethod
    def _is_injective(cls):
        return Type.is_injective(cls._type)

    def __call__(self, input):
        if isinstance(input, Distribution):
            from ..transformed import TransformedDistribution

            return TransformedDistribution(input, [self])
        if isinstance(input, Transform):
            from .compound import ChainTransform

            return ChainTransform([self, input])
        return self.forward(input)

    def forward(self, x):
        """f(x)."""
        return self._forward(self._checked("x", x, self._domain))

    def inverse(self, y):
        """The x with f(x) = y."""
        return self._inverse(self._checked("y", y, self._codomain))

    def forward_log_det_jacobian(self, x):
        """The logarithm of how much f stretches volume at `x`."""
        self._checked("x", x, self._domain)
        if not self._is_injective():
            raise NotImplementedError(
                f"{type(self).__name__} has no forward_log_det_jacobian: different inputs give the same output"
            )
        if hasattr(self, "_forward_log_det_jacobian"):
            return self._forward_log_det_jacobian(x)
        if hasattr(self, "_inverse_log_det_jacobian"):
            return -self._inverse_log_det_jacobian(self.forward(x))
        raise self._no_jacobian()

    def inverse_log_det_jacobian(self, y):
        """The logarithm of how much the inverse of f stretches volume at `y`."""
        self._checked("y", y, self._codomain)
        if hasattr(self, "_inverse_log_det_jacobian"):
            return self._inverse_log_det_jacobian(y)
        if hasattr(self, "_forward_log_det_jacobian"):
            return -self._forward_log_det_jacobian(self._inverse(y))
        raise self._no_jacobian()

    def forward_shape(self, shape):
        """The shape of f(x) for an x of `shape`."""
        return self._forward_shape(self._checked_shape(shape))

    def inverse_shape(self, shape):
        """The shape of an x whose f(x) has `shape`."""
        return self._inverse_shape(self._checked_shape(shape))

    @property
    def _domain(self):
        return variable.real

    @property
    def _codomain(self):
        return variable.real

    def _forward(self, x):
        raise NotImplementedError(f"{type(self).__name__} has no _forward")

    def _inverse(self, y):
        raise NotImplementedError(f"{type(self).__name__} has no _inverse")

    def _forward_shape(self, shape):
        return shape

    def _inverse_shape(self, shape):
        return shape

    def _no_jacobian(self):
        return NotImplementedError(
            f"{type(self).__name__} has neither _forward_log_det_jacobian nor _inverse_log_det_jacobian"
        )

    def _checked(self, name, value, place):
        checked_tensor(type(self).__name__, name, value)
        if len(value.shape) < place.event_rank:
            raise ValueError(
                f"{type(self).__name__}: {name} must have at least {place.event_rank} axes, "
                f"but received the shape {list(value.shape)}"
            )
        return value

    def _checked_shape(self, shape):
        if not isinstance(shape, Sequence):
            raise TypeError(f"{type(self).__name__}: shape must be a sequence of ints, but received {shape!r}")
        return shape


def checked_tensor(owner, name, value):
    """`value`, or an error if it is not a Tensor."""
    if not isinstance(value, sampan.Tensor):
        raise TypeError(f"{owner}: {name} must be a Tensor, but received {type(value).__name__} {value!r}")
    return value


def checked_transforms(owner, transforms):
    """`transforms`, or an error if they are not a sequence of Transform."""
    if not isinstance(transforms, Sequence) or not all(isinstance(t, Transform) for t in transforms):
        raise TypeError(f"{owner}: transforms must be a sequence of Transform, but received {transforms!r}")
    return transforms
