"""Names of other parts of the package that are looked up when they are used."""

from __future__ import annotations

import importlib


def names(module: str, known: dict[str, str], what: str):
    """A module's `__getattr__`: `known` maps a name to `sampan.part:name`; any other is an error that says what is
    missing."""

    def __getattr__(name):
        if name in known:
            home, _, last = known[name].partition(":")
            found = importlib.import_module(home)
            return getattr(found, last) if last else found
        if name.startswith("__"):
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}: {what}")

    return __getattr__
