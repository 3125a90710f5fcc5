"""Losses scaled up, so that small gradients survive float16."""

from __future__ import annotations

import warnings

from .. import _core
from .auto_cast import _last_asked_for


class AmpScaler:
    """Scales a loss up before `backward` and the gradients down before a step; skips a step with gradients that are not
    finite and halves the scale then; doubles it after many good steps."""

    def __init__(
        self,
        enable: bool = True,
        init_loss_scaling: float = 2.0**15,
        incr_ratio: float = 2.0,
        decr_ratio: float = 0.5,
        incr_every_n_steps: int = 1000,
        decr_every_n_nan_or_inf: int = 1,
        use_dynamic_loss_scaling: bool = True,
    ):
        self._enable = bool(enable)
        # What `state_dict` gives once bfloat16 has turned the scaler off: a new one, still on, can load it.
        self._kept: dict = {}
        self._use_dynamic_loss_scaling = False
        self._init_loss_scaling = 1.0
        self._scale = None
        if not enable:
            return
        self.set_incr_ratio(incr_ratio)
        self.set_decr_ratio(decr_ratio)
        self._init_loss_scaling = init_loss_scaling
        self._incr_every_n_steps = incr_every_n_steps
        self._decr_every_n_nan_or_inf = decr_every_n_nan_or_inf
        self._use_dynamic_loss_scaling = use_dynamic_loss_scaling
        self._incr_count = self._decr_count = 0
        self._found_inf = False
        # Asks other processes whether any of them found a gradient that is not finite.
        self._agree = bool
        # Optimizers whose gradients were scaled down, or that made their step, since the last update.
        self._unscaled: dict[int, bool] = {}
        self._stepped: set[int] = set()
        self._set_scale(init_loss_scaling)

    def _set_scale(self, value: float) -> None:
        self._value = float(value)
        new = _core.to_tensor_py([self._value], "float32")
        # In place, since recorded work of a GPU knows where it lies.
        if self._scale is None or self._scale.place != new.place:
            self._scale = new
        else:
            self._scale.set_value(new)

    def scale(self, var):
        """The loss times the scale."""
        if not isinstance(var, _core.Tensor):
            raise TypeError(f"(InvalidType) scale: a Tensor is needed, got {type(var).__name__}.")
        dtype = _last_asked_for()
        if self._enable and self._use_dynamic_loss_scaling and dtype != "float16":
            self._kept = self.state_dict()
            self._enable = self._use_dynamic_loss_scaling = False
            self._init_loss_scaling = 1.0
            warnings.warn(
                f"{dtype} has the range of float32, so that nothing is to be scaled: GradScaler is off.",
                stacklevel=2,
            )
        return var * self._scale if self._enable else var

    def _unscale(self, optimizer) -> None:
        if not self._enable:
            return
        key = id(optimizer)
        if key in self._stepped:
            raise RuntimeError("(PreconditionNotMet) unscale_() is called after step(). Hint: call update() first.")
        if key in self._unscaled:
            raise RuntimeError(
                "(PreconditionNotMet) unscale_() was called on this optimizer since the last update() already."
            )
        parameters, scale = _parameters(optimizer), self._scale
        plain = [p for p in parameters if not getattr(p, "_master_grad", False)]
        wide = [p for p in parameters if getattr(p, "_master_grad", False)]
        found = [_core._unscale(plain, scale, False), _core._unscale(wide, scale, True)]
        # None where work of a GPU is recorded: it leaves steps out by itself, and the answer comes afterwards.
        self._found_inf = None if None in found else self._agree(any(found))
        self._unscaled[key] = self._found_inf

    def _step(self, optimizer, make_step):
        """Makes a step unless a gradient is not finite."""
        if id(optimizer) not in self._unscaled:
            self._unscale(optimizer)
        self._found_inf = self._unscaled[id(optimizer)]
        return None if self._found_inf else make_step()

    def minimize(self, optimizer, *args, **kwargs):
        """`step` and `update` in one: with the loss, after `backward`."""
        if not self._enable:
            return optimizer.minimize(*args, **kwargs)
        result = self._step(optimizer, lambda: optimizer.minimize(*args, **kwargs))
        self._update()
        return result or (None, None)

    def _update(self) -> None:
        self._unscaled.clear()
        self._stepped.clear()
        if self._found_inf is None:
            _core._afterwards(self._learn)
        else:
            self._learn(self._found_inf)

    def _learn(self, found_inf: bool) -> None:
        """Moves the scale by what was found."""
        self._found_inf = found_inf
        if not self._use_dynamic_loss_scaling:
            return
        if found_inf:
            self._incr_count = 0
            self._decr_count += 1
            if self._decr_count == self._decr_every_n_nan_or_inf:
                before = self._value
                print(f"Found inf or nan, current scale is: {before}, decrease to: {before}*{float(self._decr_ratio)}")
                self._set_scale(before * self._decr_ratio)
                self._decr_count = 0
        else:
            self._decr_count = 0
            self._incr_count += 1
            if self._incr_count == self._incr_every_n_steps:
                self._set_scale(self._value * self._incr_ratio)
                self._incr_count = 0

    def is_enable(self) -> bool:
        """Does it scale?"""
        return self._enable

    def is_use_dynamic_loss_scaling(self) -> bool:
        """Does the scale follow the gradients?"""
        return self._use_dynamic_loss_scaling

    def get_init_loss_scaling(self) -> float:
        """The first scale."""
        return self._init_loss_scaling

    def set_init_loss_scaling(self, new_init_loss_scaling: float) -> None:
        """Sets the first scale, and goes back to it."""
        self._init_loss_scaling = new_init_loss_scaling
        self._set_scale(new_init_loss_scaling)

    def get_incr_ratio(self) -> float:
        """By what the scale grows."""
        return self._incr_ratio

    def set_incr_ratio(self, new_incr_ratio: float) -> None:
        """Sets by what the scale grows: more than 1."""
        if new_incr_ratio <= 1.0:
            raise ValueError(f"(InvalidArgument) GradScaler: incr_ratio must be above 1, got {new_incr_ratio}.")
        self._incr_ratio = new_incr_ratio

    def get_decr_ratio(self) -> float:
        """By what the scale shrinks."""
        return self._decr_ratio

    def set_decr_ratio(self, new_decr_ratio: float) -> None:
        """Sets by what the scale shrinks: less than 1."""
        if new_decr_ratio >= 1.0:
            raise ValueError(f"(InvalidArgument) GradScaler: decr_ratio must be below 1, got {new_decr_ratio}.")
        self._decr_ratio = new_decr_ratio

    def get_incr_every_n_steps(self) -> int:
        """After how many good steps the scale grows."""
        return self._incr_every_n_steps

    def set_incr_every_n_steps(self, new_incr_every_n_steps: int) -> None:
        """Sets after how many good steps the scale grows."""
        self._incr_every_n_steps = new_incr_every_n_steps

    def get_decr_every_n_nan_or_inf(self) -> int:
        """After how many skipped steps the scale shrinks."""
        return self._decr_every_n_nan_or_inf

    def set_decr_every_n_nan_or_inf(self, new_decr_every_n_nan_or_inf: int) -> None:
        """Sets after how many skipped steps the scale shrinks."""
        self._decr_every_n_nan_or_inf = new_decr_every_n_nan_or_inf

    _KEPT = ("incr_ratio", "decr_ratio", "incr_every_n_steps", "decr_every_n_nan_or_inf", "incr_count", "decr_count")

    def state_dict(self) -> dict:
        """What must be kept to go on later; empty if it does not scale."""
        if not self._enable:
            return dict(self._kept)
        state = {"scale": self._scale.numpy(), **{key: getattr(self, "_" + key) for key in self._KEPT}}
        return {**state, "use_dynamic_loss_scaling": self._use_dynamic_loss_scaling}

    def load_state_dict(self, state_dict: dict) -> None:
        """Goes on from a kept state."""
        if not self._enable:
            return
        if not state_dict:
            raise RuntimeError(
                "(NotFound) load_state_dict: the state is empty. Hint: it was saved by a scaler that was off."
            )
        self.set_init_loss_scaling(float(state_dict["scale"][0]))
        for key in (*self._KEPT, "use_dynamic_loss_scaling"):
            setattr(self, "_" + key, state_dict[key])

    set_state_dict = load_state_dict


