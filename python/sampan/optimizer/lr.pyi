# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype




import warnings

import weakref

from .. import _core as _core, _registry as _registry

from ._functions import all_known_weakly as all_known_weakly, known_weakly as known_weakly

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

    def __init__(self, learning_rate: float=0.1, last_epoch: int=-1, verbose: bool=False):
        ...

    @property
    def _core(self):
        """The schedule for an optimizer of the core. It knows this object weakly: who uses it in Python keeps it."""
        ...

    def __call__(self) -> float:
        """The learning rate now."""
        ...

    def step(self, epoch: int | None=None) -> None:
        """Goes to the next epoch, or to a given one."""
        ...

    def get_lr(self) -> float:
        """The learning rate of `self.last_epoch`; every schedule of your own defines it."""
        ...

    def state_keys(self) -> None:
        """Sets `self.keys`, the attributes that are kept; redefine it to keep more."""
        ...

    def state_dict(self) -> dict:
        """What must be kept to go on later."""
        ...

    def set_state_dict(self, state_dict: dict) -> None:
        """Goes on from a kept state."""
        ...

    def set_dict(self, state_dict: dict) -> None:
        """`set_state_dict`."""
        ...

def _of_clock(name: str) -> property:
    """A value that the core keeps."""
    ...

class _BuiltinScheduler(LRScheduler):
    """A schedule of the core. A subclass may compute another rate from that of `super().get_lr()`."""
    _definition: _core.ClassDef
    _takes_name = False
    base_lr = _of_clock('base_lr')
    last_lr = _of_clock('last_lr')
    last_epoch = _of_clock('last_epoch')
    verbose = _of_clock('verbose')

    def __init__(self, *args, **kwargs):
        ...

    def __getattr__(self, name: str):
        ...

    def __getstate__(self) -> dict:
        ...

    def __setstate__(self, kept: dict) -> None:
        ...

    def _is_changed(self) -> bool:
        """Does a subclass of the user's compute the rate?"""
        ...

    @property
    def _core(self):
        ...

    def step(self, epoch=None) -> None:
        """Goes to the next epoch, or to a given one."""
        ...

    def get_lr(self) -> float:
        """The learning rate of `self.last_epoch`."""
        ...

    def state_dict(self) -> dict:
        """What must be kept to go on later."""
        ...

    def set_state_dict(self, state_dict: dict) -> None:
        """Goes on from a kept state."""
        ...

    def state_keys(self) -> None:
        """Sets `self.keys`, the names of what is kept."""
        ...

class ReduceOnPlateau(_BuiltinScheduler):
    _definition = _registry.classes('optimizer.lr')['ReduceOnPlateau']
    __doc__ = _definition.doc
    __signature__ = _registry._ClassSignature()

    def step(self, metrics, epoch: int | None=None) -> None:
        """Tells what was measured, a number or a tensor or array of one element, and goes to the next epoch."""
        ...

    def __getattr__(self, name: str):
        ...

