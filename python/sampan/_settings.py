"""Switches of the process."""

from __future__ import annotations

from . import _core

# Flags of Paddle's that programs set; the values are kept, and those that mean something here act.
_FLAGS: dict[str, object] = {
    "FLAGS_check_nan_inf": False,
    "FLAGS_check_nan_inf_level": 0,
    "FLAGS_cudnn_deterministic": True,
    "FLAGS_embedding_deterministic": 1,
    "FLAGS_benchmark": False,
    "FLAGS_eager_delete_tensor_gb": 0.0,
    "FLAGS_fraction_of_gpu_memory_to_use": 0.92,
    "FLAGS_allocator_strategy": "auto_growth",
    "FLAGS_use_mkldnn": False,
    "FLAGS_use_stride_kernel": True,
    "FLAGS_max_inplace_grad_add": 0,
    "FLAGS_conv_workspace_size_limit": 512,
    "FLAGS_cudnn_exhaustive_search": False,
    "FLAGS_low_precision_op_list": 0,
    "FLAGS_enable_pir_api": False,
    "FLAGS_sort_sum_gradient": False,
    "FLAGS_selected_gpus": "",
    "FLAGS_use_system_allocator": False,
}


def set_flags(flags: dict) -> None:
    """Sets flags: `set_flags({'FLAGS_check_nan_inf': True})` makes the op that first gives a NaN raise an error."""
    if not isinstance(flags, dict):
        raise TypeError(f"(InvalidType) set_flags: a dict is needed, got {type(flags).__name__}.")
    for name, value in flags.items():
        if name not in _FLAGS:
            raise ValueError(f"(NotFound) set_flags: there is no flag {name!r}. Flags: {', '.join(_FLAGS)}.")
        if name == "FLAGS_check_nan_inf":
            value = bool(value)
            _core._set_check_nan_inf(value)
        elif name == "FLAGS_cudnn_deterministic":
            value = bool(value)
            _core._set_deterministic(value)
        _FLAGS[name] = value


def get_flags(flags: str | list | tuple) -> dict:
    """The values of flags by name."""
    if not isinstance(flags, (str, list, tuple)):
        raise TypeError(f"(InvalidType) get_flags: a name or a list of names is needed, got {type(flags).__name__}.")
    names = [flags] if isinstance(flags, str) else list(flags)
    for name in names:
        if name not in _FLAGS:
            raise ValueError(f"(NotFound) get_flags: there is no flag {name!r}. Flags: {', '.join(_FLAGS)}.")
    _FLAGS["FLAGS_check_nan_inf"] = _core._check_nan_inf()
    return {name: _FLAGS[name] for name in names}


def in_dynamic_mode() -> bool:
    """True: every line runs as it is written."""
    return True


def enable_static() -> None:
    """There is no static mode."""
    raise NotImplementedError(
        "(Unimplemented) enable_static: programs run line by line here; there is no static mode. Hint: leave out "
        "enable_static() and call the network directly."
    )


def disable_static(place=None) -> None:
    """Nothing to do: every line runs as it is written."""
    if place is not None:
        _core._check_place(place)


def disable_signal_handler() -> None:
    """Nothing to do: signals are left to Python."""


class LazyGuard:
    """A context in which Paddle puts off the initial values of parameters; here they are made at once."""

    def __enter__(self):
        return self

    def __exit__(self, *_):
        return False


def enable_compat(**_scope) -> None:
    """Paddle stands in for torch after this; here nothing does."""
    raise NotImplementedError("(Unimplemented) enable_compat: this package does not stand in for torch.")


def disable_compat() -> None:
    """Nothing to do: nothing stands in for torch."""
