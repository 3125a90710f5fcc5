#!/usr/bin/env python3
"""Records what NumPy answers to random index expressions: reads, writes and accumulating writes.

    python scripts/indexing_golden.py     write crates/sampan-core/tests/data/indexing.json

Each case: the shape of x (filled with 0, 1, 2 …), the index in the encoding of the core (an int, a list of three for a
slice, "..." , null, a bool, {"shape", "ints"} or {"shape", "mask"}), and either NumPy's result or that it refused.
"""
import json
import pathlib
import random

import numpy as np

OUT = pathlib.Path(__file__).resolve().parent.parent / "crates/sampan-core/tests/data/indexing.json"


def random_part(rng, extents, broken):
    """One part of an index for the axes that remain, and how many of them it takes up."""
    kind = rng.choice(["int", "int", "slice", "slice", "slice", "new", "ints", "ints", "mask", "truth"])
    if kind == "new" or not extents:
        return None, 0
    if kind == "truth":
        return rng.random() < 0.7, 0
    n = extents[0]
    if n == 0 and kind in ("int", "ints"):
        kind = "slice"
    if kind == "int":
        return rng.randint(-n - broken, n - 1 + broken), 1
    if kind == "slice":
        bound = lambda: None if rng.random() < 0.4 else rng.randint(-n - 2, n + 2)
        step = rng.choice([None, None, 1, 2, -1, -2, 3, -3])
        return [bound(), bound(), step], 1
    if kind == "ints":
        shape = rng.choice([[], [1], [2], [2], [3], [2, 1], [1, 2], [0]])
        count = int(np.prod(shape))
        values = [rng.randint(-n - broken, n - 1 + broken) for _ in range(count)]
        return {"shape": shape, "ints": values}, 1
    rank = rng.randint(1, min(2, len(extents)))
    shape = list(extents[:rank])
    if broken and rng.random() < 0.3:
        shape[0] += 1
    count = int(np.prod(shape))
    if rng.random() < 0.5 and count >= 2:
        # Two trues, to broadcast with other indices of two.
        values = [0] * count
        for i in rng.sample(range(count), 2):
            values[i] = 1
    else:
        values = [int(rng.random() < 0.5) for _ in range(count)]
    return {"shape": shape, "mask": values}, rank


def to_numpy(part):
    if isinstance(part, list):
        return slice(*part)
    if part == "...":
        return Ellipsis
    if isinstance(part, dict) and "ints" in part:
        return np.array(part["ints"], dtype=np.int64).reshape(part["shape"])
    if isinstance(part, dict):
        return np.array(part["mask"], dtype=bool).reshape(part["shape"])
    return part


def case(rng):
    shape = [rng.choice([1, 2, 2, 3, 3, 4, 0] if rng.random() < 0.1 else [1, 2, 3, 3]) for _ in range(rng.randint(0, 4))]
    broken = int(rng.random() < 0.08)
    left, parts = list(shape), []
    for _ in range(rng.randint(0, len(shape) + 1)):
        part, used = random_part(rng, left, broken)
        parts.append(part)
        left = left[used:]
    if rng.random() < 0.3:
        parts.insert(rng.randint(0, len(parts)), "...")
    index = tuple(to_numpy(p) for p in parts)
    x = np.arange(int(np.prod(shape)), dtype=np.int64).reshape(shape)
    try:
        got = x[index]
    except IndexError:
        return {"shape": shape, "index": parts, "error": True}
    got = np.asarray(got)
    values = -1 - np.arange(got.size, dtype=np.int64).reshape(got.shape)
    written, added = x.copy(), x.copy()
    written[index] = values
    np.add.at(added, index, values)
    return {
        "shape": shape, "index": parts, "result_shape": list(got.shape), "result": got.ravel().tolist(),
        "written": written.ravel().tolist(), "added": added.ravel().tolist(),
    }


def main():
    rng = random.Random(7)
    cases = []
    while len(cases) < 320:
        c = case(rng)
        if len(c.get("result", [])) <= 40 and int(np.prod(c["shape"])) <= 60:
            cases.append(c)
    OUT.write_text("[\n" + ",\n".join(json.dumps(c, separators=(",", ":")) for c in cases) + "\n]\n")
    print(f"{len(cases)} cases, {sum('error' in c for c in cases)} refused, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
