# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype




from .. import _registry as _registry

from . import _parameter as _parameter, lr as lr

from .builtin import BuiltinOptimizer as BuiltinOptimizer

from .optimizer import Optimizer as Optimizer

class ASGD(BuiltinOptimizer):
    """`p -= lr * mean of the gradients of the last batch_num steps`."""

    def __init__(self, learning_rate: Any = 0.001, batch_num: _int = 1, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, multi_precision: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class Adadelta(BuiltinOptimizer):
    """Running means of squared gradients and of squared steps, `rho` the kept share; a step is the gradient times the
    root of their quotient.
    """

    def __init__(self, learning_rate: Any = 0.001, epsilon: _float = 1e-6, rho: _float = 0.95, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class Adagrad(BuiltinOptimizer):
    """`m += g²`, then `p -= lr * g / (√m + epsilon)`."""

    def __init__(self, learning_rate: Any, epsilon: _float = 1e-6, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, initial_accumulator_value: _float = 0.0, name: _str | None = None, **kwargs: Any) -> None: ...


class Adam(BuiltinOptimizer):
    """Steps along the running mean of the gradient (`beta1` the kept share), divided by the root of the running mean of
    its square (`beta2`); with `amsgrad` by the largest such root so far. With `lazy_mode` a row of a sparse table
    (an `Embedding` with `sparse`) is left alone, with its moments, in a step in which its gradient is zero everywhere,
    which is how it is told that no index named the row. `use_multi_tensor` is always so.
    """

    def __init__(self, learning_rate: Any = 0.001, beta1: _float = 0.9, beta2: _float = 0.999, epsilon: _float = 1e-8, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, lazy_mode: _bool = False, multi_precision: _bool = False, use_multi_tensor: _bool = False, amsgrad: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class AdamW(BuiltinOptimizer):
    """Adam that first takes the share `lr * weight_decay` off each parameter whose name `apply_decay_param_fun` accepts.
    `lr_ratio` gives a factor of the learning rate for each parameter. Moments are always at least float32.
    """

    def __init__(self, learning_rate: Any = 0.001, beta1: _float = 0.9, beta2: _float = 0.999, epsilon: _float = 1e-8, parameters: Any = None, weight_decay: _float = 0.01, use_lowprecision_moment: _bool = False, lr_ratio: Any = None, apply_decay_param_fun: Any = None, grad_clip: Any = None, lazy_mode: _bool = False, multi_precision: _bool = False, amsgrad: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class Adamax(BuiltinOptimizer):
    """Adam that divides by a decaying largest gradient instead of the root of a second moment."""

    def __init__(self, learning_rate: Any = 0.001, beta1: _float = 0.9, beta2: _float = 0.999, epsilon: _float = 1e-8, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class LBFGS(BuiltinOptimizer):
    """Steps along the direction that the last `history_size` gradients give as an approximation of Newton's, up to
    `max_iter` of them in one `step_with(closure)`; with `line_search_fn="strong_wolfe"` their lengths are searched.
    The closure clears the gradients, computes the loss and calls `backward`. `weight_decay` and `grad_clip` are
    accepted and, as in Paddle, not used.
    """

    def __init__(self, learning_rate: _float = 1.0, max_iter: _int = 20, max_eval: _int | None = None, tolerance_grad: _float = 1e-7, tolerance_change: _float = 1e-9, history_size: _int = 100, line_search_fn: _str | None = None, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class Lamb(BuiltinOptimizer):
    """Adam's direction plus `lamb_weight_decay * p`, scaled to the norm of the parameter. Parameters that
    `exclude_from_weight_decay_fn` accepts have no decay, and no scaling either unless `always_adapt`.
    """

    def __init__(self, learning_rate: Any = 0.001, lamb_weight_decay: _float = 0.01, beta1: _float = 0.9, beta2: _float = 0.999, epsilon: _float = 1e-6, parameters: Any = None, grad_clip: Any = None, exclude_from_weight_decay_fn: Any = None, multi_precision: _bool = False, always_adapt: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class Momentum(BuiltinOptimizer):
    """`v = momentum * v + g`, then `p -= lr * v`, or `p -= lr * (g + momentum * v)` with `use_nesterov`. Gradients are
    multiplied by `rescale_grad` first.
    """

    def __init__(self, learning_rate: Any = 0.001, momentum: _float = 0.9, parameters: Any = None, use_nesterov: _bool = False, weight_decay: Any = None, grad_clip: Any = None, multi_precision: _bool = False, rescale_grad: _float = 1.0, use_multi_tensor: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class NAdam(BuiltinOptimizer):
    """Adam that looks ahead: its first moment is mixed with the gradient, by shares that follow `momentum_decay`."""

    def __init__(self, learning_rate: Any = 0.002, beta1: _float = 0.9, beta2: _float = 0.999, epsilon: _float = 1e-8, momentum_decay: _float = 0.004, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class RAdam(BuiltinOptimizer):
    """Adam that steps along the first moment alone until the second one is reliable, and scales its steps by how
    reliable it is.
    """

    def __init__(self, learning_rate: Any = 0.001, beta1: _float = 0.9, beta2: _float = 0.999, epsilon: _float = 1e-8, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class RMSProp(BuiltinOptimizer):
    """`s = rho * s + (1 - rho) * g²`, then `v = momentum * v + lr * g / √(s + epsilon)` and `p -= v`; with `centered` the
    squared running mean is taken off `s` first.
    """

    def __init__(self, learning_rate: Any, rho: _float = 0.95, epsilon: _float = 1e-6, momentum: _float = 0.0, centered: _bool = False, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class Rprop(BuiltinOptimizer):
    """Each element has a step size that begins at `learning_rate`, grows by `etas[1]` while the sign of its gradient
    stays, shrinks by `etas[0]` when it turns, and stays within `learning_rate_range`. For whole data sets, not for
    batches.
    """

    def __init__(self, learning_rate: Any = 0.001, learning_rate_range: _float | Sequence[_float] = [1e-5, 50.0], parameters: Any = None, etas: _float | Sequence[_float] = [0.5, 1.2], grad_clip: Any = None, multi_precision: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


class SGD(BuiltinOptimizer):
    """`p -= lr * g`."""

    def __init__(self, learning_rate: Any = 0.001, parameters: Any = None, weight_decay: Any = None, grad_clip: Any = None, multi_precision: _bool = False, name: _str | None = None, **kwargs: Any) -> None: ...


__all__ = ['ASGD', 'Adadelta', 'Adagrad', 'Adam', 'AdamW', 'Adamax', 'BuiltinOptimizer', 'LBFGS', 'Lamb', 'Momentum', 'NAdam', 'Optimizer', 'RAdam', 'RMSProp', 'Rprop', 'SGD', 'builtin', 'lr', 'optimizer']
