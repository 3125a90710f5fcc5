"""`Optimizer`, which people may subclass, and those of the core seen through it."""

from __future__ import annotations

from .. import _core, regularizer
from ..framework import no_grad
from .lr import LRScheduler

Tensor = _core.Tensor


def _as_list(parameters, name: str) -> list:
    """Parameters, or dicts of them with settings, as a list of its own."""
    if parameters is None:
        raise AttributeError(f"{name}: parameters is missing. Hint: pass parameters=net.parameters().")
    if isinstance(parameters, (Tensor, dict)):
        hint = "put it into a list" if isinstance(parameters, Tensor) else "a list of dicts makes groups"
        raise TypeError(
            f"(InvalidType) {name}: parameters is a list of parameters or of dicts, got {type(parameters).__name__}. "
            f"Hint: {hint}."
        )
    items = list(parameters)
    for i, item in enumerate(items):
        if isinstance(item, dict):
            if "params" not in item:
                raise ValueError(
                    f"(InvalidArgument) {name}: a group of parameters is a dict with `params`, got {list(item)}."
                )
            params = item["params"]
            items[i] = {**item, "params": [params] if isinstance(params, Tensor) else list(params)}
    return items


class Optimizer:
    """Changes parameters by their gradients.

    A subclass of your own says in `_append_optimize_op(self, block, param_and_grad)` how one parameter changes, and in
    `_create_accumulators(self, block, parameters)` what is remembered about it (see `_add_accumulator`); gradient
    clipping, penalties, groups and saving come with this class.
    """

    def __init__(self, learning_rate, parameters=None, weight_decay=None, grad_clip=None, name=None):
        self._note(learning_rate, _as_list(parameters, type(self).__name__), weight_decay, grad_clip, name)
        self._accumulators: dict[str, dict[str, Tensor]] = {}
        self._loaded: dict = {}

    def _note(self, learning_rate, parameters: list, weight_decay, grad_clip, name) -> None:
        self._learning_rate = learning_rate
        self._parameter_list = parameters
        self._grad_clip = grad_clip
        self.regularization = regularizer._of(weight_decay)
        self._name = name
        self.type = type(self).__name__.lower()
        self._default_dict = {"weight_decay": self.regularization, "grad_clip": grad_clip}
        self._param_groups = parameters
        if parameters and isinstance(parameters[0], dict):
            self._param_groups = [self._settle({**self._default_dict, **group}) for group in parameters]

    # Is `weight_decay` a penalty, which a parameter may have of its own?
    _decays_by_penalty = True

    def _settle(self, group: dict) -> dict:
        """Gives the parameters of a group what the group says about them: there it can be changed later."""
        for p in group["params"]:
            if isinstance(p, _core.Parameter):
                p.optimize_attr = {"learning_rate": group.get("learning_rate", 1.0)}
                if self._decays_by_penalty:
                    p.regularizer = regularizer._of(group["weight_decay"])
        return group

    def _all_parameters(self) -> list:
        return [p for item in self._param_groups for p in (item["params"] if isinstance(item, dict) else [item])]

    # ---- steps

    @no_grad()
    def step(self, closure=None):
        """Changes the parameters by their gradients. `closure`, if given, computes the loss and its gradients first."""
        loss = None
        if closure is not None:
            with _core_grad():
                loss = closure()
        groups = self._param_groups
        for group in groups if isinstance(groups[0], dict) else [{**self._default_dict, "params": groups}]:
            pairs = [(p, p.grad) for p in group["params"] if not p.stop_gradient and p.grad is not None]
            self._apply_optimize(None, None, pairs, group)
        return loss

    def _apply_optimize(self, loss, startup_program, params_grads, group=None) -> list:
        group = group or self._default_dict
        if group["grad_clip"] is not None:
            params_grads = group["grad_clip"](params_grads)
        penalty = regularizer._of(group["weight_decay"]) or self.regularization
        new = []
        for p, g in params_grads:
            own = getattr(p, "regularizer", None) or penalty
            new.append((p, g if own is None else g + own(p).astype(g.dtype)))
        self._create_accumulators(None, [p for p, _ in new if p.name not in self._known()])
        for pair in new:
            self._append_optimize_op(None, pair)
        self._finish_update(None, new)
        return []

    def _known(self) -> set:
        return {name for values in self._accumulators.values() for name in values}

    def _append_optimize_op(self, block, param_and_grad):
        raise NotImplementedError(
            f"{type(self).__name__} has no _append_optimize_op(block, param_and_grad); define it to say how a "
            "parameter changes."
        )

    def _create_accumulators(self, block, parameters) -> None:
        """Makes what is remembered about parameters; a subclass calls `_add_accumulator` here."""

    def _finish_update(self, block, parameters_and_grads) -> None:
        """Called after a step."""

    def _add_accumulator(self, name, param, dtype=None, fill_value=0.0, shape=None, type=None, device=None) -> Tensor:
        values = self._accumulators.setdefault(name, {})
        if param.name in values:
            raise ValueError(f"(InvalidArgument) there is an accumulator {name!r} of {param.name} already.")
        from .. import full

        made = full(shape or param.shape, fill_value, dtype or param.dtype)
        made.name = f"{param.name}_{name}_0"
        if made.name in self._loaded:
            made.set_value(self._loaded.pop(made.name))
        values[param.name] = made
        return made

    def _get_accumulator(self, name, param) -> Tensor:
        return self._accumulators[name][param.name]

    _get_accumulator_master = _get_accumulator

    def _global_learning_rate(self) -> Tensor:
        return _core.to_tensor_py(self.get_lr(), "float32")

    def _create_param_lr(self, param_and_grad) -> Tensor:
        factor = getattr(param_and_grad[0], "optimize_attr", {"learning_rate": 1.0})["learning_rate"]
        return _core.to_tensor_py(self.get_lr() * factor, "float32")

    def backward(self, loss, startup_program=None, parameters=None, no_grad_set=None, callbacks=None) -> list:
        """The parameters with the gradients that `loss.backward()` left."""
        return [(p, p.grad) for p in parameters or self._all_parameters() if p.grad is not None and not p.stop_gradient]

    def apply_gradients(self, params_grads) -> list:
        """A step with the given gradients alone."""
        mine = self._all_parameters()
        before = [p.grad for p in mine]
        try:
            for p in mine:
                p.grad = None
            for p, g in params_grads:
                p.grad = g
            self.step()
        finally:
            for p, g in zip(mine, before):
                p.grad = g
        return []

    def minimize(self, loss, startup_program=None, parameters=None, no_grad_set=None) -> tuple[list, list]:
        """One step with the gradients that `loss.backward()` left; gives `([], pairs of parameter and gradient)`."""
        if not isinstance(loss, Tensor):
            raise TypeError(f"(InvalidType) minimize: loss is a Tensor, got {type(loss).__name__}.")
        pairs = self.backward(loss, parameters=parameters)
        if parameters is None:
            self.step()
        else:
            self.apply_gradients(pairs)
        return [], pairs

    def clear_grad(self, set_to_zero: bool = True) -> None:
        """Sets the gradients to zero, or (`set_to_zero=False`) forgets them."""
        for p in self._all_parameters():
            if not p.stop_gradient:
                p.clear_gradient(set_to_zero)

    def clear_gradients(self, set_to_zero: bool = True) -> None:
        """`clear_grad`."""
        self.clear_grad(set_to_zero)

    def zero_grad(self, set_to_zero: bool = True) -> None:
        """`clear_grad`."""
        self.clear_grad(set_to_zero)

    # ---- learning rate

    def get_lr(self) -> float:
        """The learning rate of the next step."""
        rate = self._learning_rate
        return float(rate() if isinstance(rate, LRScheduler) else rate)

    def set_lr(self, value: float) -> None:
        """Sets a learning rate that is a number; a schedule sets its own."""
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(f"(InvalidType) set_lr: value is a float, got {type(value).__name__}.")
        if isinstance(self._learning_rate, LRScheduler):
            raise RuntimeError(
                f"(PreconditionNotMet) set_lr: a schedule, {type(self._learning_rate).__name__}, sets the learning "
                "rate. "
                "Hint: set_lr_scheduler replaces it."
            )
        self._learning_rate = float(value)

    def set_lr_scheduler(self, scheduler: LRScheduler) -> None:
        """From now on a schedule sets the learning rate."""
        if not isinstance(scheduler, LRScheduler):
            raise TypeError(
                f"(InvalidType) set_lr_scheduler: an LRScheduler is needed, got {type(scheduler).__name__}."
            )
        self._learning_rate = scheduler

    # ---- state

    def _add_param_group(self, param_group: dict) -> None:
        """Trains more parameters: a dict with `params` and settings of their own."""
        group = _as_list([param_group], type(self).__name__)[0]
        if any(p is q for p in group["params"] for q in self._all_parameters()):
            raise ValueError("(InvalidArgument) _add_param_group: some parameters appear in more than one group.")
        if not isinstance(self._param_groups[0], dict):
            self._param_groups = [{**self._default_dict, "params": self._param_groups}]
        self._param_groups.append(self._settle({**self._default_dict, **group}))

    def state_dict(self) -> dict:
        """What must be kept to go on later: what is remembered about parameters, and the schedule."""
        state = {t.name: t for values in self._accumulators.values() for t in values.values()}
        if isinstance(self._learning_rate, LRScheduler):
            state["LR_Scheduler"] = self._learning_rate.state_dict()
        return state

    def set_state_dict(self, state_dict: dict) -> None:
        """Goes on from a kept state."""
        state = dict(state_dict)
        schedule = state.pop("LR_Scheduler", None)
        if isinstance(self._learning_rate, LRScheduler) and schedule is not None:
            self._learning_rate.set_state_dict(schedule)
        for values in self._accumulators.values():
            for t in values.values():
                if t.name not in state:
                    raise KeyError(f"(NotFound) set_state_dict: the state has no {t.name!r}.")
                t.set_value(state.pop(t.name))
        self._loaded = state

    def load_state_dict(self, state_dict: dict) -> None:
        """`set_state_dict`."""
        self.set_state_dict(state_dict)

    def set_dict(self, state_dict: dict) -> None:
        """`set_state_dict`."""
        self.set_state_dict(state_dict)

    def get_opti_var_name_list(self) -> list[str]:
        """The names of what is remembered."""
        return [name for name in self.state_dict() if name not in ("LR_Scheduler", "master_weights")]


def _core_grad():
    from ..framework import enable_grad

    return enable_grad()
