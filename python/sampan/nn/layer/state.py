"""The part of `Layer` that is saved, loaded and cast."""

from __future__ import annotations

import warnings
from collections import OrderedDict, namedtuple

from ... import _core

_FLOATS = ("bfloat16", "float16", "float32", "float64")
_DTYPES = (*_FLOATS, "int8", "int16", "int32", "int64", "uint8", "complex64", "complex128", "bool")


class _IncompatibleKeys(namedtuple("IncompatibleKeys", ["missing_keys", "unexpected_keys"])):
    """What `load_state_dict` found missing and what it did not expect."""

    __slots__ = ()

    def __repr__(self):
        return "<All keys matched successfully>" if not any(self) else super().__repr__()

    __str__ = __repr__


class State:
    """Parameters and buffers by path, and their dtype."""

    def _state_dict_impl(
        self,
        destination=None,
        include_sublayers=True,
        structured_name_prefix="",
        include_non_persistable_buffer=False,
        use_hook=True,
        keep_vars=True,
    ):
        state = OrderedDict() if destination is None else destination
        start = structured_name_prefix
        for name, p in self._parameters.items():
            if p is not None:
                state[start + name] = p if keep_vars else p.detach()
        for name, b in self._buffers.items():
            if b is not None and (include_non_persistable_buffer or name not in self._non_persistable_buffer_names_set):
                state[start + name] = b if keep_vars else b.detach()
        if include_sublayers:
            for name, layer in self._sub_layers.items():
                if layer is not None:
                    layer._state_dict_impl(
                        state, True, f"{start}{name}.", include_non_persistable_buffer, use_hook, keep_vars
                    )
        if use_hook:
            for hook in self._state_dict_hooks.values():
                new = hook(state)
                state = state if new is None else new
        return state

    def state_dict(
        self,
        destination=None,
        include_sublayers=True,
        structured_name_prefix="",
        use_hook=True,
        keep_vars=True,
        *,
        prefix=None,
    ):
        """Parameters and buffers by path; they are the layer's own, not copies.

        With `keep_vars=False` they have no history. `prefix` begins all names, as `structured_name_prefix` does.
        """
        if isinstance(include_sublayers, str):
            # The order of PyTorch: destination, prefix, keep_vars.
            prefix, keep_vars, include_sublayers = include_sublayers, structured_name_prefix or False, True
        if prefix is not None:
            structured_name_prefix = prefix
        return self._state_dict_impl(destination, include_sublayers, structured_name_prefix, False, use_hook, keep_vars)

    def sharded_state_dict(self, structured_name_prefix: str = "") -> dict:
        """Parameters and buffers as boxes of whole tensors (`distributed.ShardedWeight`), for checkpoints of several processes."""
        from ...distributed.sharded_weight import sharded_state_dict

        return sharded_state_dict(self, structured_name_prefix)

    def to_static_state_dict(
        self, destination=None, include_sublayers=True, structured_name_prefix="", use_hook=True, keep_vars=True
    ):
        """Parameters and all buffers, those that are not saved too, by path."""
        return self._state_dict_impl(destination, include_sublayers, structured_name_prefix, True, use_hook, keep_vars)

    def set_state_dict(self, state_dict=None, use_structured_name=True, **stat_dict):
        """Takes over values by path, or by the tensors' own names. What does not fit is skipped with a warning.

        Gives the names that were missing or did not fit, and those that were not expected.
        """
        state_dict = stat_dict.get("stat_dict") if state_dict is None else state_dict
        if state_dict is None:
            raise TypeError("(InvalidType) set_state_dict: argument `state_dict` is missing.")
        missing, fitting, found = [], [], set()
        for path, tensor in self._state_dict_impl(use_hook=False).items():
            name = path if use_structured_name else tensor.name
            problem = _problem(name, state_dict.get(name), tensor)
            if problem is None:
                found.add(name)
                fitting.append((tensor, state_dict[name]))
            else:
                missing.append(name)
                warnings.warn(f"Skip loading for {path}. {problem}", stacklevel=2)
        for tensor, value in fitting:
            tensor.set_value(value)
        return missing, [name for name in state_dict if name not in found]

    set_dict = load_dict = set_state_dict

    def load_state_dict(self, state_dict, strict: bool = True, assign: bool = False):
        """Takes over values by path; with `strict` a name that is missing or not expected is an error."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore" if strict else "default")
            missing, unexpected = self.set_state_dict(state_dict)
        if strict and (missing or unexpected):
            problems = [
                f"{what} key(s) in state_dict: {', '.join(map(repr, keys))}."
                for what, keys in (("Missing", missing), ("Unexpected", unexpected))
                if keys
            ]
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t" + "\n\t".join(problems))
        return _IncompatibleKeys(missing, unexpected)

    # ---- dtype and device

    def _cast(self, dtype, floats_only: bool = False) -> None:
        """Casts what this layer itself holds."""
        dtype = _core._dtype(dtype)
        for member in (*self._parameters.values(), *self._buffers.values()):
            if member is not None and not (floats_only and not _is_float(member)):
                _core._cast_in_place(member, dtype)
        self._dtype = dtype

    def to(self, device=None, dtype=None, blocking=None, non_blocking=None):
        """Moves all parameters and buffers to a device and casts them, in place."""
        if isinstance(device, _core.dtype) or (isinstance(device, str) and device in _DTYPES):
            device, dtype = None, device
        if device is not None:
            device = _named_device(device)
        for name, flag in (("blocking", blocking), ("non_blocking", non_blocking)):
            if flag is not None and not isinstance(flag, bool):
                raise TypeError(f"(InvalidType) to: {name} must be True, False or None, got {flag!r}.")
        for layer in self.sublayers(include_self=True):
            if device is not None:
                for member in (*layer._parameters.values(), *layer._buffers.values()):
                    if member is not None:
                        _core._move_in_place(member, device)
            if dtype is not None:
                layer._cast(dtype)
        return self

    def astype(self, dtype=None):
        """Casts all parameters and buffers, in place."""
        return self.type(dtype)

    def type(self, dst_type):
        """Casts all parameters and buffers, in place."""
        try:
            name = str(_core._dtype(dst_type)).rpartition(".")[2]
        except (TypeError, ValueError, KeyError):
            name = None
        if name not in _DTYPES:
            raise ValueError(f"(InvalidArgument) dtype must be one of {', '.join(_DTYPES)}, got {dst_type!r}.")
        return self.to(dtype=dst_type)

    def double(self):
        """Casts all parameters and buffers to float64."""
        return self.to(dtype="float64")

    def half(self):
        """Casts all parameters and buffers to float16."""
        return self.to(dtype="float16")

    def float(self, excluded_layers=None):
        """Casts float parameters and buffers to float32, but for layers of the excluded types."""
        return self._cast_floats("float32", () if excluded_layers is None else excluded_layers)

    def float16(self, excluded_layers=None):
        """Casts float parameters and buffers to float16, but for layers of the excluded types (`BatchNorm`)."""
        return self._cast_floats("float16", excluded_layers)

    def bfloat16(self, excluded_layers=None):
        """Casts float parameters and buffers to bfloat16, but for layers of the excluded types (`BatchNorm`)."""
        return self._cast_floats("bfloat16", excluded_layers)

    def _cast_floats(self, dtype: str, excluded):
        if excluded is None:
            from ... import nn

            excluded = (nn.BatchNorm,)
        elif isinstance(excluded, type):
            excluded = (excluded,)
        elif not isinstance(excluded, (list, tuple)):
            got = excluded.__class__.__name__
            raise TypeError(f"(InvalidType) excluded_layers is a class of layers or a list of them, got {got}.")
        for layer in self.sublayers(include_self=True):
            if layer.__class__ not in excluded:
                layer._cast(dtype, floats_only=True)
        return self

    def cpu(self):
        """Moves to the processor."""
        return self.to("cpu")

    def cuda(self, device=None):
        """Moves to a GPU."""
        return self.to("gpu" if device is None else device)


def _is_float(tensor) -> bool:
    return str(tensor.dtype).rpartition(".")[2] in _FLOATS


def _named_device(device) -> str:
    """The name of a device from a name, a place or the number of a GPU."""
    if isinstance(device, int) and not isinstance(device, bool):
        device = f"gpu:{device}"
    if not isinstance(device, str) and "place" not in str(device).lower():
        raise ValueError(f"(InvalidArgument) to: device is a name such as 'cpu' or a place, got {type(device).__name__}.")
    return _core._check_place(device)


def _problem(name: str, value, tensor) -> str | None:
    """Why a value cannot be taken over."""
    if value is None:
        return f"{name} is not found in the provided dict."
    if isinstance(value, (dict, list)):
        if len(value) != len(tensor):
            return f"{name} receives the length of {len(value)}, but the expected shape is {tensor.shape}"
        return None
    shape = list(value.shape() if callable(value.shape) else value.shape)
    if shape != list(tensor.shape):
        return f"{name} receives a shape {shape}, but the expected shape is {list(tensor.shape)}."
    return None
