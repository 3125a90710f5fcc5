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
) | dict.fromkeys(
    "EagerParamBase Variable _current_expected_place _current_expected_place_ _dygraph_tracer _no_check_dy2st_diff "
    "_stride_in_no_check_dy2st_diff convert_np_dtype_to_dtype_ dygraph_only in_dynamic_or_pir_mode in_pir_mode "
    "use_pir_api".split(),
    "compat.base.framework",
) | {"LayerHelper": "compat.base.layer_helper"}


# A package to programs that import from its files: `paddle.framework.io`.
__path__: list[str] = []


def __getattr__(name):
    import importlib

    if name == "core":
        return importlib.import_module("sampan.compat.base.core")
    if name in _LATER:
        return getattr(importlib.import_module(f"sampan.{_LATER[name]}"), name)
    raise AttributeError(f"module 'sampan.framework' has no attribute {name!r}")


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
    _written(_core._save, obj, path, protocol)


def _written(write, *args) -> None:
    """Calls a writer of the core; an error of the system's gets its number."""
    try:
        write(*args)
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
    if isinstance(obj, GeneratorState):
        return tuple(v - 2**64 if v >= 2**63 else v for v in obj.state)
    if type(obj) in (list, tuple):
        return type(obj)(map(_plain, obj))
    if isinstance(obj, dict):
        return {key: _plain(value) for key, value in obj.items()}
    if isinstance(obj, _core.Tensor) and obj.is_dist():
        raise TypeError(
            "(InvalidType) save: a distributed tensor, of which this process has a part. Hint: "
            "{name: dist.unshard_dtensor(t) for name, t in net.state_dict().items()} in all processes, and then save in one."
        )
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


class GeneratorState:
    """Where the random numbers stood at one moment: seed and position."""

    def __init__(self, state=None):
        self.state = state or _core._random_state()

    def current_seed(self) -> int:
        """The seed."""
        return self.state[0]

    def __eq__(self, other):
        return isinstance(other, GeneratorState) and self.state == other.state

    def __hash__(self):
        return hash(self.state)

    def __repr__(self):
        return "GeneratorState(seed={}, position={})".format(*self.state)


def _go_to(state) -> None:
    """Goes to a state, or to the pair that a file keeps of it."""
    pair = getattr(state, "state", state)
    if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and all(isinstance(v, int) for v in pair)):
        raise TypeError(f"(InvalidType) set_state: a state that get_state gave is needed, got {type(state).__name__}.")
    _core._set_random_state(*(v % 2**64 for v in pair))


class Generator:
    """The random numbers of the process. There is one generator for all devices, and every object stands for it."""

    def __init__(self, device=None):
        if device is not None:
            _core._check_place(device)

    def manual_seed(self, seed: int) -> Generator:
        """Starts the random numbers anew."""
        _core.seed(seed % 2**64)
        return self

    def seed(self) -> int:
        """Starts the random numbers anew from a seed that nobody chose, and returns it."""
        import os

        chosen = int.from_bytes(os.urandom(8), "little")
        _core.seed(chosen)
        return chosen

    def initial_seed(self) -> int:
        """The seed they began with."""
        return _core._random_state()[0]

    def random(self) -> int:
        """The next 64 random bits."""
        return _core._random_bits()

    def get_state(self) -> GeneratorState:
        """Where the random numbers stand now; later draws do not change it."""
        return GeneratorState()

    def set_state(self, state: GeneratorState) -> None:
        """Goes on from exactly there."""
        _go_to(state)


def seed(seed: int) -> Generator:
    """Starts the random numbers anew; the same seed gives the same numbers on any number of threads."""
    return Generator().manual_seed(seed)


def get_rng_state(device=None) -> list[GeneratorState]:
    """The state of the random numbers, to be given back to `set_rng_state`."""
    if device is not None:
        _core._check_place(device)
    return [GeneratorState()]


def get_cuda_rng_state() -> list[GeneratorState]:
    """The states of the random numbers of the GPUs; the one generator of this package serves every device."""
    return []


def set_cuda_rng_state(state_list) -> None:
    """Goes back to states that `get_cuda_rng_state` gave."""
    for state in state_list:
        _go_to(state)


def set_rng_state(state_list, device=None) -> None:
    """Goes back to a state of the random numbers."""
    if device is not None:
        _core._check_place(device)
    if len(state_list) != 1:
        raise ValueError(f"(InvalidArgument) set_rng_state: one state is needed, got {len(state_list)}.")
    _go_to(state_list[0])
