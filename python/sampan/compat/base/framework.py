"""Modes and names of `paddle.base.framework`."""

import contextlib

from ... import _core
from .. import _late

Variable = _core.Tensor
Parameter = EagerParamBase = ParamBase = _core.Parameter


def in_dygraph_mode() -> bool:
    """Does every line run as it is written? It always does."""
    return True


in_dynamic_mode = in_dynamic_or_pir_mode = _non_static_mode = in_dygraph_mode


def in_pir_mode() -> bool:
    """Is a static graph being made? It never is."""
    return False


_in_legacy_dygraph = in_static_mode = use_pir_api = in_pir_mode


def dygraph_only(function):
    """A function for dynamic graphs alone, which all are."""
    return function


def convert_np_dtype_to_dtype_(np_dtype):
    """The dtype that a dtype of NumPy's, or a name, means."""
    return _core._dtype(np_dtype)


def _current_expected_place():
    """The device that tensors are made on."""
    from ...device import CPUPlace

    return CPUPlace()


_current_expected_place_ = _current_expected_place


@contextlib.contextmanager
def _stride_in_no_check_dy2st_diff():
    """Views are views in graphs too, so that there is nothing to check."""
    yield


_no_check_dy2st_diff = _stride_in_no_check_dy2st_diff


def _dygraph_tracer():
    """Whether gradients are recorded is a mode of the process."""
    return _Tracer()


class _Tracer:
    @property
    def _has_grad(self) -> bool:
        import sampan

        return sampan.is_grad_enabled()

    @_has_grad.setter
    def _has_grad(self, on: bool) -> None:
        _core._set_grad_enabled(bool(on))


__getattr__ = _late.names(
    __name__,
    {
        "is_compiled_with_cuda": "sampan.compat.base.core:is_compiled_with_cuda",
        "CPUPlace": "sampan:CPUPlace",
        "unique_name": "sampan.utils.unique_name",
    },
    "sampan has dynamic graphs only; programs, blocks and operators of static graphs are not part of it.",
)


def get_flags(flags):
    """Settings of the process by their names."""
    import sampan

    return sampan.get_flags(flags)


def set_flags(flags):
    """Sets settings of the process."""
    import sampan

    return sampan.set_flags(flags)
