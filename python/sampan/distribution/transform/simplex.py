"""Transforms of vectors of real numbers into shares that add up to 1."""

import sampan
from sampan.nn import functional as F

from .. import constraint, variable
from .base import Transform, Type


class SoftmaxTransform(Transform):
    """y = exp(x) divided by its sum over the last axis. It is not injective: x and x + c give the same y.

    >>> import sampan
    >>> from sampan.distribution import SoftmaxTransform
    >>> SoftmaxTransform().forward(sampan.zeros([4])).tolist()
    [0.25, 0.25, 0.25, 0.25]
    """

    _type = Type.OTHER

    @property
    def _domain(self):
        return variable.Independent(variable.real, 1)

    @property
    def _codomain(self):
        return variable.Variable(False, 1, constraint.simplex)

    def _forward(self, x):
        return F.softmax(x, axis=-1)

    def _inverse(self, y):
        return sampan.log(y)

    def _forward_shape(self, shape):
        if len(shape) < 1:
            raise ValueError(f"SoftmaxTransform: shape must have at least one axis, but received {shape}")
        return shape

    _inverse_shape = _forward_shape


class StickBreakingTransform(Transform):
    """n real numbers say where to break a stick of length 1, n times in turn; y are the n + 1 pieces.

    Each breaks off the share sigmoid(x - log k), with k pieces to come, so that x = 0 makes all pieces equal.

    >>> import sampan
    >>> from sampan.distribution import StickBreakingTransform
    >>> [round(y, 4) for y in StickBreakingTransform().forward(sampan.zeros([3])).tolist()]
    [0.25, 0.25, 0.25, 0.25]
    """

    _type = Type.BIJECTION

    @property
    def _domain(self):
        return variable.Independent(variable.real, 1)

    @property
    def _codomain(self):
        return variable.Variable(False, 1, constraint.simplex)

    @staticmethod
    def _log_to_come(n, dtype):
        return sampan.log(sampan.arange(n, 0, -1, dtype=dtype))

    def _log_pieces(self, x):
        """The logarithms of the share of the rest that each break takes, that it leaves, and of the rest after it."""
        x = x - self._log_to_come(x.shape[-1], x.dtype)
        take, leave = F.log_sigmoid(x), F.log_sigmoid(-x)
        return take, leave, sampan.cumsum(leave, -1)

    def _forward(self, x):
        take, leave, left = self._log_pieces(x)
        return sampan.exp(sampan.concat([take + left - leave, left[..., -1:]], axis=-1))

    def _inverse(self, y):
        pieces = y[..., :-1]
        # What is left is the sum of the pieces that follow.
        left = sampan.flip(sampan.cumsum(sampan.flip(y[..., 1:], [-1]), -1), [-1])
        return sampan.log(pieces) - sampan.log(left) + self._log_to_come(pieces.shape[-1], y.dtype)

    def _forward_log_det_jacobian(self, x):
        # Each piece depends on the breaks up to its own, so the matrix is triangular.
        take, leave, left = self._log_pieces(x)
        return (take + left).sum(-1)

    def _forward_shape(self, shape):
        return self._resized(shape, 1)

    def _inverse_shape(self, shape):
        return self._resized(shape, -1)

    @staticmethod
    def _resized(shape, by):
        if not shape:
            raise ValueError(f"StickBreakingTransform: shape must have at least one axis, but received {shape}")
        return (*shape[:-1], shape[-1] + by)
