"""Penalties on parameters, with the argument names of 1.x."""

from ... import _core


def _decay(kind: str):
    class Decay:
        def __init__(self, regularization_coeff: float = 0.0):
            self._regularization_coeff = regularization_coeff
            self._core = _core._regularizer(kind, float(regularization_coeff))

        def __str__(self):
            return f"{kind}Decay, regularization_coeff={self._regularization_coeff:f}"

    Decay.__name__ = Decay.__qualname__ = f"{kind}Decay"
    Decay.__doc__ = f"Adds the {kind} penalty of the parameters, times the coefficient, to the loss."
    return Decay


L1Decay = L1DecayRegularizer = _decay("L1")
L2Decay = L2DecayRegularizer = _decay("L2")
