"""Optimizers with the names and arguments of 1.x.

Without a `parameter_list`, as in 1.5, an optimizer takes the parameters of all living `fluid.dygraph.Layer`s that have
a gradient when `minimize` is called. A decay of the learning rate moves on with every step.
"""

from __future__ import annotations

from ... import optimizer as new
from .. import _late
from .dygraph.layers import living_parameters
from .dygraph.learning_rate_scheduler import LearningRateDecay


class Optimizer:
    """Changes parameters by their gradients."""

    _kind: str

    def __init__(self, learning_rate, parameter_list, regularization, grad_clip, **settings):
        self._learning_rate = learning_rate
        self._given = None if parameter_list is None else list(parameter_list)
        rate = learning_rate.schedule if isinstance(learning_rate, LearningRateDecay) else learning_rate
        self._settings = settings | {"learning_rate": rate, "weight_decay": regularization, "grad_clip": grad_clip}
        # Parameters of layers that appear later get an optimizer of their own.
        self._parts: list = []
        self._covered: set[int] = set()
        self._state: dict = {}
        if self._given is not None:
            self._cover(self._given)

    def _cover(self, parameters) -> None:
        fresh = [p for p in parameters if id(p) not in self._covered]
        if fresh:
            part = getattr(new, self._kind)(parameters=fresh, **self._settings)
            self._parts.append(part)
            self._restore(part)
            self._covered.update(map(id, fresh))

    def _restore(self, part) -> None:
        if self._state:
            state = dict(self._state)
            if isinstance(self._learning_rate, LearningRateDecay):
                # The decay is shared, and knows its place.
                state["LR_Scheduler"] = part.state_dict()["LR_Scheduler"]
            part.set_state_dict(state)

    def minimize(self, loss, startup_program=None, parameter_list=None, no_grad_set=None, grad_clip=None):
        """One step; `loss.backward()` comes before it."""
        if self._given is None or parameter_list is not None:
            wanted = living_parameters() if parameter_list is None else list(parameter_list)
            self._cover([p for p in wanted if p.grad is not None and not p.stop_gradient])
        for part in self._parts:
            part.step()
        if isinstance(self._learning_rate, LearningRateDecay):
            self._learning_rate.step()
        return None, []

    def step(self) -> None:
        """One step."""
        self.minimize(None)

    def clear_gradients(self) -> None:
        """Forgets the gradients."""
        for part in self._parts:
            part.clear_grad()

    clear_grad = clear_gradients

    def current_step_lr(self) -> float:
        """The learning rate now."""
        if isinstance(self._learning_rate, LearningRateDecay):
            return self._learning_rate.value()
        return self._parts[0].get_lr() if self._parts else float(self._learning_rate)

    get_lr = current_step_lr

    def set_lr(self, value) -> None:
        """Sets the learning rate."""
        if isinstance(self._learning_rate, LearningRateDecay):
            raise RuntimeError("(PreconditionNotMet) set_lr: the learning rate follows a decay.")
        self._learning_rate = self._settings["learning_rate"] = float(value)
        for part in self._parts:
            part.set_lr(float(value))

    def state_dict(self) -> dict:
        """Everything it remembers."""
        state = dict(self._state)
        for part in self._parts:
            state.update(part.state_dict())
        if isinstance(self._learning_rate, LearningRateDecay):
            state["global_step"] = self._learning_rate.step_num
        return state

    def set_dict(self, state_dict) -> None:
        """Goes on from what it remembered, also before the first step."""
        self._state = dict(state_dict)
        step = self._state.pop("global_step", None)
        if step is not None and isinstance(self._learning_rate, LearningRateDecay):
            self._learning_rate.go_to(int(step))
        self._state.pop("LR_Scheduler", None)
        for part in self._parts:
            self._restore(part)

    set_state_dict = set_dict


class SGDOptimizer(Optimizer):
    """Plain gradient descent."""

    _kind = "SGD"

    def __init__(self, learning_rate, parameter_list=None, regularization=None, grad_clip=None, name=None):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip)


class MomentumOptimizer(Optimizer):
    """Gradient descent with a momentum."""

    _kind = "Momentum"

    def __init__(
        self,
        learning_rate,
        momentum=0.9,
        parameter_list=None,
        use_nesterov=False,
        regularization=None,
        grad_clip=None,
        name=None,
    ):
        super().__init__(
            learning_rate, parameter_list, regularization, grad_clip, momentum=momentum, use_nesterov=use_nesterov
        )


class AdagradOptimizer(Optimizer):
    """Adagrad."""

    _kind = "Adagrad"

    def __init__(
        self,
        learning_rate,
        epsilon=1e-6,
        parameter_list=None,
        regularization=None,
        grad_clip=None,
        name=None,
        initial_accumulator_value=0.0,
    ):
        more = {"epsilon": epsilon, "initial_accumulator_value": initial_accumulator_value}
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, **more)


class AdamOptimizer(Optimizer):
    """Adam."""

    _kind = "Adam"

    def __init__(
        self,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
        parameter_list=None,
        regularization=None,
        grad_clip=None,
        name=None,
        lazy_mode=False,
    ):
        super().__init__(
            learning_rate, parameter_list, regularization, grad_clip, beta1=beta1, beta2=beta2, epsilon=epsilon
        )


class AdamaxOptimizer(Optimizer):
    """Adamax."""

    _kind = "Adamax"

    def __init__(
        self,
        learning_rate=0.001,
        beta1=0.9,
        beta2=0.999,
        epsilon=1e-8,
        parameter_list=None,
        regularization=None,
        grad_clip=None,
        name=None,
    ):
        super().__init__(
            learning_rate, parameter_list, regularization, grad_clip, beta1=beta1, beta2=beta2, epsilon=epsilon
        )


class AdadeltaOptimizer(Optimizer):
    """Adadelta."""

    _kind = "Adadelta"

    def __init__(
        self, learning_rate, epsilon=1e-6, rho=0.95, parameter_list=None, regularization=None, grad_clip=None, name=None
    ):
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, epsilon=epsilon, rho=rho)


class RMSPropOptimizer(Optimizer):
    """RMSProp."""

    _kind = "RMSProp"

    def __init__(
        self,
        learning_rate,
        rho=0.95,
        epsilon=1e-6,
        momentum=0.0,
        centered=False,
        parameter_list=None,
        regularization=None,
        grad_clip=None,
        name=None,
    ):
        more = {"rho": rho, "epsilon": epsilon, "momentum": momentum, "centered": centered}
        super().__init__(learning_rate, parameter_list, regularization, grad_clip, **more)


SGD, Momentum, Adagrad, Adam = SGDOptimizer, MomentumOptimizer, AdagradOptimizer, AdamOptimizer
Adamax, Adadelta, RMSProp = AdamaxOptimizer, AdadeltaOptimizer, RMSPropOptimizer

__getattr__ = _late.names(__name__, {}, f"there are {', '.join(c.__name__ for c in Optimizer.__subclasses__())}.")
