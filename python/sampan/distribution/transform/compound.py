"""Transforms made of others, and those that change the shape only."""

import math
from collections.abc import Sequence

import sampan

from .. import variable
from ..distribution import sum_rightmost
from .base import Transform, Type, checked_transforms


class ChainTransform(Transform):
    """All `transforms` in turn, the first one first.

    >>> import sampan
    >>> from sampan.distribution import AffineTransform, ChainTransform, ExpTransform
    >>> t = ChainTransform([AffineTransform(sampan.to_tensor(1.0), sampan.to_tensor(2.0)), ExpTransform()])
    >>> round(t.forward_log_det_jacobian(sampan.to_tensor([0.0])).item(), 4)  # log 2 + 1
    1.6931
    """

    def __init__(self, transforms):
        self.transforms = checked_transforms("ChainTransform", transforms)

    def _is_injective(self):
        return all(t._is_injective() for t in self.transforms)

    @property
    def _domain(self):
        domain, rank = self.transforms[0]._domain, self.transforms[-1]._codomain.event_rank
        for t in reversed(self.transforms):
            rank = max(rank - t._codomain.event_rank + t._domain.event_rank, t._domain.event_rank)
        return variable.Independent(domain, rank - domain.event_rank)

    @property
    def _codomain(self):
        codomain, rank = self.transforms[-1]._codomain, self.transforms[0]._domain.event_rank
        for t in self.transforms:
            rank = max(rank - t._domain.event_rank + t._codomain.event_rank, t._codomain.event_rank)
        return variable.Independent(codomain, rank - codomain.event_rank)

    def _forward(self, x):
        for t in self.transforms:
            x = t.forward(x)
        return x

    def _inverse(self, y):
        for t in reversed(self.transforms):
            y = t.inverse(y)
        return y

    def _forward_log_det_jacobian(self, x):
        total, rank = 0.0, self._domain.event_rank
        for t in self.transforms:
            total = total + sum_rightmost(t.forward_log_det_jacobian(x), rank - t._domain.event_rank)
            x = t.forward(x)
            rank += t._codomain.event_rank - t._domain.event_rank
        return total

    def _forward_shape(self, shape):
        for t in self.transforms:
            shape = t.forward_shape(shape)
        return shape

    def _inverse_shape(self, shape):
        for t in reversed(self.transforms):
            shape = t.inverse_shape(shape)
        return shape


class IndependentTransform(Transform):
    """`base` with `reinterpreted_batch_rank` more axes in an event, over which log-determinants are summed.

    >>> import sampan
    >>> from sampan.distribution import ExpTransform, IndependentTransform
    >>> IndependentTransform(ExpTransform(), 1).forward_log_det_jacobian(sampan.to_tensor([[1.0, 2.0]])).tolist()
    [3.0]
    """

    def __init__(self, base, reinterpreted_batch_rank):
        if not isinstance(base, Transform):
            raise TypeError(f"IndependentTransform: base must be a Transform, but received {base!r}")
        if reinterpreted_batch_rank <= 0:
            raise ValueError(
                "IndependentTransform: reinterpreted_batch_rank must be greater than 0, "
                f"but received {reinterpreted_batch_rank}"
            )
        self._base, self._rank = base, reinterpreted_batch_rank

    def _is_injective(self):
        return self._base._is_injective()

    @property
    def _domain(self):
        return variable.Independent(self._base._domain, self._rank)

    @property
    def _codomain(self):
        return variable.Independent(self._base._codomain, self._rank)

    def _forward(self, x):
        return self._base.forward(x)

    def _inverse(self, y):
        return self._base.inverse(y)

    def _forward_log_det_jacobian(self, x):
        return sum_rightmost(self._base.forward_log_det_jacobian(x), self._rank)

    def _forward_shape(self, shape):
        return self._base.forward_shape(shape)

    def _inverse_shape(self, shape):
        return self._base.inverse_shape(shape)


