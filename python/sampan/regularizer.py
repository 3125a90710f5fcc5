"""Penalties on the size of parameters: Paddle's `regularizer`."""

from __future__ import annotations

from . import _core

__all__ = ["L1Decay", "L2Decay"]


class WeightDecayRegularizer:
    """A penalty: its gradient is added to a parameter's before each step."""

    _kind: str

    def __init__(self, coeff: float = 0.0):
        self._coeff = float(coeff)

    @property
    def coeff(self) -> float:
        """Its weight."""
        return self._coeff

    @property
    def _core(self):
        return _core._regularizer(self._kind, self._coeff)

    def __eq__(self, other) -> bool:
        return type(self) is type(other) and self._coeff == other._coeff

    def __hash__(self) -> int:
        return hash((self._kind, self._coeff))

    def __repr__(self) -> str:
        return f"{type(self).__name__}(coeff={self._coeff})"


class L1Decay(WeightDecayRegularizer):
    """Adds `coeff * sign(p)` to the gradient of a parameter.

    >>> import sampan
    >>> sampan.regularizer.L1Decay(0.01)
    L1Decay(coeff=0.01)
    """

    _kind = "L1"

    def __call__(self, param, grad=None, block=None):
        """The penalty's gradient."""
        return param.detach().sign() * self._coeff


class L2Decay(WeightDecayRegularizer):
    """Adds `coeff * p` to the gradient of a parameter."""

    _kind = "L2"

    def __call__(self, param, grad=None, block=None):
        """The penalty's gradient."""
        return param.detach() * self._coeff


def _of(penalty) -> WeightDecayRegularizer | None:
    """The penalty that the core or a user writes as (kind, coefficient), a number, or an object."""
    if penalty is None or isinstance(penalty, WeightDecayRegularizer):
        return penalty
    if isinstance(penalty, tuple):
        return (L1Decay if penalty[0] == "L1" else L2Decay)(penalty[1])
    return L2Decay(penalty)
