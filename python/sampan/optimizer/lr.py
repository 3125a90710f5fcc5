"""Learning rates that follow the epochs: Paddle's `optimizer.lr`."""

from __future__ import annotations

import warnings
import weakref

from .. import _core, _registry
from ._functions import all_known_weakly, known_weakly


class LRScheduler:
    """A learning rate that follows the epochs. Subclass it: `get_lr` says the rate of `self.last_epoch`.

    >>> import sampan
    >>> class Halved(sampan.optimizer.lr.LRScheduler):
    ...     def get_lr(self):
    ...         return self.base_lr * 0.5**self.last_epoch
    >>> lr = Halved(learning_rate=0.8)
    >>> lr.step()
    >>> lr()
    0.4
    """

    def __init__(self, learning_rate: float = 0.1, last_epoch: int = -1, verbose: bool = False):
        if isinstance(learning_rate, bool) or not isinstance(learning_rate, (float, int)):
            raise TypeError(f"(InvalidType) learning_rate is a float, got {type(learning_rate).__name__}.")
        if learning_rate < 0:
            raise ValueError(f"(InvalidArgument) the learning rate must not be negative, got {learning_rate}.")
        self.base_lr = float(learning_rate)
        self.last_lr = float(learning_rate)
        self.last_epoch = last_epoch
        self.verbose = verbose
        self.step()

    @property
    def _core(self):
        """The schedule for an optimizer of the core. It knows this object weakly: who uses it in Python keeps it."""
        return _core._python_schedule(weakref.proxy(self))

    def __call__(self) -> float:
        """The learning rate now."""
        return self.last_lr

    def step(self, epoch: int | None = None) -> None:
        """Goes to the next epoch, or to a given one."""
        if _core._is_recording():
            _core._afterwards(lambda _: self.step(epoch))
            return
        if epoch is None:
            self.last_epoch += 1
            lr = self.get_lr()
        else:
            self.last_epoch = epoch
            closed_form = getattr(self, "_get_closed_form_lr", self.get_lr)
            lr = closed_form()
        if not hasattr(lr, "__float__"):
            raise TypeError(
                f"(InvalidType) {type(self).__name__}: get_lr must return a number, got {type(lr).__name__}."
            )
        self.last_lr = lr
        if self.verbose:
            print(f"Epoch {self.last_epoch}: {type(self).__name__} set learning rate to {self.last_lr}.")

    def get_lr(self) -> float:
        """The learning rate of `self.last_epoch`; every schedule of your own defines it."""
        raise NotImplementedError(
            f"{type(self).__name__} has no get_lr(); define it to say the rate of self.last_epoch."
        )

    def state_keys(self) -> None:
        """Sets `self.keys`, the attributes that are kept; redefine it to keep more."""
        self.keys = ["last_epoch", "last_lr"]

    def state_dict(self) -> dict:
        """What must be kept to go on later."""
        self.state_keys()
        state = {}
        for key in self.keys:
            if key in self.__dict__:
                value = self.__dict__[key]
                state[key] = value.item() if isinstance(value, _core.Tensor) else value
        return state

    def set_state_dict(self, state_dict: dict) -> None:
        """Goes on from a kept state."""
        self.state_keys()
        for key in self.keys:
            if key not in state_dict:
                raise RuntimeError(
                    f"(NotFound) the schedule's state has no `{key}`. Hint: it was saved by another kind of schedule."
                )
            self.__dict__[key] = state_dict[key]
        if len(state_dict) > len(self.keys):
            more = sorted(set(state_dict) - set(self.keys))
            name = type(self).__name__
            warnings.warn(f"{name} does not use these values of the state: {', '.join(more)}.", stacklevel=2)

    def set_dict(self, state_dict: dict) -> None:
        """`set_state_dict`."""
        self.set_state_dict(state_dict)


def _of_clock(name: str) -> property:
    """A value that the core keeps."""
    return property(
        lambda self: getattr(self._rust, name), lambda self, value: setattr(self._rust, name, value), doc=f"`{name}`"
    )


