"""Teacher forcing: each call of the candidate is made again with the reference's inputs, so that each is judged alone."""

from __future__ import annotations

import contextlib

import numpy as np

from ._healing import Healing, agree, apart, same_mask
from ._recorder import Recorder, _first_line, inside_again
from ._tree import leaves


@contextlib.contextmanager
def _statistics_kept(side, layer):
    """Running statistics as they were, whatever a layer in training mode does to them."""
    saved = []
    if layer is not None and getattr(layer, "training", False):
        for _, inner in side.layers(layer):
            saved += [(t, side.array(t)) for _, t, buffer, _ in side.parameters(inner) if buffer]
    try:
        yield
    finally:
        for tensor, array in saved:
            side.set_value(tensor, array)


def _trained(side, call) -> list:
    """The parameters that a call reads, by name: of its layer, or those among its arguments."""
    if call.layer is None:
        return []
    found = []
    for name, layer in side.layers(call.layer):
        found += [(f"{name}.{own}" if name else own, t) for own, t, buffer, trained in side.parameters(layer) if trained and not buffer]
    return found


def _again(recorder: Recorder, key: str, arrays: list, upstream: dict | None):
    """Outputs of a call with these arrays in the place of its tensors, and gradients for those of the outputs."""
    side, call = recorder.side, recorder.replays[key]
    originals = leaves((call.args, call.kwargs), side.is_tensor)
    fresh = iter(arrays)
    tensors = []
    for (name, _), original in zip(call.inputs, originals):
        if name.startswith("parameter:"):
            tensors.append(original)
        else:
            tensors.append(side.leaf(side.tensor(next(fresh), original)))
    # Functions that write into their first argument need one that nobody differentiates by.
    given = tensors if call.layer is not None else [t * 1 if "float" in str(t.dtype) else t for t in tensors]
    with _statistics_kept(side, call.layer):
        outputs = inside_again(side, call, given)
    values = [side.array(t) for t in outputs]
    if upstream is None:
        return values, {}
    own = [(f"in{i}", t) for i, t in enumerate(t for (n, _), t in zip(call.inputs, tensors) if not n.startswith("parameter:"))]
    own = [(n, t) for n, t in own if "float" in str(t.dtype)] + _trained(side, call)
    pairs = [(o, upstream[i]) for i, o in enumerate(outputs) if upstream.get(i) is not None]
    pairs = [(o, u) for o, u in pairs if tuple(u.shape) == tuple(o.shape)]
    if not pairs or not own:
        return values, {}
    made = side.gradients([o for o, _ in pairs], [t for _, t in own], [side.tensor(u, o) for o, u in pairs])
    return values, {n: side.array(g) if g is not None else np.zeros(tuple(t.shape), "float32") for (n, t), g in zip(own, made)}


def _unique(keys: list) -> list:
    return list(dict.fromkeys(keys))


def _swap(own: list, own_arrays: list, theirs: list, values: dict) -> list | None:
    """The reference's inputs in the places of the candidate's, where they fit; None if they are not as many.

    A mask that is written in another way stays the candidate's own: its call would not understand the other's.
    """
    ours, others = _unique(own), _unique(theirs)
    if len(ours) != len(others):
        return None
    table = {k: values.get(o) for k, o in zip(ours, others)}
    return [_placed(table[k], y) for k, y in zip(own, own_arrays)]


def _placed(x, y):
    """The reference's array in the form of the candidate's, or the candidate's own where it does not fit."""
    if x is None or same_mask(x, y):
        return y
    if x.shape != y.shape:
        return x.reshape(y.shape) if _without_ones(x) == _without_ones(y) else y
    return x


def _without_ones(x) -> list:
    return [d for d in x.shape if d != 1]


