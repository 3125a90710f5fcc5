"""Teacher forcing: each call of the candidate is made again with the reference's inputs, so that each is judged alone."""

from __future__ import annotations

import contextlib

import numpy as np

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
    """The reference's inputs in the places of the candidate's, or None if they do not fit."""
    ours, others = _unique(own), _unique(theirs)
    if len(ours) != len(others):
        return None
    table = {k: values.get(o) for k, o in zip(ours, others)}
    arrays = [table[k] for k in own]
    fits = all(x is not None and x.shape == y.shape for x, y in zip(arrays, own_arrays))
    return arrays if fits else None


def force(a: Recorder, b: Recorder, pairs: list) -> None:
    """Notes what the candidate's calls make of the reference's tensors, forward and backward."""
    # Calls that only move values are judged by where the values arrive, not one by one.
    partner = {j: i for i, j, _, glue in pairs if not glue}
    ours, theirs = a.section("forward"), b.section("forward")
    forced, local_a, local_b = b.section("forced"), a.section("local"), b.section("local")
    gradients = a.section("gradients")
    # What the candidate's tensors would be if everything before had been right.
    env: dict = {}
    for j, call in enumerate(b.calls):
        if call.get("container"):
            continue
        key, inputs = call["key"], call.get("inputs", [])
        arrays = [env.get(k, theirs.get(k)) for k in inputs]
        if any(x is None for x in arrays):
            continue
        for i, x in enumerate(arrays):
            forced[f"{key}:in{i}"] = x
        if key not in b.replays:
            continue
        i = partner.get(j)
        chosen = arrays
        if i is not None:
            other = a.calls[i]
            chosen = _swap(inputs, arrays, other.get("inputs", []), ours) or arrays
        upstream = None
        if i is not None and (gradients or other["key"].startswith("(program)")):
            upstream = {n: _upstream(ours, gradients, k) for n, k in enumerate(other.get("outputs", []))}
        try:
            values, made = _again(b, key, chosen, upstream)
        except Exception as error:  # noqa: BLE001
            if i is not None and chosen is not arrays:
                b.calls[j].setdefault("config", {})["refuses"] = f"{type(error).__name__}: {_first_line(error)}"
            values, made = None, {}
        for n, g in made.items():
            local_b[f"{key}:{n}"] = g
        if made and i is not None:
            with contextlib.suppress(Exception):
                mine = [ours[k] for k in a.calls[i].get("inputs", [])]
                for n, g in _again(a, a.calls[i]["key"], mine, upstream)[1].items():
                    local_a[f"{a.calls[i]['key']}:{n}"] = g
        outputs = call.get("outputs", [])
        for n, k in enumerate(outputs):
            if values is not None and n < len(values):
                forced[f"{key}:out{n}"] = values[n]
                env[k] = values[n]
            if i is not None and n < len(a.calls[i].get("outputs", [])):
                right = ours.get(a.calls[i]["outputs"][n])
                mine = env.get(k, theirs.get(k))
                if right is not None and mine is not None and _replaces(right, mine):
                    env[k] = right
    a._recording = b._recording = None


def _replaces(right, mine) -> bool:
    """May the reference's tensor stand for the candidate's? Not where the axes only have another order."""
    return right.shape == mine.shape or (right.ndim == mine.ndim and sorted(right.shape) != sorted(mine.shape))


def _upstream(values, gradients, key):
    if key in gradients:
        return gradients[key]
    value = values.get(key)
    # A loss is the end of the chain.
    return np.ones_like(value) if value is not None and value.size == 1 and key.startswith("(program)") else None
