"""What a random variable is: discrete or not, the number of axes of one event, and what its values meet."""

import sampan

from . import constraint as _constraint


class Variable:
    """A random variable.

    >>> import sampan
    >>> from sampan.distribution import variable
    >>> variable.Independent(variable.positive, 1).constraint(sampan.to_tensor([[1.0, 2.0], [1.0, -2.0]])).tolist()
    [True, False]
    """

    def __init__(self, is_discrete=False, event_rank=0, constraint=None):
        self._is_discrete, self._event_rank, self._constraint = is_discrete, event_rank, constraint

    @property
    def is_discrete(self):
        """Whether the values can be counted."""
        return self._is_discrete

    @property
    def event_rank(self):
        """The number of axes of one event."""
        return self._event_rank

    def constraint(self, value):
        """For each event in `value`, whether it is a possible one."""
        if self._constraint is None:
            raise NotImplementedError(f"{type(self).__name__} was made without a constraint")
        return self._constraint.check(value)


class Real(Variable):
    """Real numbers."""

    def __init__(self, event_rank=0):
        super().__init__(False, event_rank, _constraint.real)


class Positive(Variable):
    """Numbers that are not negative."""

    def __init__(self, event_rank=0):
        super().__init__(False, event_rank, _constraint.positive)


class Independent(Variable):
    """`base` with `reinterpreted_batch_rank` more axes in an event."""

    def __init__(self, base, reinterpreted_batch_rank):
        self._base, self._rank = base, reinterpreted_batch_rank
        super().__init__(base.is_discrete, base.event_rank + reinterpreted_batch_rank)

    def constraint(self, value):
        """Whether all parts of an event are possible."""
        holds = self._base.constraint(value)
        if len(holds.shape) < self._rank:
            raise ValueError(f"value must have at least {self._rank} axes, but received the shape {list(value.shape)}")
        return holds.all(list(range(-self._rank, 0))) if self._rank else holds


class Stack(Variable):
    """One variable for each position along `axis`."""

    def __init__(self, vars, axis=0):
        self._vars, self._axis = vars, axis

    @property
    def is_discrete(self):
        return any(var.is_discrete for var in self._vars)

    @property
    def event_rank(self):
        rank = max(var.event_rank for var in self._vars)
        return rank + 1 if -rank <= self._axis < 0 else rank  # The axis may lie inside the events.

    def constraint(self, value):
        """For each event of each variable, whether it is a possible one."""
        rank = len(value.shape)
        if not -rank <= self._axis < rank:
            raise ValueError(f"value must have the axis {self._axis}, but received the shape {list(value.shape)}")
        parts = zip(self._vars, sampan.unstack(value, self._axis))
        return sampan.stack([var.constraint(part) for var, part in parts], self._axis)


real = Real()
positive = Positive()