class _Forcing:
    """What the candidate's calls make of the reference's tensors, one call after the other."""

    def __init__(self, a: Recorder, b: Recorder, pairs: list):
        self.a, self.b = a, b
        # Calls that only move values or make constants are judged by where the values arrive, not one by one.
        self.partner = {j: i for i, j, _, glue in pairs if not glue}
        self.ours, self.theirs = a.section("forward"), b.section("forward")
        self.forced, self.local_a, self.local_b = b.section("forced"), a.section("local"), b.section("local")
        self.gradients = a.section("gradients")
        # What the candidate's tensors would be if everything before had been right.
        self.env: dict = {}
        self.last_use = {k: j for j, call in enumerate(b.calls) if not call.get("container") for k in call.get("inputs", [])}

    def right(self, j: int) -> list:
        """The reference's outputs of the call that is this one, None for those that are not known."""
        i = self.partner.get(j)
        keys = [] if i is None else self.a.calls[i].get("outputs", [])
        return [self.ours.get(k) for k in keys]

    def inputs(self, j: int, env: dict) -> list | None:
        arrays = [env.get(k, self.theirs.get(k)) for k in self.b.calls[j].get("inputs", [])]
        return None if any(x is None for x in arrays) else arrays

    def swapped(self, j: int, arrays: list) -> list:
        """The reference's inputs where they fit; the very same list if none does."""
        i = self.partner.get(j)
        if i is None:
            return arrays
        placed = _swap(self.b.calls[j]["inputs"], arrays, self.a.calls[i].get("inputs", []), self.ours)
        return placed if placed and any(x is not y for x, y in zip(placed, arrays)) else arrays

    def values(self, j: int, arrays: list) -> list | None:
        """The outputs of a call of the candidate, or None if it cannot be made again."""
        try:
            return _again(self.b, self.b.calls[j]["key"], arrays, None)[0]
        except Exception:  # noqa: BLE001
            return None

    def call(self, j: int) -> None:
        call = self.b.calls[j]
        key, arrays = call["key"], self.inputs(j, self.env)
        if arrays is None:
            return
        i, chosen = self.partner.get(j), self.swapped(j, arrays)
        others = self.a.calls[i].get("inputs", []) if i is not None else []
        for n, x in enumerate(arrays):
            right = self.ours.get(others[n]) if len(others) == len(arrays) else None
            self.forced[f"{key}:in{n}"] = right if right is not None and same_mask(right, x) else x
        if key not in self.b.replays:
            return
        upstream = None
        if i is not None and (self.gradients or self.a.calls[i]["key"].startswith("(program)")):
            keys = self.a.calls[i].get("outputs", [])
            upstream = {n: _upstream(self.ours, self.gradients, k) for n, k in enumerate(keys)}
        try:
            values, made = _again(self.b, key, chosen, upstream)
        except Exception as error:  # noqa: BLE001
            if i is not None and chosen is not arrays:
                call.setdefault("config", {})["refuses"] = f"{type(error).__name__}: {_first_line(error)}"
            values, made = None, {}
        self.note_gradients(i, key, made, upstream)
        own = self.own_values(j, arrays, chosen, values)
        if own is not None:
            call["heals"] = True
        for n, k in enumerate(call.get("outputs", [])):
            if values is not None and n < len(values):
                self.forced[f"{key}:out{n}"] = values[n]
                self.env[k] = values[n]
            if own is not None and n < len(own):
                self.env[k] = own[n]
                continue
            right = self.right(j)[n] if n < len(self.right(j)) else None
            mine = self.env.get(k, self.theirs.get(k))
            if right is not None and mine is not None and _replaces(right, mine):
                self.env[k] = right.reshape(mine.shape) if _without_ones(right) == _without_ones(mine) else right

    def note_gradients(self, i, key, made, upstream) -> None:
        for n, g in made.items():
            self.local_b[f"{key}:{n}"] = g
        if made and i is not None:
            other = self.a.calls[i]
            with contextlib.suppress(Exception):
                mine = [self.ours[k] for k in other.get("inputs", [])]
                for n, g in _again(self.a, other["key"], mine, upstream)[1].items():
                    self.local_a[f"{other['key']}:{n}"] = g

    def own_values(self, j: int, arrays: list, chosen: list, values: list | None) -> list | None:
        """The call's outputs on the candidate's own inputs, if it differs from the reference here and not a few calls later."""
        right = self.right(j)
        if not right or self.b.calls[j].get("op") == "output":
            return None
        far = [apart(x, y) for x, y in zip(chosen, arrays) if x is not y]
        inputs = max(far, default=0.0)
        outputs = max((apart(x, y) for x, y in zip(right, values or []) if x is not None), default=0.0)
        # Layers with weights of their own are what they are; masks, factors and sums can be written in several ways.
        weighty = bool(_trained(self.b.side, self.b.replays[self.b.calls[j]["key"]]))
        if max(inputs, 0.0 if weighty else outputs) <= 1e-5:
            return None
        own = values if chosen is arrays else self.values(j, arrays)
        limit = min(max(inputs, outputs) / 500.0, 5e-5)
        if inputs > 1e-5 and own and values and all(agree(x, y, limit) for x, y in zip(values, own)):
            # The inputs differ in what the call makes nothing of.
            for n, x in enumerate(chosen):
                self.forced[f"{self.b.calls[j]['key']}:in{n}"] = x
        return own if own is not None and Healing(self, limit).of(j, own) else None


def force(a: Recorder, b: Recorder, pairs: list) -> None:
    """Notes what the candidate's calls make of the reference's tensors, forward and backward."""
    forcing = _Forcing(a, b, pairs)
    for j, call in enumerate(b.calls):
        if not call.get("container"):
            forcing.call(j)
    a._recording = b._recording = None


def _replaces(right, mine) -> bool:
    """May the reference's tensor stand for the candidate's? Not where the axes only have another order."""
    return _without_ones(right) == _without_ones(mine) or (right.ndim == mine.ndim and sorted(right.shape) != sorted(mine.shape))


def _upstream(values, gradients, key):
    if key in gradients:
        return gradients[key]
    value = values.get(key)
    # A loss is the end of the chain.
    return np.ones_like(value) if value is not None and value.size == 1 and key.startswith("(program)") else None
