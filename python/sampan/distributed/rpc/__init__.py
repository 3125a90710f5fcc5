"""Calls of functions in other processes.

What travels is the name of a function and values as data: numbers, texts, bytes, lists, tuples, dicts and tensors. Nothing that
arrives is unpickled or run. A process calls only functions of its own program: those that stand in the main program, in modules
beside it, or in modules that it named by `allow`. Whoever calls has proved to know the secret of the job.
"""

from __future__ import annotations

import pathlib
import sys
import threading
import traceback
from typing import NamedTuple

from ... import _core

__all__ = [
    "get_all_worker_infos",
    "get_current_worker_info",
    "get_worker_info",
    "init_rpc",
    "rpc_async",
    "rpc_sync",
    "shutdown",
]

_calls = None
# Others may call as soon as all have met, a moment before this process knows of it.
_met = threading.Event()
_allowed: set[str] = set()


class WorkerInfo(NamedTuple):
    """A process that can be called: its name, its number, and where it is."""

    name: str
    rank: int
    ip: str
    port: int

    def __repr__(self):
        return f"{{name: {self.name}, rank: {self.rank}, ip: {self.ip}, port: {self.port}}}"


def allow(*modules: str) -> None:
    """Lets others call the functions of these modules here. Those of the program itself need no permission."""
    _allowed.update(modules)


def _is_own(module) -> bool:
    """Does a module belong to the program?"""
    main = sys.modules["__main__"]
    if module is main or module.__name__ in _allowed:
        return True
    home, place = getattr(main, "__file__", None), getattr(module, "__file__", None)
    if home is None or place is None:
        return False
    folder, place = pathlib.Path(home).resolve().parent, pathlib.Path(place).resolve()
    # An environment of packages may lie beside the program; what it has was written by others.
    return place.is_relative_to(folder) and "site-packages" not in place.relative_to(folder).parts


def _name(function) -> tuple[str, str]:
    """The name by which others find a function."""
    module, name = getattr(function, "__module__", None), getattr(function, "__qualname__", "")
    # Processes of `spawn` have the main program under another name.
    module = "__main__" if module == "__mp_main__" else module
    if module is None or not name.isidentifier():
        raise ValueError(
            f"(InvalidArgument) rpc: {function!r} has no name that another process could find it by."
            " [Hint: give a function that is defined at the top of a module of the program.]"
        )
    return module, name


def _find(module: str, name: str):
    found = sys.modules.get(module)
    if found is None or not _is_own(found):
        raise PermissionError(
            f"(PreconditionNotMet) rpc: {module} is not part of this program, so {name} is not called for others."
            f" [Hint: define a function in the program, or call rpc.allow({module!r}) where it is to run.]"
        )
    function = vars(found).get(name)
    if not callable(function) or (getattr(function, "__module__", None), getattr(function, "__name__", None)) != (
        found.__name__,
        name,
    ):
        raise AttributeError(f"(NotFound) rpc: {module} defines no function {name}.")
    return function


def _answer(asked: bytes) -> bytes:
    """Does what another process asks for."""
    _met.wait(60)
    try:
        module, name, args, kwargs = _core._load_bytes(asked, False, False)[0]
        value = _find(module, name)(*args, **kwargs)
        return _core._save_bytes([True, value], 4)
    except Exception as error:
        return _core._save_bytes([False, f"{type(error).__name__}: {error}", traceback.format_exc()], 4)


def _here():
    if _calls is None:
        raise RuntimeError("(PreconditionNotMet) rpc: processes have not met. [Hint: call init_rpc() first.]")
    return _calls


class FutureWrapper:
    """A call that was begun."""

    def __init__(self, calls, to: str, asked: bytes, timeout: float):
        self._value, self._error = None, None
        self._thread = threading.Thread(target=self._run, args=(calls, to, asked, timeout), daemon=True)
        self._thread.start()

    def _run(self, calls, to, asked, timeout) -> None:
        try:
            told = _core._load_bytes(calls.call(to, asked, max(0.0, float(timeout))), False, False)[0]
            if told[0]:
                self._value = told[1]
            else:
                self._error = RuntimeError(f"(External) rpc: {to} says {told[1]}\n\nThere:\n{told[2]}")
        except BaseException as error:
            self._error = error

    def done(self) -> bool:
        """Has an answer come?"""
        return not self._thread.is_alive()

    def wait(self):
        """What the function returned there. What it raised there is raised here as a RuntimeError that tells of it."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value


def init_rpc(name: str, rank=None, world_size=None, master_endpoint=None) -> None:
    """Meets the other processes, under a name of one's own. Where `launch` or `spawn` started them, the rest is known."""
    global _calls
    if _calls is not None:
        raise RuntimeError("(PreconditionNotMet) init_rpc: this process has met others already. [Hint: shutdown() first.]")
    _calls = _core.Calls(name, rank, world_size, master_endpoint, _answer)
    _met.set()


def rpc_async(to: str, fn, args=None, kwargs=None, timeout=-1) -> FutureWrapper:
    """Begins to call a function in the process `to`; `wait()` of what it gives has the result. `timeout` is in seconds, and none
    if it is not positive."""
    asked = _core._save_bytes([*_name(fn), tuple(args or ()), dict(kwargs or {})], 4)
    return FutureWrapper(_here(), to, asked, timeout)


def rpc_sync(to: str, fn, args=None, kwargs=None, timeout=-1):
    """Calls a function in the process `to` and waits for the result."""
    return rpc_async(to, fn, args, kwargs, timeout).wait()


def get_worker_info(name: str) -> WorkerInfo:
    """The process of a name."""
    return WorkerInfo(*_here().worker(name))


def get_all_worker_infos() -> list[WorkerInfo]:
    """All processes, in the order of their ranks."""
    return [WorkerInfo(*told) for told in _here().workers()]


def get_current_worker_info() -> WorkerInfo:
    """This process."""
    return WorkerInfo(*_here().own())


def shutdown() -> None:
    """Waits until all processes call it; from then on nobody is called."""
    global _calls
    _here().finish()
    _met.clear()
    _calls = None