class ReshapeTransform(Transform):
    """Events of `in_event_shape` in `out_event_shape`.

    >>> import sampan
    >>> from sampan.distribution import ReshapeTransform
    >>> ReshapeTransform((2, 3), (3, 2)).forward_shape((5, 2, 3))
    (5, 3, 2)
    """

    _type = Type.BIJECTION

    def __init__(self, in_event_shape, out_event_shape):
        for name, shape in (("in_event_shape", in_event_shape), ("out_event_shape", out_event_shape)):
            if not isinstance(shape, Sequence):
                raise TypeError(f"ReshapeTransform: {name} must be a sequence of ints, but received {shape!r}")
        if math.prod(in_event_shape) != math.prod(out_event_shape):
            raise ValueError(
                "ReshapeTransform: in_event_shape and out_event_shape must hold as many elements, but received "
                f"{tuple(in_event_shape)} and {tuple(out_event_shape)}"
            )
        self._in, self._out = tuple(in_event_shape), tuple(out_event_shape)

    @property
    def in_event_shape(self):
        """The shape of an event before."""
        return self._in

    @property
    def out_event_shape(self):
        """The shape of an event after."""
        return self._out

    @property
    def _domain(self):
        return variable.Independent(variable.real, len(self._in))

    @property
    def _codomain(self):
        return variable.Independent(variable.real, len(self._out))

    @staticmethod
    def _replaced(shape, old, new):
        """`shape` with `new` in the place of `old` at its end."""
        batch = len(shape) - len(old)
        if batch < 0 or tuple(shape[batch:]) != old:
            raise ValueError(f"ReshapeTransform: the shape must end in {old}, but received {tuple(shape)}")
        return tuple(shape[:batch]) + new

    def _forward(self, x):
        return x.reshape(list(self._replaced(x.shape, self._in, self._out)))

    def _inverse(self, y):
        return y.reshape(list(self._replaced(y.shape, self._out, self._in)))

    def _forward_shape(self, shape):
        return self._replaced(shape, self._in, self._out)

    def _inverse_shape(self, shape):
        return self._replaced(shape, self._out, self._in)

    def _forward_log_det_jacobian(self, x):
        return sampan.zeros(list(self._replaced(x.shape, self._in, ())), dtype=x.dtype)


class StackTransform(Transform):
    """One transform for each position along `axis`.

    >>> import sampan
    >>> from sampan.distribution import AbsTransform, ExpTransform, StackTransform
    >>> StackTransform([ExpTransform(), AbsTransform()], axis=1).forward(sampan.to_tensor([[0.0, -2.0]])).tolist()
    [[1.0, 2.0]]
    """

    def __init__(self, transforms, axis=0):
        self._transforms = checked_transforms("StackTransform", transforms or None)
        if not isinstance(axis, int):
            raise TypeError(f"StackTransform: axis must be an int, but received {type(axis).__name__} {axis!r}")
        self._axis = axis

    @property
    def transforms(self):
        """The transforms."""
        return self._transforms

    @property
    def axis(self):
        """The axis along which they lie."""
        return self._axis

    def _is_injective(self):
        return all(t._is_injective() for t in self._transforms)

    @property
    def _domain(self):
        return variable.Stack([t._domain for t in self._transforms], self._axis)

    @property
    def _codomain(self):
        return variable.Stack([t._codomain for t in self._transforms], self._axis)

    def _apply(self, method, value):
        """The results of `method` of each transform for its part of `value`."""
        rank = len(value.shape)
        if not -rank <= self._axis < rank or value.shape[self._axis] != len(self._transforms):
            raise ValueError(
                f"StackTransform: the axis {self._axis} must have the length {len(self._transforms)}, one for each "
                f"transform, but received the shape {list(value.shape)}"
            )
        return [getattr(t, method)(v) for t, v in zip(self._transforms, sampan.unstack(value, self._axis))]

    def _forward(self, x):
        return sampan.stack(self._apply("forward", x), self._axis)

    def _inverse(self, y):
        return sampan.stack(self._apply("inverse", y), self._axis)

    def _forward_log_det_jacobian(self, x):
        ranks = [t._domain.event_rank for t in self._transforms]
        parts = self._apply("forward_log_det_jacobian", x)
        parts = [sum_rightmost(part, max(ranks) - rank) for part, rank in zip(parts, ranks)]
        if -max(ranks) <= self._axis < 0:
            return sum(parts)  # The axis lies inside the events.
        return sampan.stack(parts, self._axis + max(ranks) if self._axis < 0 else self._axis)