class CosineAnnealingDecay(_BuiltinScheduler):
    """From `learning_rate` to `eta_min` in `T_max` epochs along half a cosine, and back again if it goes on."""

    def __init__(self, learning_rate: _float, T_max: _int, eta_min: _float = 0.0, last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class CosineAnnealingWarmRestarts(_BuiltinScheduler):
    """From `learning_rate` to `eta_min` in `T_0` epochs, then from the top again, each time `T_mult` times as long."""

    def __init__(self, learning_rate: _float, T_0: _int, T_mult: _int = 1, eta_min: _float = 0.0, last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class CyclicLR(_BuiltinScheduler):
    """Linearly from `base_learning_rate` to `max_learning_rate` in `step_size_up` steps and back in `step_size_down`;
    the height stays (`"triangular"`), halves each cycle (`"triangular2"`), falls with each step by `exp_gamma`
    (`"exp_range"`), or is scaled by `scale_fn` of the cycle or the step (`scale_mode`).
    """

    def __init__(self, base_learning_rate: _float, max_learning_rate: _float, step_size_up: _int, step_size_down: _int | None = None, mode: _str = 'triangular', exp_gamma: _float = 1.0, scale_fn: Any = None, scale_mode: _str = 'cycle', last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class ExponentialDecay(_BuiltinScheduler):
    """`learning_rate * gamma^epoch`."""

    def __init__(self, learning_rate: _float, gamma: _float, last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class InverseTimeDecay(_BuiltinScheduler):
    """`learning_rate / (1 + gamma * epoch)`."""

    def __init__(self, learning_rate: _float, gamma: _float, last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class LambdaDecay(_BuiltinScheduler):
    """`learning_rate * lr_lambda(epoch)`."""

    def __init__(self, learning_rate: _float, lr_lambda: Any, last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class LinearLR(_BuiltinScheduler):
    """From `learning_rate * start_factor` to `learning_rate * end_factor` in `total_steps`, then constant."""

    def __init__(self, learning_rate: _float, total_steps: _int, start_factor: _float = 0.3333333333333333, end_factor: _float = 1.0, last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class LinearWarmup(_BuiltinScheduler):
    """From `start_lr` to `end_lr` in `warmup_steps`, then `learning_rate`: a number, or another schedule from its first
    epoch on.
    """

    def __init__(self, learning_rate: Any, warmup_steps: _int, start_lr: _float, end_lr: _float, last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class MultiStepDecay(_BuiltinScheduler):
    """Falls to its share `gamma` at each of the `milestones`."""

    def __init__(self, learning_rate: _float, milestones: _int | Sequence[_int] | Tensor, gamma: _float = 0.1, last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class MultiplicativeDecay(_BuiltinScheduler):
    """`learning_rate * lr_lambda(1) * … * lr_lambda(epoch)`."""

    def __init__(self, learning_rate: _float, lr_lambda: Any, last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class NaturalExpDecay(_BuiltinScheduler):
    """`learning_rate * exp(-gamma * epoch)`."""

    def __init__(self, learning_rate: _float, gamma: _float, last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class NoamDecay(_BuiltinScheduler):
    """`learning_rate * d_model^-0.5 * min(epoch^-0.5, epoch * warmup_steps^-1.5)`, the schedule of the first
    transformers.
    """

    def __init__(self, d_model: _float, warmup_steps: _int, learning_rate: _float = 1.0, last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class OneCycleLR(_BuiltinScheduler):
    """From `max_learning_rate / divide_factor` up to `max_learning_rate` during the share `phase_pct` of the steps, then
    down to `end_learning_rate`; with `three_phase` first down to where it began, in as many steps as up.
    """

    def __init__(self, max_learning_rate: _float, total_steps: _int, divide_factor: _float = 25.0, end_learning_rate: _float = 0.0001, phase_pct: _float = 0.3, anneal_strategy: _str = 'cos', three_phase: _bool = False, last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class PiecewiseDecay(_BuiltinScheduler):
    """`values[i]` before epoch `boundaries[i]`, and the last value from then on."""

    def __init__(self, boundaries: _int | Sequence[_int] | Tensor, values: _float | Sequence[_float], last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class PolynomialDecay(_BuiltinScheduler):
    """From `learning_rate` to `end_lr` in `decay_steps`, then constant, or starting over on ever longer ways (`cycle`)."""

    def __init__(self, learning_rate: _float, decay_steps: _int, end_lr: _float = 0.0001, power: _float = 1.0, cycle: _bool = False, last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class StepDecay(_BuiltinScheduler):
    """Falls to its share `gamma` every `step_size` epochs."""

    def __init__(self, learning_rate: _float, step_size: _int, gamma: _float = 0.1, last_epoch: _int = -1, verbose: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


__all__ = ['CosineAnnealingDecay', 'CosineAnnealingWarmRestarts', 'CyclicLR', 'ExponentialDecay', 'InverseTimeDecay', 'LRScheduler', 'LambdaDecay', 'LinearLR', 'LinearWarmup', 'MultiStepDecay', 'MultiplicativeDecay', 'NaturalExpDecay', 'NoamDecay', 'OneCycleLR', 'PiecewiseDecay', 'PolynomialDecay', 'ReduceOnPlateau', 'StepDecay', 'all_known_weakly', 'known_weakly', 'warnings', 'weakref']
