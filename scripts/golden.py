#!/usr/bin/env python3
"""Records what the peers, PaddlePaddle and PyTorch, answer to every op's samples.

    python scripts/golden.py            write crates/sampan-core/tests/golden.safetensors
    python scripts/golden.py --check    compare a live run with the committed file
    python scripts/golden.py --only relu,gelu   (re)record some ops, keep the others

Needs paddlepaddle, torch, numpy, scipy and safetensors. The samples come from `cargo run --example dump_samples`, so a
new op needs nothing here. The peer of a call is Paddle's function of the op's name, or the Python expression that the op
or the sample gives as `peer`; `grad_peer` is another one for the gradients. The library is the one that the expression
mentions: `torch`, else NumPy or SciPy (`np`, `scipy`: values only), else Paddle; tensors arrive as that library's. `F` is
its nn.functional, `op` the op's name. Floats run in float64 where the peer can, else in float32; results are kept as
float32, complex ones with a last axis of two.
"""
import argparse
import itertools
import json
import multiprocessing
import pathlib
import re
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


def at(index):
    """An index as Python writes it: slices come as lists, the ellipsis as a word."""
    return tuple(slice(*e) if isinstance(e, list) else ... if isinstance(e, str) else e for e in index)


class Paddle:
    """Tensors, functions and gradients of PaddlePaddle."""

    def __init__(self, dtype):
        import paddle

        self.paddle = paddle
        self.names = {"paddle": paddle, "F": paddle.nn.functional}
        paddle.seed(0)

    def tensor(self, array, leaf=False):
        return self.paddle.to_tensor(array, stop_gradient=not leaf)

    def dtype(self, name):
        return name

    def differentiable(self, out):
        return not out.stop_gradient and any(word in str(out.dtype) for word in ("float", "complex"))

    def grad(self, outs, leaves, weights):
        return self.paddle.grad(outs, leaves, grad_outputs=weights, allow_unused=True)

    def array(self, tensor):
        return tensor.detach().numpy()

    def find(self, call):
        """Paddle's function or method of the op's name."""
        paddle = self.paddle
        places = [paddle, paddle.nn.functional, paddle.linalg, paddle.Tensor, paddle.fft, paddle.signal]
        places += [paddle.vision.ops, paddle.geometric]
        if call["module"]:
            place = paddle
            for part in call["module"].split("."):
                place = getattr(place, part)
            places.insert(0, place)
        for place in places:
            if hasattr(place, call["op"]):
                return getattr(place, call["op"])
        raise AttributeError("Paddle has no function of this name")


