"""Runs a program or a module as `__main__`, with sampan in Paddle's place."""

from __future__ import annotations

import io
import os
import sys
import types

from . import finder

_SHADOW = os.path.join(os.path.dirname(os.path.abspath(__file__)), "shadow")


def _prepare(folder: str) -> None:
    """`paddle` is sampan here and in the processes that the program starts, and modules are found in its folder."""
    finder.install_as_paddle()
    # Processes that multiprocessing spawns get the path; others read the environment.
    sys.path[:1] = [folder, _SHADOW]
    home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    paths = [_SHADOW, home, *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    os.environ["PYTHONPATH"] = os.pathsep.join(dict.fromkeys(paths))


def _execute(code: types.CodeType, main: types.ModuleType) -> None:
    """Runs the code; an exception is shown as Python shows it, without our own frames."""
    sys.modules["__main__"] = main
    try:
        exec(code, main.__dict__)
    except SystemExit:
        raise
    except BaseException as error:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_globals.get("__name__") == __name__:
            trace = trace.tb_next
        error.__traceback__ = trace
        sys.excepthook(type(error), error, trace)
        if isinstance(error, KeyboardInterrupt):
            raise SystemExit(130) from None
        raise SystemExit(1) from None


def run_file(path: str, arguments: list[str]) -> None:
    """`python path arguments…`."""
    if os.path.isdir(path):
        path = os.path.join(path, "__main__.py")
    try:
        # As Python reads a source: with the encoding that it declares.
        with io.open_code(os.path.abspath(path)) as file:
            source = file.read()
    except OSError as error:
        print(f"python -m sampan run: can't open file {path!r}: {error.strerror}", file=sys.stderr)
        raise SystemExit(2) from None
    _prepare(os.path.dirname(os.path.abspath(path)))
    sys.argv = [path, *arguments]
    main = types.ModuleType("__main__")
    main.__dict__.update(__file__=path, __builtins__=__builtins__, __cached__=None, __spec__=None)
    try:
        code = compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        sys.excepthook(type(error), error, None)
        raise SystemExit(1) from None
    _execute(code, main)


def run_module(name: str, arguments: list[str]) -> None:
    """`python -m name arguments…`."""
    import importlib.util

    _prepare(os.getcwd())

    def find(wanted: str):
        try:
            return importlib.util.find_spec(wanted)
        except ModuleNotFoundError as error:
            # A module inside the program that is missing is the program's error, not a wrong name.
            if error.name and not (wanted == error.name or wanted.startswith(error.name + ".")):
                raise
            return None

    spec = find(name)
    if spec is not None and spec.submodule_search_locations is not None:
        spec = find(f"{name}.__main__")
    code = spec and spec.loader.get_code(spec.name)
    if code is None:
        print(f"python -m sampan run: no module named {name!r} that can be run", file=sys.stderr)
        raise SystemExit(1)
    sys.argv = [spec.origin, *arguments]
    main = types.ModuleType("__main__")
    main.__dict__.update(
        __file__=spec.origin,
        __builtins__=__builtins__,
        __cached__=None,
        __spec__=spec,
        __package__=spec.parent,
        __loader__=spec.loader,
    )
    _execute(code, main)
