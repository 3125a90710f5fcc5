#!/usr/bin/env python3
"""Records what the real PaddlePaddle's layers answer to the rows of crates/sampan-nn/tests/layers/*.json.

    python scripts/layers_golden.py           write crates/sampan-nn/tests/layers.safetensors
    python scripts/layers_golden.py --check   compare a live run with the committed file

A row is {"args": …, "inputs": [shape | {"shape", "below"} | {"shape", "values"}]} and may have
  "random": true     only evaluation is compared,
  "sized": true      the last input goes in as output_size,
  "peer": "Name"     another class of Paddle's stands for it,
  "tol": number      the relative error allowed, where Paddle rounds to float32 in between,
  "no_peer", "no_peer_grad": "reason"   nothing, or no gradient, is compared.
Inputs, parameters and buffers are filled by the formulas below, which tests/suite/table.rs repeats. Layers run in
float64 where Paddle can, else in float32; results are kept as float32.
"""
import argparse
import inspect
import json
import multiprocessing
import pathlib
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
TESTS = pathlib.Path(__file__).resolve().parent.parent / "crates/sampan-nn/tests"
GOLDEN = TESTS / "layers.safetensors"


def wave(n, step, start):
    return np.sin(step * (np.arange(n, dtype="float64") + 1) + start)


def input_values(spec, k):
    """The k-th input: a float wave, integers below a bound, or given integers."""
    if isinstance(spec, list):
        return (1.5 * wave(int(np.prod(spec)), 1.37, 0.4 * k)).reshape(spec)
    n = int(np.prod(spec["shape"]))
    ints = spec["values"] if "values" in spec else [(7 * i + 3) % spec["below"] for i in range(n)]
    return np.array(ints, "int64").reshape(spec["shape"])


def state_values(name, shape):
    """A parameter or buffer: a wave that depends on its name; variances are positive."""
    w = wave(int(np.prod(shape)), 0.61, float(sum(name.encode()) % 17)).reshape(shape)
    return 1.0 + 0.5 * w if name.endswith("variance") else 0.4 * w + 0.1


def run(cls, row, dtype):
    import paddle

    name = row.get("peer", cls)
    layer = getattr(paddle.nn, name)(**row["args"])
    text = layer.extra_repr()
    layer.to(dtype=dtype)
    for key, value in layer.state_dict().items():
        value.set_value(state_values(key, value.shape).astype(dtype))
    inputs = []
    for k, spec in enumerate(row["inputs"]):
        a = input_values(spec, k)
        t = paddle.to_tensor(a.astype(dtype) if a.dtype.kind == "f" else a)
        t.stop_gradient = a.dtype.kind != "f"
        inputs.append(t)
    named = {"output_size": inputs.pop().tolist()} if row.get("sized") else {}

    def call():
        out = layer(*inputs, **named)
        return list(out) if isinstance(out, (list, tuple)) else [out]

    def numbers(t):
        return np.array(t.detach().numpy(), "float32", order="C")

    found = {}
    if not row.get("random"):
        outs = call()
        found.update({f"out{i}": numbers(o) for i, o in enumerate(outs)})
        leaves = {f"grad_in{i}": t for i, t in enumerate(inputs) if not t.stop_gradient}
        leaves.update({f"grad:{k}": p for k, p in layer.named_parameters() if not p.stop_gradient})
        diff = [o for o in outs if not o.stop_gradient and "float" in str(o.dtype)]
        if diff and leaves and "no_peer_grad" not in row:
            weights = [paddle.to_tensor(wave(o.size, 1.0, 0.0).reshape(o.shape)).astype(o.dtype) for o in diff]
            grads = paddle.grad(diff, list(leaves.values()), grad_outputs=weights, allow_unused=True)
            found.update({k: numbers(g) for k, g in zip(leaves, grads) if g is not None})
        found.update({f"state:{k}": numbers(v) for k, v in layer.state_dict().items() if v.stop_gradient})
    layer.eval()
    found.update({f"eval{i}": numbers(o) for i, o in enumerate(call())})
    prefix, number = layer.full_name().rsplit("_", 1)
    names = {k: v.name.replace(f"{prefix}_{number}.", f"{prefix}.", 1) for k, v in layer.state_dict().items()}
    note = {"dtype": dtype} if "peer" in row else {"dtype": dtype, "prefix": prefix, "names": names, "repr": text}
    return found, json.dumps(note)


def answer(cls, rows):
    """What Paddle answers to the rows of a class: tensors by key, notes by key, and who got no answer."""
    golden, notes, bad = {}, {}, []
    for i, row in enumerate(rows):
        if "no_peer" in row:
            continue
        key, error = f"{cls}/{i}", None
        for dtype in ("float64", "float32"):
            try:
                found, notes[key] = run(cls, row, dtype)
                golden.update({f"{key}/{k}": v for k, v in found.items()})
                break
            except Exception as e:
                error = error or e
        else:
            bad.append(f"{key}: {type(error).__name__}: {str(error).strip().splitlines()[-1][:160]}")
    return golden, notes, bad


def signature(cls):
    """The constructor's arguments: [name] for a required one, else [name, default]."""
    import paddle

    params = inspect.signature(getattr(paddle.nn, cls).__init__).parameters.values()
    plain = [p for p in params if p.name not in ("self", "name") and p.kind not in (p.VAR_POSITIONAL, p.VAR_KEYWORD)]
    return [[p.name] if p.default is p.empty else [p.name, p.default] for p in plain]


def record():
    """Asks class by class, each in a process of its own: some of Paddle's kernels write past their buffers."""
    import paddle  # noqa: F401  (loaded once, before the forks)

    table = {}
    for file in sorted((TESTS / "layers").glob("*.json")):
        for cls, rows in json.loads(file.read_text()).items():
            table.setdefault(cls, []).extend(rows)
    golden, notes, bad = {}, {"signatures": json.dumps({cls: signature(cls) for cls in sorted(table)})}, []
    context = multiprocessing.get_context("fork")
    for cls, rows in sorted(table.items()):
        receive, send = context.Pipe(False)
        child = context.Process(target=lambda: send.send(answer(cls, rows)))
        child.start()
        send.close()
        try:
            g, n, b = receive.recv()
            golden.update(g)
            notes.update(n)
            bad += b
        except EOFError:
            bad.append(f"{cls}: Paddle crashed")
        child.join()
    return golden, notes, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    from safetensors import safe_open
    from safetensors.numpy import save_file

    golden, notes, bad = record()
    for line in bad:
        print("no answer:", line)
    if options.check:
        with safe_open(str(GOLDEN), "np") as f:
            old = {k: f.get_tensor(k) for k in f.keys()}
        same = lambda k, v: k in old and np.allclose(old[k], v, 1e-4, 1e-5, equal_nan=True)
        differ = [k for k, v in golden.items() if not same(k, v)]
        print(f"{len(golden)} tensors checked, {len(differ)} differ: {differ}")
        sys.exit(bool(differ or bad))
    save_file(golden, str(GOLDEN), metadata=notes)
    print(f"{len(notes) - 1} rows, {len(golden)} tensors, {GOLDEN.stat().st_size} bytes, {len(bad)} without an answer")


if __name__ == "__main__":
    main()
