"""Finding numbers that are not finite: Paddle's `amp.debugging`."""

from __future__ import annotations

import functools
from enum import Enum

from .. import _core

__all__ = [
    "DebugMode",
    "TensorCheckerConfig",
    "check_layer_numerics",
    "check_numerics",
    "disable_tensor_checker",
    "enable_tensor_checker",
]


class DebugMode(Enum):
    """What a check does: raise an error at once, or print what it found."""

    CHECK_NAN_INF_AND_ABORT = 0
    CHECK_NAN_INF = 1
    CHECK_ALL_FOR_OVERFLOW = 2
    CHECK_ALL = 3


class TensorCheckerConfig:
    """What `enable_tensor_checker` looks for. The check names the op that made the first number that is not finite."""

    def __init__(
        self,
        enable: bool,
        debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT,
        output_dir: str | None = None,
        checked_op_list=None,
        skipped_op_list=None,
        debug_step=None,
        stack_height_limit: int = 1,
    ):
        self.enable = enable
        self.debug_mode = debug_mode
        self.output_dir = output_dir
        self.checked_op_list = set(checked_op_list or ())
        self.skipped_op_list = set(skipped_op_list or ())
        self.debug_step = debug_step
        self.stack_height_limit = stack_height_limit
        if debug_mode is not DebugMode.CHECK_NAN_INF_AND_ABORT or output_dir or checked_op_list or skipped_op_list or debug_step:
            raise NotImplementedError(
                "(Unimplemented) TensorCheckerConfig: every op of every step is checked, and the first number that is not "
                "finite is an error. Hint: leave out debug_mode, output_dir, checked_op_list, skipped_op_list and debug_step."
            )


def enable_tensor_checker(checker_config: TensorCheckerConfig) -> None:
    """From now on the first NaN or infinity that an op makes is an error that names the op."""
    _core._set_check_nan_inf(bool(checker_config.enable))


def disable_tensor_checker() -> None:
    """Ends what `enable_tensor_checker` began."""
    _core._set_check_nan_inf(False)


def check_numerics(tensor, op_type: str, var_name: str, debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT):
    """Counts what is not finite: gives ([NaNs, infinities, zeros], [largest, smallest, mean]) as tensors.

    In the mode `CHECK_NAN_INF_AND_ABORT` a NaN or infinity is an error.
    """
    nan, inf, zero = _core._count_numerics(tensor)
    if (nan or inf) and debug_mode is DebugMode.CHECK_NAN_INF_AND_ABORT:
        raise FloatingPointError(
            f"(NotFinite) {op_type}: {var_name} of shape {list(tensor.shape)} {tensor.dtype} holds {nan} NaN and {inf} infinite "
            f"among {tensor.size} elements."
        )
    wide = tensor.detach().astype("float32")
    stats = _core.to_tensor_py([nan, inf, zero], "int64")
    values = _core.to_tensor_py([wide.max().item(), wide.min().item(), wide.mean().item()], "float32")
    return stats, values


def check_layer_numerics(func):
    """Checks the inputs and outputs of a layer's forward: a decorator."""

    @functools.wraps(func)
    def checked(self, *args, **kwargs):
        def check(values, what):
            for i, value in enumerate(values):
                if isinstance(value, _core.Tensor):
                    check_numerics(value, type(self).__name__, f"{what} {i}")

        check(args, "input")
        out = func(self, *args, **kwargs)
        check(out if isinstance(out, (tuple, list)) else [out], "output")
        return out

    return checked


def __getattr__(name: str):
    if name in (
        "enable_operator_stats_collection",
        "disable_operator_stats_collection",
        "collect_operator_stats",
        "compare_accuracy",
    ):
        raise NotImplementedError(f"(Unimplemented) sampan.amp.debugging.{name} is not part of sampan yet.")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