def _parameters(optimizer) -> list:
    groups = optimizer._param_groups
    return [p for item in groups for p in (item["params"] if isinstance(item, dict) else [item])]


class GradScaler(AmpScaler):
    """Scales a loss up, so that small gradients survive float16, and the gradients down before a step.

    >>> import sampan
    >>> net = sampan.nn.Linear(2, 1)
    >>> opt = sampan.optimizer.SGD(0.1, parameters=net.parameters())
    >>> scaler = sampan.amp.GradScaler(init_loss_scaling=1024)
    >>> with sampan.amp.auto_cast():
    ...     loss = net(sampan.ones([1, 2])).mean()
    >>> scaler.scale(loss).backward()
    >>> scaler.step(opt)
    >>> scaler.update()
    """

    def __init__(
        self,
        enable: bool = True,
        init_loss_scaling: float = 2.0**16,
        incr_ratio: float = 2.0,
        decr_ratio: float = 0.5,
        incr_every_n_steps: int = 2000,
        decr_every_n_nan_or_inf: int = 1,
        use_dynamic_loss_scaling: bool = True,
    ):
        super().__init__(
            enable,
            init_loss_scaling,
            incr_ratio,
            decr_ratio,
            incr_every_n_steps,
            decr_every_n_nan_or_inf,
            use_dynamic_loss_scaling,
        )

    def unscale_(self, optimizer) -> None:
        """Divides the gradients by the scale, to look at them or clip them before `step`."""
        self._unscale(optimizer)

    def step(self, optimizer) -> None:
        """A step of the optimizer, unless a gradient is not finite."""
        if not self._enable:
            return optimizer.step()
        if id(optimizer) in self._stepped:
            raise RuntimeError("(PreconditionNotMet) step() was called since the last update() already.")
        self._step(optimizer, optimizer.step)
        self._stepped.add(id(optimizer))
        if not self._use_dynamic_loss_scaling:
            self._update()

    def update(self) -> None:
        """Moves the scale, after the steps of all optimizers."""
        if self._enable:
            self._update()