class Torch:
    """Tensors, functions and gradients of PyTorch, and some words that its expressions share."""

    def __init__(self, dtype):
        import torch

        self.torch = torch
        torch.set_default_dtype(getattr(torch, dtype))
        words = {f: getattr(self, f) for f in dir(self) if f.startswith("torch_")}
        self.names = {"torch": torch, "F": torch.nn.functional, **words}

    def tensor(self, array, leaf=False):
        return self.torch.from_numpy(np.array(array)).requires_grad_(leaf)

    def dtype(self, name):
        return getattr(self.torch, name)

    def differentiable(self, out):
        return out.requires_grad

    def grad(self, outs, leaves, weights):
        return self.torch.autograd.grad(outs, leaves, weights, allow_unused=True)

    def array(self, tensor):
        return tensor.detach().resolve_conj().resolve_neg().numpy()

    def torch_pull(self, function, at, weight):
        """The gradient of a function of one tensor or several; it can be differentiated again."""
        grads = self.torch.func.vjp(function, *(at if isinstance(at, tuple) else (at,)))[1](weight)
        return grads if isinstance(at, tuple) else grads[0]

    def torch_write(self, x, places, values):
        """A copy with values written one after another: what is overwritten has no gradient."""
        x = x.clone()
        for place, value in zip(places, values):
            x[place] = value
        return x

    def torch_region(self, starts, lens, steps):
        """The index of `lens` elements of each axis from `starts` in `steps`, which may be negative."""
        lines = np.ix_(*[a + s * np.arange(n) for a, n, s in zip(starts, lens, steps)])
        return tuple(self.torch.from_numpy(line) for line in lines)

    def torch_conv(self, x, w, b, stride, pad, dilation, groups, extents):
        """A convolution with less padding at the ends where `extents` ask for less."""
        conv = getattr(self.torch.nn.functional, f"conv{x.ndim - 2}d")
        return conv(x, w, b, stride, pad, dilation, groups)[(..., *map(slice, np.atleast_1d(extents)))]

    def torch_lstm(self, gates, c):
        """An LSTM's step from its preactivations."""
        n = c.shape[1]
        return self.torch.lstm_cell(gates, (c * 0, c), self.torch.eye(4 * n), self.torch.zeros(4 * n, n))

    def torch_gru(self, a, b, h):
        """A GRU's step from both preactivations."""
        (ar, az, ac), (br, bz, bc) = a.chunk(3, 1), b.chunk(3, 1)
        r, z = self.torch.sigmoid(ar + br), self.torch.sigmoid(az + bz)
        return z * h + (1 - z) * self.torch.tanh(ac + r * bc)

    def torch_ctc(self, log_probs, labels, frames, lengths, blank):
        """The CTC loss of each row over all its paths; PyTorch's own takes log_probs for a log_softmax in its gradient."""
        losses = []
        for p, row, n, k in zip(log_probs.unbind(1), labels.tolist(), frames.tolist(), lengths.tolist()):
            read = lambda path: [c for c, _ in itertools.groupby(path) if c != blank]
            paths = [q for q in itertools.product(range(p.shape[1]), repeat=n) if read(q) == row[:k]]
            scores = [p[range(n), q].sum() for q in paths]
            losses.append(-self.torch.stack(scores).logsumexp(0) if paths else 0 * p.sum())
        return self.torch.stack(losses)

    def torch_rnnt(self, blanks, emits, frames, lengths):
        """The transducer loss of each lattice, cell by cell; PyTorch has none."""
        losses = []
        for b, e, n, k in zip(blanks, emits, frames.tolist(), lengths.tolist()):
            alpha = {(0, 0): b.new_zeros(())}
            for t, u in list(itertools.product(range(n), range(k + 1)))[1:]:
                ways = [alpha[t - 1, u] + b[t - 1, u]] if t else []
                ways += [alpha[t, u - 1] + e[t, u - 1]] if u else []
                alpha[t, u] = self.torch.stack(ways).logsumexp(0)
            losses.append(-alpha[n - 1, k] - b[n - 1, k])
        return self.torch.stack(losses)

    def torch_scores(self, query, key, mask, scale, causal):
        """The scores of attention, and how often each key head is used."""
        torch, group = self.torch, query.shape[2] // key.shape[2]
        scores = torch.einsum("bqhd,bkhd->bhqk", query, key.repeat_interleave(group, 2)) * scale
        if mask is not None:
            scores = scores + mask
        return scores.masked_fill(torch.ones_like(scores).triu(1) > 0, -np.inf) if causal else scores


class Numpy:
    """NumPy and SciPy: values only."""

    def __init__(self, dtype):
        import scipy.special

        self.names = {"scipy": scipy}

    def tensor(self, array, leaf=False):
        return np.asarray(array)

    def dtype(self, name):
        return name

    def differentiable(self, out):
        return False

    def array(self, tensor):
        return tensor


def library(peer):
    """The library that an expression mentions."""
    if "torch" in peer:
        return Torch
    return Numpy if re.search(r"\b(np|scipy)\b", peer) and "paddle" not in peer else Paddle


def parts(array):
    """A complex array as a real one with a last axis of two."""
    array = np.asarray(array)
    return np.stack([array.real, array.imag], -1) if np.iscomplexobj(array) else array


def whole(array):
    """The complex array that `parts` gives."""
    # Not by arithmetic, in which an infinite part would spoil the other.
    return np.ascontiguousarray(array).view(np.result_type(array, "complex64"))[..., 0]


def weights_of(out, dtype):
    """The weights that turn a result into a number."""
    shape = [*out.shape, *([2] if "complex" in str(out.dtype) else [])]
    values = np.sin(np.arange(int(np.prod(shape))) + 1).reshape(shape).astype(dtype)
    return whole(values) if "complex" in str(out.dtype) else values


