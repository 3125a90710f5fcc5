#!/usr/bin/env python3
"""Records what the real PaddlePaddle's layers answer to the rows of crates/sampan-nn/tests/layers/*.json.

    python scripts/layers_golden.py           write crates/sampan-nn/tests/layers.safetensors
    python scripts/layers_golden.py --check   compare a live run with the committed file

A row is {"args": …, "inputs": [shape | {"shape", "below"} | {"shape", "values"} | {"shape", "between": [low, high]}]}. An
input of values may have a "dtype" other than int64, one between bounds may be "fixed": no gradient is asked. An argument
may be {"tensor": input} or {"class", "args"}, another layer. A row may have
  "call": [0, null, [1, 2]]   where each input goes in Paddle's call, null for None, a list for a tuple,
  "norm": {"weight_norm": …}  the layer's weight is put in that form of nn.utils,
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
import re
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
TESTS = pathlib.Path(__file__).resolve().parent.parent / "crates/sampan-nn/tests"
GOLDEN = TESTS / "layers.safetensors"


def wave(n, step, start):
    return np.sin(step * (np.arange(n, dtype="float64") + 1) + start)


def input_values(spec, k):
    """The k-th input: a float wave, one between bounds, integers below a bound, or given values."""
    if isinstance(spec, list):
        return (1.5 * wave(int(np.prod(spec)), 1.37, 0.4 * k)).reshape(spec)
    n = int(np.prod(spec["shape"]))
    if "between" in spec:
        low, high = spec["between"]
        return (low + (high - low) * (0.5 + 0.5 * wave(n, 1.37, 0.4 * k))).reshape(spec["shape"])
    ints = spec["values"] if "values" in spec else [(7 * i + 3) % spec["below"] for i in range(n)]
    return np.array(ints, spec.get("dtype", "int64")).reshape(spec["shape"])


def input_tensor(spec, k, dtype):
    import paddle

    a = input_values(spec, k)
    t = paddle.to_tensor(a.astype(dtype) if a.dtype.kind == "f" else a)
    t.stop_gradient = a.dtype.kind != "f" or (isinstance(spec, dict) and ("fixed" in spec or "values" in spec))
    return t


def argument(v, dtype):
    """An argument of a constructor."""
    import paddle

    if isinstance(v, dict) and "tensor" in v:
        t = input_tensor(v["tensor"], 0, dtype)
        t.stop_gradient = True
        return t
    if isinstance(v, dict):
        return getattr(paddle.nn, v["class"])(**arguments(v["args"], dtype))
    return v


def arguments(args, dtype):
    return {k: argument(v, dtype) for k, v in args.items()}


def place(inputs, at):
    """Inputs where Paddle's call has them."""
    if isinstance(at, list):
        return tuple(place(inputs, i) for i in at)
    return None if at is None else inputs[at]


def flat(out):
    if isinstance(out, (list, tuple)):
        return [t for part in out for t in flat(part)]
    return [out]


def state_values(name, shape):
    """A parameter or buffer: a wave that depends on its name; variances are positive."""
    w = wave(int(np.prod(shape)), 0.61, float(sum(name.encode()) % 17)).reshape(shape)
    return 1.0 + 0.5 * w if name.endswith("variance") else 0.4 * w + 0.1


def run(cls, row, dtype):
    import paddle

    build = getattr(paddle.nn, row.get("peer", cls))
    paddle.set_default_dtype("float32")
    text = build(**arguments(row["args"], "float32")).extra_repr()
    paddle.set_default_dtype(dtype)
    layer = build(**arguments(row["args"], dtype))
    for form, settings in row.get("norm", {}).items():
        getattr(paddle.nn.utils, form)(layer, **settings)
    # In the order of names: a tensor with two of them gets the values of the last.
    for key, value in sorted(layer.state_dict().items()):
        value.set_value(np.asarray(state_values(key, value.shape), dtype))
    inputs = [input_tensor(spec, k, dtype) for k, spec in enumerate(row["inputs"])]
    named = {"output_size": inputs.pop().tolist()} if row.get("sized") else {}

    def call():
        outs = flat(layer(*place(inputs, row.get("call", list(range(len(inputs))))), **named))
        # Paddle wants no output twice.
        return [o * 1 if any(o is p for p in outs[:i]) else o for i, o in enumerate(outs)]

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
    evaluated = {i: numbers(o) for i, o in enumerate(call())}
    # Most layers do the same in evaluation: once is enough.
    same = {i for i, o in evaluated.items() if f"out{i}" in found and np.array_equal(found[f"out{i}"], o)}
    found.update({f"eval{i}": o for i, o in evaluated.items() if i not in same})
    prefix = layer.full_name().rsplit("_", 1)[0]
    names = {k: re.sub(r"_\d+\.", ".", v.name, count=1) for k, v in layer.state_dict().items()}
    note = {"dtype": dtype, "prefix": prefix, "names": names, "repr": text}
    if "peer" in row or "spectral_norm" in row.get("norm", {}):
        note = {"dtype": dtype}
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
