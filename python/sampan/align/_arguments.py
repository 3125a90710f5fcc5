"""What callers give, checked before anything runs: a wrong argument is one sentence."""

from __future__ import annotations

import os


def wrong(call: str, what: str, wanted: str, got) -> TypeError:
    """The error for an argument of another type than wanted."""
    return TypeError(f"(InvalidType) {call}: {what} is {wanted}, not {type(got).__name__}.")


def path(value, call: str) -> str:
    """A path as text."""
    if not isinstance(value, (str, os.PathLike)):
        raise wrong(call, "the path", "a str or os.PathLike", value)
    return os.fspath(value)


def count(value, call: str, what: str) -> int:
    """A number of things, one or more."""
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise wrong(call, what, "an int", value)
    if value < 1:
        raise ValueError(f"(InvalidArgument) {call}: {what} is 1 or more, got {value}.")
    return int(value)


def two(value, what: str, fits, wanted: str) -> tuple:
    """A pair for the two sides, out of one thing for both or two things that each are what is wanted, or None."""
    both = value if isinstance(value, (tuple, list)) else (value, value)
    if len(both) != 2:
        raise ValueError(f"(InvalidArgument) align: {what} is one thing for both sides or a pair, not {len(both)} things.")
    for one in both:
        if one is not None and not fits(one):
            raise wrong("align", what, f"{wanted}, or a pair of them, the reference's first", one)
    return tuple(both)


def steps_or_makes(value) -> bool:
    """Is it an optimizer or scheduler, or a function that makes one?"""
    return hasattr(value, "step") or callable(value)


def iterates(value) -> bool:
    """Does it give one thing after the other?"""
    return hasattr(value, "__iter__") or hasattr(value, "__getitem__")


def names(value, call: str) -> list:
    """Checks by name: None for all, a list, or text with commas."""
    if value is None:
        return []
    if isinstance(value, str):
        return [c.strip() for c in value.split(",")]
    if not isinstance(value, (tuple, list, set)) or not all(isinstance(c, str) for c in value):
        raise wrong(call, "checks", "a list of names such as ['forward', 'loss']", value)
    return list(value)


def number(value, call: str, what: str) -> float | None:
    """A number, or None."""
    if value is None:
        return None
    if isinstance(value, (bool, str)) or not hasattr(value, "__float__"):
        raise wrong(call, what, "a number", value)
    return float(value)


def mapping_text(mapping, call: str = "align") -> str:
    """A mapping as lines: text, a dict of names, a list of lines, or the path of a file of them."""
    if mapping is None:
        return ""
    if isinstance(mapping, dict):
        return "\n".join(f"{'-' if a is None else a} = {'-' if b is None else b}" for a, b in mapping.items())
    if isinstance(mapping, os.PathLike) or (isinstance(mapping, str) and "\n" not in mapping and os.path.isfile(mapping)):
        try:
            with open(mapping, encoding="utf-8") as file:
                return file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise ValueError(f"(InvalidArgument) {call}: the mapping {os.fspath(mapping)} cannot be read: {error}.") from None
    if isinstance(mapping, (tuple, list)) and all(isinstance(line, str) for line in mapping):
        return "\n".join(mapping)
    if not isinstance(mapping, str):
        raise wrong(call, "mapping", "lines of text, a list of lines, the path of a file of them, or a dict of names", mapping)
    return mapping
