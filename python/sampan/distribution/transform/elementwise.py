"""Transforms of each element by itself."""

import math

import sampan
from sampan.nn import functional as F

from .. import constraint, variable
from ..distribution import broadcast_shape
from .base import Transform, Type, checked_tensor


class AbsTransform(Transform):
    """y = |x|. Its inverse is both: -y and y.

    >>> import sampan
    >>> from sampan.distribution import AbsTransform
    >>> [x.tolist() for x in AbsTransform().inverse(sampan.to_tensor([1.0]))]
    [[-1.0], [1.0]]
    """

    _type = Type.SURJECTION

    @property
    def _codomain(self):
        return variable.positive

    def _forward(self, x):
        return sampan.abs(x)

    def _inverse(self, y):
        return -y, y

    def _inverse_log_det_jacobian(self, y):
        zero = sampan.zeros([], dtype=y.dtype)
        return zero, zero


class AffineTransform(Transform):
    """y = loc + scale * x.

    >>> import sampan
    >>> from sampan.distribution import AffineTransform
    >>> t = AffineTransform(sampan.to_tensor(1.0), sampan.to_tensor(2.0))
    >>> t.forward(sampan.to_tensor([1.0, 2.0])).tolist()
    [3.0, 5.0]
    """

    _type = Type.BIJECTION

    def __init__(self, loc, scale):
        self._loc = checked_tensor("AffineTransform", "loc", loc)
        self._scale = checked_tensor("AffineTransform", "scale", scale)

    @property
    def loc(self):
        """What is added."""
        return self._loc

    @property
    def scale(self):
        """What x is multiplied by."""
        return self._scale

    def _forward(self, x):
        return self._loc + self._scale * x

    def _inverse(self, y):
        return (y - self._loc) / self._scale

    def _forward_log_det_jacobian(self, x):
        return sampan.log(sampan.abs(self._scale))

    def _forward_shape(self, shape):
        return tuple(broadcast_shape(shape, self._loc.shape, self._scale.shape))

    _inverse_shape = _forward_shape


class ExpTransform(Transform):
    """y = exp(x).

    >>> import sampan
    >>> from sampan.distribution import ExpTransform
    >>> ExpTransform().forward_log_det_jacobian(sampan.to_tensor([3.0])).tolist()
    [3.0]
    """

    _type = Type.BIJECTION

    @property
    def _codomain(self):
        return variable.positive

    def _forward(self, x):
        return sampan.exp(x)

    def _inverse(self, y):
        return sampan.log(y)

    def _forward_log_det_jacobian(self, x):
        return x


class PowerTransform(Transform):
    """y = x to the `power`, for positive x.

    >>> import sampan
    >>> from sampan.distribution import PowerTransform
    >>> PowerTransform(sampan.to_tensor(2.0)).inverse(sampan.to_tensor([9.0])).tolist()
    [3.0]
    """

    _type = Type.BIJECTION

    def __init__(self, power):
        self._power = checked_tensor("PowerTransform", "power", power)

    @property
    def power(self):
        """The exponent."""
        return self._power

    @property
    def _codomain(self):
        return variable.positive

    def _forward(self, x):
        return sampan.pow(x, self._power)

    def _inverse(self, y):
        return sampan.pow(y, 1.0 / self._power)

    def _forward_log_det_jacobian(self, x):
        return sampan.log(sampan.abs(self._power * sampan.pow(x, self._power - 1.0)))

    def _forward_shape(self, shape):
        return tuple(broadcast_shape(shape, self._power.shape))

    _inverse_shape = _forward_shape


class SigmoidTransform(Transform):
    """y = 1 / (1 + exp(-x)).

    >>> import sampan
    >>> from sampan.distribution import SigmoidTransform
    >>> t = SigmoidTransform()
    >>> t.forward(sampan.zeros([1])).tolist(), round(t.forward_log_det_jacobian(sampan.zeros([1])).item(), 4)
    ([0.5], -1.3863)
    """

    @property
    def _codomain(self):
        return variable.Variable(False, 0, constraint.Range(0.0, 1.0))

    def _forward(self, x):
        return F.sigmoid(x)

    def _inverse(self, y):
        return sampan.log(y) - sampan.log1p(-y)

    def _forward_log_det_jacobian(self, x):
        return F.log_sigmoid(x) + F.log_sigmoid(-x)


class TanhTransform(Transform):
    """y = tanh(x).

    >>> import sampan
    >>> from sampan.distribution import TanhTransform
    >>> t = TanhTransform()
    >>> t.forward(sampan.zeros([1])).tolist(), abs(t.forward_log_det_jacobian(sampan.zeros([1])).item()) < 1e-6
    ([0.0], True)
    """

    _type = Type.BIJECTION

    @property
    def _codomain(self):
        return variable.Variable(False, 0, constraint.Range(-1.0, 1.0))

    def _forward(self, x):
        return sampan.tanh(x)

    def _inverse(self, y):
        return sampan.atanh(y)

    def _forward_log_det_jacobian(self, x):
        # 1 - tanh² = 4 sigmoid(2 x) sigmoid(-2 x), which does not vanish early for large |x|
        return F.log_sigmoid(2.0 * x) + F.log_sigmoid(-2.0 * x) + 2.0 * math.log(2)
