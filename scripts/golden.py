#!/usr/bin/env python3
"""Records what the real PaddlePaddle answers to every op's samples.

    python scripts/golden.py            write crates/sampan-core/tests/golden.safetensors
    python scripts/golden.py --check    compare a live run with the committed file
    python scripts/golden.py --only relu,gelu   (re)record some ops, keep the others

Needs paddlepaddle, numpy and safetensors. The samples come from `cargo run --example dump_samples`, so a new op needs
nothing here. Floats run in float64 where Paddle can, else in float32; results are kept as float32.
"""
import argparse
import json
import multiprocessing
import pathlib
import subprocess
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "crates/sampan-core/tests/golden.safetensors"
FOLDER = ROOT / "target/golden"


def load_samples():
    subprocess.run(
        ["cargo", "run", "-q", "-p", "sampan-core", "--example", "dump_samples", "--", str(FOLDER)], cwd=ROOT, check=True
    )
    from safetensors.numpy import load_file

    return json.loads((FOLDER / "samples.json").read_text()), load_file(FOLDER / "samples.safetensors")


def find(call):
    """The peer's function for an op: what the entry names, else Paddle's function or method of that name."""
    import paddle
    import paddle.nn.functional as F
    import scipy.special

    names = {"paddle": paddle, "F": F, "np": np, "scipy": scipy}
    if call["peer"]:
        return eval(call["peer"], names)
    places = [paddle, F, paddle.linalg, paddle.Tensor, paddle.fft, paddle.signal, paddle.vision.ops, paddle.geometric]
    if call["module"]:
        place = paddle
        for part in call["module"].split("."):
            place = getattr(place, part)
        places.insert(0, place)
    for place in places:
        if hasattr(place, call["op"]):
            return getattr(place, call["op"])
    raise AttributeError("Paddle has no function of this name")


def run(call, tensors, dtype):
    import paddle

    leaves = []

    def value(v):
        if isinstance(v, list):
            return [value(x) for x in v]
        if isinstance(v, dict) and "tensor" in v:
            a = tensors[str(v["tensor"])]
            floating = np.issubdtype(a.dtype, np.floating)
            t = paddle.to_tensor(a.astype(dtype) if floating else a)
            if floating:
                t.stop_gradient = False
                leaves.append(t)
            return t
        if isinstance(v, dict) and "float" in v:
            return float(v["float"])
        if isinstance(v, dict) and "dtype" in v:
            return v["dtype"]
        return v

    args = [value(v) for v in call["args"]]
    named = {k: value(v) for k, v in call["named"].items()}
    paddle.seed(0)
    function = find(call)
    try:
        out = function(*args, **named)
    except Exception:
        # Many of Paddle's functions take no plain number where ours do; give it as a 0-d tensor.
        wrap = lambda v: paddle.to_tensor(v, dtype=dtype) if isinstance(v, float) else v
        out = function(*[wrap(v) for v in args], **{k: wrap(v) for k, v in named.items()})
    outs = list(out) if isinstance(out, (list, tuple)) else [out]
    outs = [o if isinstance(o, paddle.Tensor) else paddle.to_tensor(o) for o in outs if o is not None]
    grads = []
    diff = [o for o in outs if not o.stop_gradient and "float" in str(o.dtype)]
    if call["grad"] and diff and leaves:
        try:
            weights = [
                paddle.to_tensor(np.sin(np.arange(o.size, dtype="float64") + 1).reshape(o.shape)).astype(o.dtype)
                for o in diff
            ]
            grads = paddle.grad(diff, leaves, grad_outputs=weights, allow_unused=True)
        except Exception:
            grads = []  # Paddle lacks some gradients; the numeric check covers ours
    return outs, grads


def answer(calls, tensors):
    """What Paddle answers to some calls: tensors by key, the dtype of each call, and who got no answer."""
    golden, notes, bad = {}, {}, []
    for call in calls:
        key = f"{call['op']}/{call['sample']}"
        error = None
        for dtype in ("float64", "float32"):
            try:
                outs, grads = run(call, tensors, dtype)
                break
            except Exception as e:
                error = error or e
        else:
            text = str(error).strip().splitlines() or [""]
            bad.append(f"{key}: {type(error).__name__}: {text[-1][:160]}")
            continue
        notes[key] = dtype
        for i, o in enumerate(outs):
            golden[f"{key}/out{i}"] = np.array(o.detach().numpy(), "float32", order="C")
        for i, g in enumerate(grads):
            if g is not None:
                golden[f"{key}/grad{i}"] = np.array(g.numpy(), "float32", order="C")
    return golden, notes, bad


def record(only):
    """Asks op by op, each in a process of its own: some of Paddle's kernels write past their buffers."""
    import paddle  # noqa: F401  (loaded once, before the forks)

    calls, tensors = load_samples()
    golden, notes, bad = {}, {}, []
    context = multiprocessing.get_context("fork")
    for op in sorted({call["op"] for call in calls}):
        if only and op not in only:
            continue
        mine = [call for call in calls if call["op"] == op]
        receive, send = context.Pipe(False)
        child = context.Process(target=lambda: send.send(answer(mine, tensors)))
        child.start()
        send.close()
        try:
            g, n, b = receive.recv()
            golden.update(g)
            notes.update(n)
            bad += b
        except EOFError:
            bad.append(f"{op}: Paddle crashed")
        child.join()
    return golden, notes, bad


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", default="")
    parser.add_argument("--out", default=str(GOLDEN))
    options = parser.parse_args()
    from safetensors import safe_open
    from safetensors.numpy import save_file

    only = {n for n in options.only.split(",") if n}
    golden, notes, bad = record(only)
    for line in bad:
        print("no answer:", line)
    if options.check:
        worst = 0
        with safe_open(options.out, "np") as f:
            old = {k: f.get_tensor(k) for k in f.keys()}
        for k, v in golden.items():
            if k not in old or old[k].shape != v.shape or not np.allclose(old[k], v, 1e-4, 1e-5, equal_nan=True):
                print("differs from the committed file:", k)
                worst = 1
        print(f"{len(golden)} tensors checked, {len(bad)} calls without an answer")
        sys.exit(worst or bool(bad))
    if only and pathlib.Path(options.out).exists():
        with safe_open(options.out, "np") as f:
            meta = f.metadata() or {}
            kept = {k: f.get_tensor(k) for k in f.keys() if k.split("/")[0] not in only}
        notes = {**{k: v for k, v in meta.items() if k.split("/")[0] not in only}, **notes}
        golden = {**kept, **golden}
    save_file(golden, options.out, metadata=notes)
    print(f"{len(notes)} calls, {len(golden)} tensors, {len(bad)} without an answer")


if __name__ == "__main__":
    main()
