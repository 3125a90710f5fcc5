"""What a function computes by besides its arguments: the variables and attributes that its code names, and the code of the
program's functions that it calls, as far as that can be told without running it."""

from __future__ import annotations

import functools
import gc
import os
import pathlib
import sys
import sysconfig
import types

from .. import _core

PLAIN = (bool, int, float, complex, str, bytes, type(None))
# Methods that are called without being named.
_ALWAYS = ("forward", "__call__")
# Objects and functions that are looked at, at most.
_MOST = 1024


def _elsewhere() -> tuple:
    paths = sysconfig.get_paths()
    here = str(pathlib.Path(__file__).parents[1])
    folders = {here, *(paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib"))}
    return tuple(os.path.join(folder, "") for folder in folders)


_ELSEWHERE = _elsewhere()


def _is_own(file: str | None) -> bool:
    """Is it a file of the program, and not of a library?"""
    return file is not None and not file.startswith(_ELSEWHERE)


def names_of(code) -> set:
    """The names of variables and attributes in a function's code and in what is defined inside of it."""
    inner = (names_of(c) for c in code.co_consts if isinstance(c, types.CodeType))
    return set(code.co_names).union(*inner)


def is_foreign(value) -> bool:
    """Is it an object of the program's own, with attributes that a function may read?"""
    if isinstance(value, (type, types.FunctionType, types.ModuleType)) or not hasattr(value, "__dict__"):
        return False
    package = __name__.split(".")[0]
    return not any(kind.__module__.split(".")[0] == package for kind in type(value).__mro__)


class Reach:
    """What functions and objects lead to by the names in the code.

    `cells` are variables of the functions around them, `entries` those of modules and the attributes of objects: the dict
    they lie in, and the name."""

    def __init__(self, values):
        self.cells: dict = {}
        self.entries: dict = {}
        self.layers: list = []
        self._names = set(_ALWAYS)
        # What has attributes, with the dict of them; functions, with the names of their variables.
        self._holders: dict = {}
        self._functions: dict = {}
        for value in values:
            self._look(value)
        # A name that turns up later may be an attribute of what was found before.
        while self._follow():
            pass

    def _look(self, value, depth: int = 0) -> None:
        """Finds out what a value is and remembers what it leads to."""
        from ..nn import Layer
        from .steps import DEEPEST, LISTS, items

        if isinstance(value, (*PLAIN, _core.Tensor)) or len(self._holders) + len(self._functions) >= _MOST:
            return
        if isinstance(value, LISTS):
            if depth < DEEPEST:
                for inner in dict.values(value) if isinstance(value, dict) else items(value):
                    self._look(inner, depth + 1)
        elif isinstance(value, types.MethodType):
            self._look(value.__func__)
            self._look(value.__self__)
        elif isinstance(value, functools.partial):
            for inner in (value.func, *value.args, *value.keywords.values()):
                self._look(inner)
        elif isinstance(value, property):
            self._look(value.fget)
        elif isinstance(value, (staticmethod, classmethod)):
            self._look(value.__func__)
        elif isinstance(value, types.FunctionType):
            self._function(value)
        elif isinstance(value, types.ModuleType):
            if _is_own(getattr(value, "__file__", None)):
                self._holders.setdefault(id(value), (value, vars(value)))
        elif isinstance(value, type):
            self._class(value)
        elif isinstance(value, Layer) or is_foreign(value):
            if id(value) not in self._holders:
                self._holders[id(value)] = (value, value.__dict__)
                for kind in type(value).__mro__:
                    self._class(kind)
                if isinstance(value, Layer):
                    self.layers.append(value)
                    for inner in value.sublayers():
                        self._look(inner)
        elif (inner := getattr(value, "__wrapped__", None)) is not None:
            self._look(inner)

    def _function(self, function) -> None:
        if id(function) in self._functions:
            return
        if not _is_own(function.__code__.co_filename):
            self._look(getattr(function, "__wrapped__", None))
            return
        names = names_of(function.__code__)
        self._functions[id(function)] = (function, names)
        self._names |= names
        for cell, name in zip(function.__closure__ or (), function.__code__.co_freevars):
            if cell != types.CellType():
                self.cells[id(cell)] = (cell, name)
                self._look(cell.cell_contents)
        for value in (*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()):
            self._look(value)

    def _class(self, kind) -> None:
        module = sys.modules.get(kind.__module__)
        # What is typed in lies in no file.
        own = kind.__module__ == "__main__" or _is_own(getattr(module, "__file__", None))
        if own and id(kind) not in self._holders:
            # The dict behind the view that a class shows of it.
            found = next((d for d in gc.get_referents(vars(kind)) if isinstance(d, dict)), None)
            if found is not None:
                self._holders[id(kind)] = (kind, found)

    def _follow(self) -> bool:
        """Follows the names that are known by now; says whether any led further."""
        before = len(self.entries)
        spaces = [(f.__globals__, names) for f, names in list(self._functions.values())]
        spaces += [(own, self._names) for _, own in list(self._holders.values())]
        for own, names in spaces:
            for name in names & own.keys():
                if (id(own), name) not in self.entries:
                    self.entries[id(own), name] = (own, name)
                    self._look(own[name])
        return len(self.entries) > before