def run(call, tensors, dtype):
    """One call: the results, and the gradients of a sum with fixed weights by every floating-point tensor."""
    lib = library(call["peer"])(dtype)
    leaves = []

    def value(v):
        if isinstance(v, list):
            return [value(x) for x in v]
        if isinstance(v, dict) and "tensor" in v:
            a = tensors[str(v["tensor"])]
            floating = np.issubdtype(a.dtype, np.floating)
            a = a.astype(dtype) if floating else a
            t = lib.tensor(whole(a) if v.get("complex") else a, floating)
            leaves.extend([t] if floating else [])
            return t
        if isinstance(v, dict) and "float" in v:
            return float(v["float"])
        if isinstance(v, dict) and "imag" in v:
            return complex(v["real"], v["imag"])
        if isinstance(v, dict) and "dtype" in v:
            return lib.dtype(v["dtype"])
        return v

    args = [value(v) for v in call["args"]]
    named = {k: value(v) for k, v in call["named"].items()}
    names = {**lib.names, "np": np, "at": at, "op": call["op"]}
    function = eval(call["peer"], names) if call["peer"] else lib.find(call)
    try:
        out = function(*args, **named)
    except Exception:
        # Many of Paddle's functions take no plain number where ours do; give it as a 0-d tensor.
        def wrap(v):
            if isinstance(v, complex):
                return lib.tensor(whole(np.array([v.real, v.imag], dtype)))
            return lib.tensor(np.array(v, dtype)) if isinstance(v, float) else v

        out = function(*[wrap(v) for v in args], **{k: wrap(v) for k, v in named.items()})
    outs = list(out) if isinstance(out, (list, tuple)) else [out]
    outs = [o if hasattr(o, "shape") else lib.tensor(o) for o in outs if o is not None]
    if call["up_to_sign"]:
        outs = [abs(o) for o in outs]
    grads = []
    diff = [o for o in outs if lib.differentiable(o)]
    if call["gradients"] and diff and leaves:
        weights = [lib.tensor(weights_of(o, dtype)) for o in diff]
        try:
            grads = lib.grad(diff, leaves, weights)
        except Exception:
            grads = []  # some of Paddle's are missing; the test asks for another peer then
    arrays = lambda ts: [None if t is None else np.array(parts(lib.array(t)), "float32", order="C") for t in ts]
    return arrays(outs), arrays(grads), lib


def answer(calls, tensors):
    """What a peer answers to some calls: tensors by key, the dtype of each call, and who got no answer."""
    golden, notes, bad = {}, {}, []
    for call in calls:
        key = f"{call['op']}/{call['sample']}"
        error = None
        for dtype in ("float64", "float32"):
            try:
                outs, grads, lib = run(call, tensors, dtype)
                break
            except Exception as e:
                error = error or e
        else:
            text = str(error).strip().splitlines() or [""]
            bad.append(f"{key}: {type(error).__name__}: {text[-1][:160]}")
            continue
        if call["values"]:
            notes[key] = f"{dtype} values" if isinstance(lib, Numpy) else dtype
            golden.update({f"{key}/out{i}": a for i, a in enumerate(outs)})
        golden.update({f"{key}/grad{i}": a for i, a in enumerate(grads) if a is not None})
    return golden, notes, bad


def record(only):
    """Asks library by library and op by op in processes of their own: some of Paddle's kernels write past their buffers."""
    calls, tensors = load_samples()
    golden, notes, bad = {}, {}, []
    context = multiprocessing.get_context("fork")
    groups = {}
    for call in calls:
        if not only or call["op"] in only:
            peer = library(call["peer"])
            groups.setdefault((peer is Paddle, peer.__name__, call["op"] if peer is Paddle else ""), []).append(call)
    for (is_paddle, peer, op), mine in sorted(groups.items()):
        if is_paddle:
            import paddle  # noqa: F401  (loaded once, before its forks and after those of the others)
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
            bad.append(f"{op}: {peer} crashed")
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