class _BuiltinScheduler(LRScheduler):
    """A schedule of the core. A subclass may compute another rate from that of `super().get_lr()`."""

    _definition: _core.ClassDef
    _takes_name = False

    base_lr = _of_clock("base_lr")
    last_lr = _of_clock("last_lr")
    last_epoch = _of_clock("last_epoch")
    verbose = _of_clock("verbose")

    def __init__(self, *args, **kwargs):
        names = [p[0] for p in self._definition.params]
        self._given = {**dict(zip(names, args)), **kwargs}
        self._rust, self._settings = self._definition.make(*map(known_weakly, args), **all_known_weakly(kwargs))
        if self._is_changed() and not self._rust.needs_metric:
            # The first step is to be that of the subclass.
            self.last_epoch, self.last_lr = self._given.get("last_epoch", -1), self.base_lr
            self.step()

    def __getattr__(self, name: str):
        # `gamma`, `T_max` and the like: what it was made from.
        for source in ("_given", "_settings"):
            values = self.__dict__.get(source)
            if values and name in values:
                return values[name]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __getstate__(self) -> dict:
        # What the core holds is made anew in a copy, from the same arguments, and put where it stood.
        kept = {key: value for key, value in self.__dict__.items() if key not in ("_rust", "_settings")}
        return {**kept, "_state": self.state_dict(), "_base_lr": self.base_lr}

    def __setstate__(self, kept: dict) -> None:
        state, base_lr = kept.pop("_state"), kept.pop("_base_lr")
        self.__dict__.update(kept)
        self._rust, self._settings = self._definition.make(**all_known_weakly({**self._given, "verbose": False}))
        self.base_lr, self.verbose = base_lr, self._given.get("verbose", False)
        self._rust.set_state_dict(state)

    def _is_changed(self) -> bool:
        """Does a subclass of the user's compute the rate?"""
        cls, base = type(self), _BuiltinScheduler
        return cls.get_lr is not base.get_lr or cls.step not in (base.step, ReduceOnPlateau.step)

    @property
    def _core(self):
        return _core._python_schedule(weakref.proxy(self)) if self._is_changed() else self._rust

    def step(self, epoch=None) -> None:
        """Goes to the next epoch, or to a given one."""
        if self._is_changed():
            super().step(epoch)
        else:
            self._rust.step(epoch)

    def get_lr(self) -> float:
        """The learning rate of `self.last_epoch`."""
        return self._rust.compute_lr()

    def state_dict(self) -> dict:
        """What must be kept to go on later."""
        return self._rust.state_dict()

    def set_state_dict(self, state_dict: dict) -> None:
        """Goes on from a kept state."""
        self._rust.set_state_dict(state_dict)

    def state_keys(self) -> None:
        """Sets `self.keys`, the names of what is kept."""
        self.keys = list(self.state_dict())


class ReduceOnPlateau(_BuiltinScheduler):
    _definition = _registry.classes("optimizer.lr")["ReduceOnPlateau"]
    __doc__ = _definition.doc
    __signature__ = _registry._ClassSignature()

    def step(self, metrics, epoch: int | None = None) -> None:
        """Tells what was measured, a number or a tensor or array of one element, and goes to the next epoch."""
        size = getattr(metrics, "size", 1)
        if size != 1:
            raise ValueError(
                f"(InvalidArgument) ReduceOnPlateau: metrics is one number, got {size}. Hint: take the mean."
            )
        value = metrics.item() if hasattr(metrics, "item") else metrics
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            raise TypeError(
                "(InvalidType) ReduceOnPlateau: metrics is a number, a Tensor or an array, got "
                f"{type(metrics).__name__}."
            )
        self._rust.step_with(float(value), epoch)

    def __getattr__(self, name: str):
        if name in ("best", "cooldown_counter", "num_bad_epochs"):
            return self._rust.state_dict()[name]
        return super().__getattr__(name)


__all__ = ["LRScheduler", "ReduceOnPlateau"]
__all__ += _registry.define(globals(), "optimizer.lr", _BuiltinScheduler)
