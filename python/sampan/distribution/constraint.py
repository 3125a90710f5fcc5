"""Conditions that the values of a random variable meet."""

import sampan


class Constraint:
    """A condition; called with a value, it says for each element whether it holds."""

    def __call__(self, value):
        raise NotImplementedError(f"{type(self).__name__} has no __call__")

    def check(self, value):
        """The same as a call."""
        return self(value)


class Real(Constraint):
    """Any number but NaN.

    >>> import sampan
    >>> from sampan.distribution import constraint
    >>> constraint.real(sampan.to_tensor([1.0, float("nan")])).tolist()
    [True, False]
    """

    def __call__(self, value):
        return value == value


class Range(Constraint):
    """Numbers between `lower` and `upper`, ends included.

    >>> import sampan
    >>> from sampan.distribution import constraint
    >>> constraint.Range(0.0, 1.0)(sampan.to_tensor([0.0, 2.0])).tolist()
    [True, False]
    """

    def __init__(self, lower, upper):
        self._lower, self._upper = lower, upper

    def __call__(self, value):
        return sampan.logical_and(value >= self._lower, value <= self._upper)


class Positive(Constraint):
    """Numbers that are not negative.

    >>> import sampan
    >>> from sampan.distribution import constraint
    >>> constraint.positive(sampan.to_tensor([0.0, -1.0])).tolist()
    [True, False]
    """

    def __call__(self, value):
        return value >= 0.0


class Simplex(Constraint):
    """Vectors along the last axis whose elements are not negative and add up to 1.

    >>> import sampan
    >>> from sampan.distribution import constraint
    >>> constraint.simplex(sampan.to_tensor([[0.5, 0.5], [0.5, 0.6]])).tolist()
    [True, False]
    """

    def __call__(self, value):
        return sampan.logical_and((value >= 0.0).all(-1), sampan.abs(value.sum(-1) - 1.0) < 1e-6)


real = Real()
positive = Positive()
simplex = Simplex()
