"""Finding numbers that are not finite: Paddle's `amp.debugging`."""

from __future__ import annotations

import contextlib
import functools
from enum import Enum

from .. import _core
from .auto_cast import _op_name

__all__ = [
    "DebugMode",
    "TensorCheckerConfig",
    "check_layer_numerics",
    "check_numerics",
    "collect_operator_stats",
    "compare_accuracy",
    "disable_operator_stats_collection",
    "disable_tensor_checker",
    "enable_operator_stats_collection",
    "enable_tensor_checker",
]


class DebugMode(Enum):
    """What a check does: raise an error at once, or print what it found."""

    CHECK_NAN_INF_AND_ABORT = 0
    CHECK_NAN_INF = 1
    CHECK_ALL_FOR_OVERFLOW = 2
    CHECK_ALL = 3


class TensorCheckerConfig:
    """What `enable_tensor_checker` looks for: numbers that are not finite, in the results of all ops, or of those in
    `checked_op_list`, but those in `skipped_op_list`.

    In the mode `CHECK_NAN_INF_AND_ABORT` the first one is an error that names the op; in the others a line is printed.
    """

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
        if output_dir is not None or debug_step is not None:
            raise NotImplementedError(
                "(Unimplemented) TensorCheckerConfig: output_dir and debug_step are not part of sampan yet. "
                "Hint: enable and disable the checker around the steps that matter."
            )
        self.enable = enable
        self.debug_mode = debug_mode
        self.checked_op_list = {_op_name(name) for name in checked_op_list or ()}
        self.skipped_op_list = {_op_name(name) for name in skipped_op_list or ()}
        self.stack_height_limit = stack_height_limit

    def start_check_nan_inf(self) -> None:
        """Begins the check."""
        if self.debug_mode is not DebugMode.CHECK_NAN_INF_AND_ABORT:
            _core._report_numerics(self.checked_op_list, self.skipped_op_list)
        elif self.checked_op_list or self.skipped_op_list:
            raise NotImplementedError(
                "(Unimplemented) enable_tensor_checker: lists of ops work with debug_mode=DebugMode.CHECK_NAN_INF, "
                "which prints."
            )
        else:
            _core._set_check_nan_inf(True)

    def stop_check_nan_inf(self) -> None:
        """Ends the check."""
        _core._stop_report_numerics()
        _core._set_check_nan_inf(False)


def enable_tensor_checker(checker_config: TensorCheckerConfig) -> None:
    """Looks for numbers that are not finite from now on.

    >>> import sampan
    >>> debugging = sampan.amp.debugging
    >>> debugging.enable_tensor_checker(debugging.TensorCheckerConfig(enable=True))
    >>> try:
    ...     sampan.log(sampan.to_tensor([-1.0]))
    ... except FloatingPointError:
    ...     print("caught")
    caught
    >>> debugging.disable_tensor_checker()
    """
    if checker_config.enable:
        checker_config.start_check_nan_inf()


def disable_tensor_checker() -> None:
    """Ends what `enable_tensor_checker` began."""
    _core._stop_report_numerics()
    _core._set_check_nan_inf(False)


def check_numerics(tensor, op_type: str, var_name: str, debug_mode: DebugMode = DebugMode.CHECK_NAN_INF_AND_ABORT):
    """Counts what is not finite: gives ([NaNs, infinities, zeros], [largest, smallest, mean]) as tensors.

    In the mode `CHECK_NAN_INF_AND_ABORT` a NaN or infinity is an error.
    """
    nan, inf, zero = _core._count_numerics(tensor)
    if (nan or inf) and debug_mode is DebugMode.CHECK_NAN_INF_AND_ABORT:
        raise FloatingPointError(
            f"(NotFinite) {op_type}: {var_name} of shape {list(tensor.shape)} {tensor.dtype} holds {nan} NaN and "
            f"{inf} infinite "
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


def enable_operator_stats_collection() -> None:
    """Counts from now on which ops are called, and in which precision."""
    _core._start_op_stats()


def disable_operator_stats_collection() -> None:
    """Ends the counting and prints a table of ops and precisions."""
    rows = _core._stop_op_stats()
    line = "<{:-^120}>"
    head = "{:<40} | {:<17} | {:<17} | {:<17} | {:<17}"
    print(line.format(" op list "))
    print(line.format(head.format(" Op Name", "FP16 Calls", "BF16 Calls", "FP32 Calls", "Other Calls")))
    for name, calls in rows:
        print("  " + head.format(name, *calls))
    print(line.format(f" op count: {len(rows)} "))


@contextlib.contextmanager
def collect_operator_stats():
    """Counts inside which ops are called, in which precision, and prints a table at the end."""
    enable_operator_stats_collection()
    try:
        yield
    finally:
        disable_operator_stats_collection()


def compare_accuracy(dump_path, another_dump_path, output_filename, loss_scale=1, dump_all_tensors=False):
    """Not there yet."""
    raise NotImplementedError(
        "(Unimplemented) compare_accuracy: results are not written to files yet. "
        "Hint: keep the tensors of both runs with forward hooks and compare them."
    )
