"""Penalties on parameters, with the argument names of 1.x."""

from ... import regularizer as new


class L1Decay(new.L1Decay):
    """Adds the sum of the absolute values of the parameters, times the coefficient, to the loss."""

    def __init__(self, regularization_coeff: float = 0.0):
        super().__init__(regularization_coeff)


class L2Decay(new.L2Decay):
    """Adds half the sum of the squares of the parameters, times the coefficient, to the loss."""

    def __init__(self, regularization_coeff: float = 0.0):
        super().__init__(regularization_coeff)


L1DecayRegularizer, L2DecayRegularizer = L1Decay, L2Decay
