"""Differences that make none: a mask of -1e9 or of minus infinity, a factor before a product or after it."""

from __future__ import annotations

import numpy as np

# How many calls a difference may take to vanish.
_REACH = 6
# How many calls are looked at for that, with those that only move values or make what the others need.
_LOOK = 60
# What is added to scores so that nothing is left of them.
_HUGE = -1e4


def apart(x, y) -> float:
    """How much two arrays differ, relative to the greatest value of the first; infinitely, where they cannot be compared."""
    if x.shape != y.shape:
        return float("inf")
    if x.dtype.kind not in "fiub" or y.dtype.kind not in "fiub":
        return 0.0 if np.array_equal(x, y) else float("inf")
    x, y = x.astype("float64"), y.astype("float64")
    finite = np.isfinite(x)
    if not np.array_equal(x[~finite], y[~finite], equal_nan=True) or not np.isfinite(y[finite]).all():
        return float("inf")
    x, y = x[finite], y[finite]
    return float(np.abs(x - y).max() / max(np.abs(x).max(), 1e-12)) if x.size else 0.0


def agree(x, y, limit: float) -> bool:
    """Are they the same, element by element? Huge numbers of a mask do not hide what is beside them."""
    if apart(x, y) > max(limit, 1e-9):
        return False
    if x.dtype.kind != "f":
        return True
    both = np.isfinite(x)
    x, y = x[both].astype("float64"), y[both].astype("float64")
    size = np.abs(x)
    some = size[size > 0]
    usual = np.percentile(some, 25) if some.size else 0.0
    return bool((np.abs(x - y) <= limit * np.maximum(size, usual) + 1e-9).all())


def _blocked(x):
    """The places that a mask blocks, and whether it is one that is added; None if it is no mask."""
    if x.dtype.kind == "b":
        return x, False
    if x.dtype.kind != "f" or not x.size or not x.min() <= _HUGE:
        return None
    low = x <= _HUGE
    rest = x[~low]
    return (low, True) if not rest.size or (rest == rest.flat[0]).all() else None


def same_mask(x, y) -> bool:
    """Do two masks block the same, one with truth values or -1e9 where the other has minus infinity?"""
    if x.shape != y.shape or x.ndim < 2 or (x.dtype == y.dtype and np.array_equal(x, y)):
        return False
    p, q = _blocked(x), _blocked(y)
    if p is None or q is None or not (p[1] or q[1]):
        return False
    # What a truth value means is each call's own.
    return np.array_equal(p[0], q[0]) or (p[1] != q[1] and np.array_equal(p[0], ~q[0]))


class Healing:
    """Follows a difference through the calls after it, everything else being right."""

    def __init__(self, forcing, limit: float):
        self.forcing, self.limit = forcing, limit

    def of(self, j: int, own: list) -> bool:
        """Does what call `j` gives lead to the same as the reference's, at once or a few calls later?"""
        forcing = self.forcing
        env, live, followed = dict(forcing.env), set(), 0
        end = min(j + 1 + _LOOK, len(forcing.b.calls))
        if not self._settle(j, own, forcing.right(j), env, live):
            return False
        for c in range(j + 1, end):
            live -= {k for k in live if forcing.last_use.get(k, -1) < c}
            if not live:
                return True
            call = forcing.b.calls[c]
            if call.get("container"):
                continue
            touched = any(k in live for k in call.get("inputs", []))
            if touched and (call["op"] == "output" or call["key"] not in forcing.b.replays):
                return False
            right = forcing.right(c)
            if not touched and right and all(x is not None for x in right):
                env.update(zip(call.get("outputs", []), right))
                continue
            arrays = forcing.inputs(c, env)
            values = None if arrays is None else forcing.values(c, arrays)
            if values is None:
                if touched:
                    return False
                continue
            if not touched:
                env.update(zip(call.get("outputs", []), values))
                continue
            followed += c in forcing.partner
            if followed > _REACH:
                return False
            if right and not self._same(right, values):
                # The call may have a fault of its own, and yet give the same for both.
                swapped = forcing.swapped(c, arrays)
                beside = None if swapped is arrays else forcing.values(c, swapped)
                right = values if beside is not None and self._same(beside, values) else right
            if not self._settle(c, values, right, env, live):
                return False
        return all(forcing.last_use.get(k, -1) < end for k in live)

    def _same(self, right: list, values: list) -> bool:
        pairs = list(zip(right, values))
        return bool(pairs) and all(x is not None and agree(x, y, self.limit) for x, y in pairs)

    def _settle(self, c: int, values: list, right: list, env: dict, live: set) -> bool:
        """Notes outputs, and which of them still carry the difference; an end that carries it is no healing."""
        keys = self.forcing.b.calls[c].get("outputs", [])
        env.update(zip(keys, values))
        if not self._same(right, values):
            live.update(keys)
            return any(k in self.forcing.last_use for k in keys)
        return True
