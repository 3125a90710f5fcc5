"""Modes and settings of the process: recording, seeds, dtypes, saving and loading."""

from __future__ import annotations

import functools
import os
import re

from . import _core
from ._core import Parameter, dtype, get_default_dtype, grad, set_default_dtype  # noqa: F401
from ._settings import (  # noqa: F401
    disable_signal_handler,
    disable_static,
    enable_static,
    get_flags,
    in_dynamic_mode,
    set_flags,
)

# Found here too when they are first used: their homes import this module.
_LATER = {"ParamAttr": "nn.attr"} | dict.fromkeys(
    "CPUPlace CUDAPinnedPlace CUDAPlace CustomPlace IPUPlace XPUPinnedPlace XPUPlace".split(), "device"
)


def __getattr__(name):
    if name not in _LATER:
        raise AttributeError(f"module 'sampan.framework' has no attribute {name!r}")
    import importlib

    return getattr(importlib.import_module(f"sampan.{_LATER[name]}"), name)


class _GradMode:
    """Switches recording on or off: a context, or a decorator."""

    _on: bool

    def __init__(self):
        self._before: list[bool] = []

    def __enter__(self):
        self._before.append(_core._set_grad_enabled(self._on))
        return self

    def __exit__(self, *_):
        _core._set_grad_enabled(self._before.pop())
        return False

    def __call__(self, function=None):
        if function is None:
            return self

        # The flag of a generator's code; `inspect` is slow to import.
        if getattr(getattr(function, "__code__", None), "co_flags", 0) & 0x20:

            @functools.wraps(function)
            def generator(*args, **kwargs):
                with self._again():
                    yield from function(*args, **kwargs)

            return generator

        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self._again():
                return function(*args, **kwargs)

        return wrapped

    def _again(self):
        return type(self)()


class no_grad(_GradMode):
    """Nothing inside is recorded.

    >>> import sampan
    >>> x = sampan.ones([2]); x.stop_gradient = False
    >>> with sampan.no_grad():
    ...     y = x * 2
    >>> y.stop_gradient
    True
    """

    _on = False

    def __new__(cls, function=None):
        made = super().__new__(cls)
        if function is None:
            return made
        made.__init__()
        return made(function)

    def __init__(self, function=None):
        super().__init__()


class enable_grad(no_grad):
    """Everything inside is recorded, within a `no_grad` too."""

    _on = True


class set_grad_enabled(_GradMode):
    """Switches recording on or off, at once and, as a context, until its end."""

    def __init__(self, mode: bool):
        super().__init__()
        self._on = bool(mode)
        self._outside = _core._set_grad_enabled(self._on)

    def __enter__(self):
        self._before.append(self._outside)
        _core._set_grad_enabled(self._on)
        return self

    def _again(self):
        return set_grad_enabled(self._on)


def save(obj, path, protocol: int = 4, **configs) -> None:
    """Writes tensors, numbers, strings, and lists and dicts of them, in the format that the end of `path` names.

    `.pdparams` and `.pdopt` are Paddle's own, and any other end means the same; `.safetensors`, `.npy` and `.npz` hold
    tensors alone. The file appears whole or not at all.
    """
    if not isinstance(protocol, int) or not 2 <= protocol <= 5:
        raise ValueError(f"(InvalidArgument) save: protocol must be 2, 3, 4 or 5, got {protocol!r}.")
    obj = _plain(obj)
    # Protocol 5 has nothing that is wanted here.
    protocol = min(protocol, 4)
    if hasattr(path, "write"):
        path.write(_core._save_bytes(obj, protocol))
        return
    folder = os.path.dirname(os.fspath(path))
    if folder:
        os.makedirs(folder, exist_ok=True)
    try:
        _core._save(obj, path, protocol)
    except OSError as error:
        code = re.search(r"\(os error (\d+)\)", str(error))
        if error.errno is None and code:
            error.errno = int(code[1])
        raise


def _plain(obj):
    """`obj` with the numbers of NumPy as Python's, and states of the random numbers as pairs."""
    # By name, since NumPy is imported only when it is needed.
    if type(obj).__module__ == "numpy" and type(obj).__name__ != "ndarray":
        return obj.item() if hasattr(obj, "item") else obj
    if isinstance(obj, Generator):
        return tuple(v - 2**64 if v >= 2**63 else v for v in obj.state)
    if type(obj) in (list, tuple):
        return type(obj)(map(_plain, obj))
    if isinstance(obj, dict):
        return {key: _plain(value) for key, value in obj.items()}
    return obj


def load(path, return_numpy: bool = False, **configs):
    """Reads what `save` of this package or of Paddle wrote; also `.safetensors`, `.npy`, `.npz`, and PyTorch's `.pth`.

    A file is data: nothing in it is run. From an open file or a `BytesIO` one value is read, and the next `load` reads
    what follows it. With `keep_name_table=True` a state dict has an entry with its tensors' own names.
    """
    names = bool(configs.get("keep_name_table", False))
    if not hasattr(path, "read"):
        if not names:
            return _core._load(path, return_numpy)
        with open(path, "rb") as file:
            return load(file, return_numpy, **configs)
    start = path.tell() if path.seekable() else None
    value, size = _core._load_bytes(path.read(), return_numpy, names)
    if start is not None:
        path.seek(start + size)
    return value


class Generator:
    """The state of the random numbers."""

    def __init__(self, state=None):
        self.state = state or _core._random_state()

    def manual_seed(self, seed: int) -> Generator:
        """Starts the random numbers anew."""
        _core.seed(seed % 2**64)
        self.state = _core._random_state()
        return self

    def get_state(self) -> tuple[int, int]:
        """Seed and position."""
        return self.state

    def set_state(self, state: tuple[int, int]) -> None:
        """Goes back to a state."""
        self.state = state
        _core._set_random_state(*state)


def seed(seed: int) -> Generator:
    """Starts the random numbers anew; the same seed gives the same numbers on any number of threads."""
    _core.seed(seed % 2**64)
    return Generator()


def get_rng_state(device=None) -> list[Generator]:
    """The state of the random numbers, to be given back to `set_rng_state`."""
    return [Generator()]


def get_cuda_rng_state() -> list[Generator]:
    """The states of the random numbers of the GPUs; the one generator of this package serves every device."""
    return []


def set_cuda_rng_state(state_list) -> None:
    """Goes back to states that `get_cuda_rng_state` gave."""
    for generator in state_list:
        _core._set_random_state(*generator.state)


def set_rng_state(state_list, device=None) -> None:
    """Goes back to a state of the random numbers."""
    state = getattr(state_list[0], "state", state_list[0])
    _core._set_random_state(*(v % 2**64 for v in state))
