"""The optimizers of the core."""

from __future__ import annotations

from .. import _core
from ._functions import all_known_weakly
from .lr import LambdaDecay, LRScheduler
from .optimizer import Optimizer, _as_list


def _for_core(item):
    """A group without a decay of None, which means the optimizer's, and without the factor that its parameters know
    themselves; a plain tensor knows none."""
    if not isinstance(item, dict):
        return item
    known = all(isinstance(p, _core.Parameter) for p in item["params"])
    item = {key: value for key, value in item.items() if key != "learning_rate" or not known}
    if item.get("weight_decay", 0.0) is None:
        del item["weight_decay"]
    return item


# Once there are distributed tensors: makes a step with parameters of which each process has a part, if there are some.
step_elsewhere = None


class BuiltinOptimizer(Optimizer):
    """An optimizer of the core: a step is one pass over all parameters."""

    _definition: _core.ClassDef

    @property
    def _decays_by_penalty(self) -> bool:
        return self._definition.name != "AdamW"

    def __init__(self, *args, **kwargs):
        names = [p[0] for p in self._definition.params]
        if len(args) > len(names) + 1:
            raise TypeError(
                f"(InvalidType) {self._definition.name}: takes at most {len(names) + 1} arguments, got {len(args)}."
            )
        given = {**dict(zip([*names, "name"], args)), **kwargs}
        parameters = _as_list(given.get("parameters"), self._definition.name)
        rate = given.get("learning_rate")
        if isinstance(rate, _core.Tensor):
            given["learning_rate"] = rate.item()
        name = given.pop("name", None)
        groups = [_for_core(item) for item in parameters]
        # What the core is given leads to these, see `known_weakly`.
        self._functions = [value for value in given.values() if callable(value)]
        self._given = given
        self._core, self._settings = self._definition.make(**all_known_weakly({**given, "parameters": groups}))
        rate = given.get("learning_rate", self._settings.get("learning_rate"))
        self._note(rate, parameters, given.get("weight_decay"), given.get("grad_clip"), name)
        fixed = ("learning_rate", "parameters", "weight_decay", "grad_clip")
        self._default_dict.update((k, v) for k, v in self._settings.items() if k not in fixed)

    def _train_instead(self, others: dict) -> None:
        """Trains other parameters in the places of those with these ids. What it remembers begins anew."""

        def instead(item):
            if isinstance(item, dict):
                return {**item, "params": [others.get(id(p), p) for p in item["params"]]}
            return others.get(id(item), item)

        parameters = [instead(item) for item in self._parameter_list]
        groups = [_for_core(item) for item in parameters]
        self._core, _ = self._definition.make(**all_known_weakly({**self._given, "parameters": groups}))
        known = self._default_dict
        self._note(self._learning_rate, parameters, self._given.get("weight_decay"), self._grad_clip, self._name)
        self._default_dict = known

    def __getattr__(self, name: str):
        # `_beta1`, `_momentum` and the like: what it was made from.
        settings = self.__dict__.get("_settings")
        if settings and name.startswith("_") and name[1:] in settings:
            return settings[name[1:]]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def step(self, closure=None):
        """Changes the parameters by their gradients. `closure`, if given, computes the loss and its gradients first."""
        if step_elsewhere is not None and closure is None and step_elsewhere(self):
            return None
        return self._step_here(closure)

    def _step_here(self, closure=None):
        return self._core.step(closure)

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Sets the gradients to zero, or (`set_to_zero=False`) forgets them."""
        self._core.clear_grad(set_to_zero)

    def get_lr(self) -> float:
        """The learning rate of the next step."""
        return self._core.get_lr()

    def set_lr(self, value: float) -> None:
        """Sets a learning rate that is a number; a schedule sets its own."""
        super().set_lr(value)
        self._core.set_lr(self._learning_rate)

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """From now on a schedule sets the learning rate."""
        super().set_lr_scheduler(scheduler)
        self._core.set_lr_scheduler(scheduler._core)

    def _add_param_group(self, param_group: dict) -> None:
        """Trains more parameters: a dict with `params` and settings of their own."""
        group = _as_list([param_group], self._definition.name)[0]
        self._core.add_param_group(_for_core(group))
        super()._add_param_group(group)

    @property
    def _multi_precision(self) -> bool:
        return self._settings.get("multi_precision", False)

    @_multi_precision.setter
    def _multi_precision(self, on: bool) -> None:
        self._settings["multi_precision"] = on
        self._core.set_multi_precision(on)

    @property
    def _accumulators(self) -> dict[str, dict[str, _core.Tensor]]:
        """What is remembered, by name of the accumulator and of the parameter."""
        found: dict[str, dict[str, _core.Tensor]] = {}
        for name, parameter, tensor in self._core.accumulators():
            found.setdefault(name, {})[parameter] = tensor
        return found

    @property
    def _master_weights(self) -> dict[str, _core.Tensor]:
        return self._core.state_dict().get("master_weights", {})

    def state_dict(self) -> dict:
        """What must be kept to go on later, under Paddle's names: accumulators, master weights and the schedule."""
        return self._core.state_dict()

    def set_state_dict(self, state_dict: dict) -> None:
        """Goes on from a kept state; values may be tensors or arrays."""
        if isinstance(self._learning_rate, LambdaDecay) and "LR_Scheduler" not in state_dict:
            # Paddle asks for no state of a schedule that is the user's function.
            state_dict = {**state_dict, "LR_Scheduler": self._learning_rate.state_dict()}
        self._core.set_state_dict(state_dict)
