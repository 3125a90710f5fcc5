#!/usr/bin/env python3
"""Records the values and gradients of elementwise ops, losses, softmax and reductions at extreme inputs.

    python scripts/extremes_golden.py            write crates/sampan-core/tests/extremes.safetensors
    python scripts/extremes_golden.py --check    compare a live run with the committed file

The inputs are float32 numbers from zero over denormals to infinity; the answers are PyTorch's in float64, or those of
mpmath with 60 digits where PyTorch loses them (`EXACT`), or a limit where PyTorch multiplies zero by infinity (`limits`).
Needs torch, mpmath, numpy and safetensors.
"""
import argparse
import itertools
import json
import math
import pathlib
import sys

import mpmath
import numpy as np
import torch
import torch.nn.functional as F

OUT = pathlib.Path(__file__).resolve().parent.parent / "crates/sampan-core/tests/extremes.safetensors"
INF, NAN, MAX = math.inf, math.nan, float(np.finfo("float32").max)

SIZES = [1e-45, 1e-40, 1e-30, 1e-20, 1e-8, 1e-4, 0.3, 0.5, 1, 1.5, 2.5, 3, 7, 10, 20, 100, 1e4, 1e8, 1e16, 1e30, MAX, INF]
ONE = np.array([0.0, -0.0, NAN, *itertools.chain(*((s, -s) for s in SIZES))], "float32")
FEW = [0.0, -0.0, 1e-45, -1e-30, 1e-20, 0.5, 1, -1, -3, 1e8, -1e8, 1e30, -1e30, INF, -INF, NAN]
TWO = np.array(list(itertools.product(FEW, FEW)), "float32").T
# Rows for what works along an axis: equal numbers, one beside another, and mixtures.
BASE = [0.0, 1e-40, 1e-20, 1, -1, 1e4, -1e4, 1e8, -1e8, 1e16, 1e19, 1e30, -1e30, 3e38, INF, -INF, NAN]
ROWS = np.array(
    [[a] * 4 for a in BASE]
    + [[a, b, a, b] for a, b in itertools.combinations(BASE, 2)]
    + [[a, a, b, 0.5] for a, b in itertools.permutations(BASE[:-3], 2)],
    "float32",
)
# Logits with labels.
LABELS = np.array(list(itertools.product(ONE, [0.0, 1e-30, 0.25, 1.0])), "float32").T
INPUTS = {"one": [ONE], "two": list(TWO), "rows": [ROWS], "labels": list(LABELS)}


def torch_ops():
    """The calls: kind of input, op, further arguments, PyTorch's function."""
    calls = []

    def one(name, *args, f=None):
        calls.append(("one", name, args, f or getattr(torch, name, None) or getattr(F, name)))

    def two(name, *args, f=None):
        calls.append(("two", name, args, f or getattr(torch, name)))

    def rows(name, *args, f=None):
        calls.append(("rows", name, args, f or getattr(torch, name)))

    for name in "exp expm1 log log2 log10 log1p sqrt rsqrt square abs sign sigmoid logit sin cos tan asin acos atan sinh \
            cosh tanh asinh acosh atanh erf erfinv digamma lgamma i0 neg reciprocal floor ceil trunc sinc deg2rad rad2deg \
            relu frac nan_to_num".split():
        one(name)
    one("i0e", f=torch.special.i0e)
    one("i1", f=torch.special.i1)
    one("i1e", f=torch.special.i1e)
    one("round")
    one("polygamma", 1, f=lambda x: torch.polygamma(1, x))
    one("polygamma", 2, f=lambda x: torch.polygamma(2, x))
    one("stanh", f=lambda x: 1.7159 * torch.tanh(x * 0.67))
    for name in "relu6 elu selu celu gelu silu mish softplus softsign tanhshrink hardswish leaky_relu hardshrink softshrink \
            hardtanh".split():
        one(name, f=getattr(F, name))
    one("gelu", True, f=lambda x: F.gelu(x, approximate="tanh"))
    one("elu", 0.5, f=lambda x: F.elu(x, 0.5))
    one("celu", 0.5, f=lambda x: F.celu(x, 0.5))
    one("softplus", 2.0, 5.0, f=lambda x: F.softplus(x, 2.0, 5.0))
    one("log_sigmoid", f=F.logsigmoid)
    one("thresholded_relu", f=lambda x: torch.where(x > 1, x, 0))
    one("hardsigmoid", 1 / 6, 0.5, f=F.hardsigmoid)
    one("huber", 1.0, f=lambda x: F.huber_loss(x, torch.zeros_like(x), "none"))
    for n in (0.5, 2.0, 3.0, -1.0, -0.5, 1.75, -2.25, 0.0):
        one("pow", n, f=lambda x, n=n: torch.pow(x, n))
    for name in "subtract multiply maximum minimum fmax fmin atan2 hypot logaddexp remainder copysign".split():
        two(name)
    two("add")
    two("divide")
    two("pow")
    two("square_error_cost", f=lambda x, y: (x - y) ** 2)
    rows("softmax", -1, f=lambda x: torch.softmax(x, -1))
    rows("log_softmax", -1, f=lambda x: torch.log_softmax(x, -1))
    # PyTorch's slopes come from its rounded results.
    peak = lambda x, n: x[:, :n].detach().amax(1)
    lse = lambda x, n: peak(x, n) + torch.log(torch.exp(x[:, :n] - peak(x, n)[:, None]).sum(1))
    rows("logsumexp", 1, f=lambda x: torch.where(peak(x, 4).isinf(), peak(x, 4), lse(x, 4)))
    each = lambda x: [torch.where(peak(x, n).isinf(), peak(x, n), lse(x, n)) for n in range(1, 5)]
    rows("logcumsumexp", 1, f=lambda x: torch.stack(each(x), 1))
    rows("cumsum", 1, f=lambda x: torch.cumsum(x, 1))
    rows("cumprod", 1, f=lambda x: torch.cumprod(x, 1))
    rows("sum", 1, f=lambda x: x.sum(1))
    rows("mean", 1, f=lambda x: x.mean(1))
    rows("var", 1, f=lambda x: x.var(1))
    rows("std", 1, f=lambda x: x.std(1))
    for p in (2.0, 1.0, 3.0, 0.5, INF):
        rows("vector_norm", p, 1, f=lambda x, p=p: torch.linalg.vector_norm(x, p, 1))
    rows("normalize", f=lambda x: F.normalize(x, dim=1))
    # PyTorch's own has a variance above zero of equal numbers.
    rows("layer_norm", [4], f=lambda x: (x - x.mean(1, True)) / (x.var(1, keepdim=True, unbiased=False) + 1e-5).sqrt())
    calls.append(("labels", "logistic_nll", (), None))
    return calls


def exact(f, x, order):
    """mpmath's value of a function or its derivative, or None where it has none."""
    if not abs(x) <= (1e3 if f is not sinc else MAX):
        return None  # PyTorch's series are right there
    with mpmath.workdps(60):
        try:
            return float(f(mpmath.mpf(x), order))
        except (ValueError, ZeroDivisionError, OverflowError):
            return None


def sinc(x, order):
    p = mpmath.pi * x
    if x == 0:
        return 1 - order
    y = mpmath.sincpi(x)
    return y if order == 0 else (mpmath.cospi(x) - y) / x


def scaled_bessel(n):
    """I0 or I1 times e^-|x|; the slopes lose half of their digits far out."""

    def f(x, order):
        i0, i1 = (mpmath.besseli(k, x) * mpmath.exp(-abs(x)) for k in (0, 1))
        if order == 0:
            return [i0, i1][n]
        if n == 0:
            return i1 - mpmath.sign(x) * i0
        return i0 - mpmath.sign(x) * i1 - (i1 / x if x else mpmath.mpf(1) / 2)

    return f


# What PyTorch computes from nearly equal parts, or with a rounded multiple of pi.
EXACT = {
    "sinc": sinc,
    "i0e": scaled_bessel(0),
    "i1e": scaled_bessel(1),
    "digamma": lambda x, order: mpmath.polygamma(order, x),
    "lgamma": lambda x, order: mpmath.log(abs(mpmath.gamma(x))) if order == 0 else mpmath.digamma(x),
    # The slopes of these, and the value of tanh, PyTorch derives from a rounded result.
    "expm1": lambda x, order: mpmath.expm1(x) if order == 0 else mpmath.exp(x),
    "tanh": lambda x, order: mpmath.tanh(x) if order == 0 else mpmath.sech(x) ** 2,
}


def poles(name, args, x, order):
    """The derivatives of ln |gamma| at its poles, which PyTorch takes for large numbers."""
    order += {"digamma": 1, "polygamma": 1 + (args or [0])[0]}.get(name, -9)
    if order < 2 or x > 0 or x != np.floor(x) or x == -INF:
        return None
    return INF if order % 2 == 0 else math.copysign(INF, -math.copysign(1, x)) if x == 0 else NAN


def logistic_nll(x, y):
    """The loss of a logit with a label in [0, 1] and its slopes; where one class has no weight, its part is zero."""
    with np.errstate(all="ignore"):
        miss = np.where(y == 1, 0, (1 - y) * np.maximum(x, 0))
        hit = np.where(y == 0, 0, y * np.maximum(-x, 0))
        return miss + hit + np.log1p(np.exp(-abs(x))), [1 / (1 + np.exp(-x)) - y, -x]


def limits(name, args):
    """Values and slopes at plus and minus infinity that PyTorch has as NaN: zero times infinity."""
    rising = {INF: (INF, 1.0), -INF: (0.0, 0.0)}
    return {
        "gelu": rising,
        "silu": rising,
        "mish": rising,
        "hardswish": rising,
        "softsign": {INF: (1.0, 0.0), -INF: (-1.0, 0.0)},
        "i0": {INF: (INF, INF), -INF: (INF, -INF)},
        "i1": {INF: (INF, NAN), -INF: (-INF, NAN)},
        "polygamma": {INF: (0.0, 0.0), -INF: (NAN, NAN)},
        "digamma": {INF: (INF, 0.0), -INF: (NAN, NAN)},
    }.get(name, {})


def record():
    tensors = {f"{kind}/{i}": x for kind, inputs in INPUTS.items() for i, x in enumerate(inputs)}
    notes = {}
    for kind, name, args, f in torch_ops():
        key = f"{kind}/{name}" + "".join(f"/{a}" for a in args)
        inputs = INPUTS[kind]
        if kind == "labels":
            out, grads = logistic_nll(*(x.astype("float64") for x in inputs))
            notes[key] = json.dumps({"op": name, "args": []})
            tensors[f"{key}/out"] = out
            tensors.update({f"{key}/grad{i}": g for i, g in enumerate(grads)})
            continue
        leaves = [torch.tensor(x.astype("float64"), requires_grad=True) for x in inputs]
        out = f(*leaves)
        if out.requires_grad:
            weights = torch.sin(torch.arange(out.numel(), dtype=torch.float64) + 1).reshape(out.shape)
            grads = torch.autograd.grad(out, leaves, torch.ones_like(out) if kind != "rows" else weights, allow_unused=True)
        else:
            grads = [None] * len(leaves)
        out = out.detach().numpy().copy()
        grads = [np.zeros(x.shape) if g is None else g.numpy().copy() for g, x in zip(grads, inputs)]
        function = EXACT.get(name)
        if name == "polygamma":
            function = lambda x, order, n=args[0]: mpmath.polygamma(n + order, x)
        if kind == "one":
            for i, x in enumerate(ONE.astype("float64")):
                for order, place in enumerate((out, grads[0])):
                    value = exact(function, x, order) if function else None
                    if value is not None:
                        place[i] = value
                    pole = poles(name, args, x, order)
                    if pole is not None:
                        place[i] = pole
                    if x in limits(name, args):
                        place[i] = limits(name, args)[x][order]
        plain = [repr(a) if isinstance(a, float) and not math.isfinite(a) else a for a in args]
        notes[key] = json.dumps({"op": name, "args": plain})
        tensors[f"{key}/out"] = out
        tensors.update({f"{key}/grad{i}": g for i, g in enumerate(grads)})
    return tensors, notes


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    from safetensors import safe_open
    from safetensors.numpy import save_file

    tensors, notes = record()
    if options.check:
        with safe_open(OUT, "np") as file:
            old = {k: file.get_tensor(k) for k in file.keys()}
        same = lambda a, b: a.shape == b.shape and np.allclose(a, b, 1e-9, 0, equal_nan=True)
        bad = [k for k in sorted(old.keys() | tensors.keys()) if k not in old or k not in tensors or not same(old[k], tensors[k])]
        for k in bad:
            print("differs from the committed file:", k)
        print(f"{len(tensors)} tensors checked")
        sys.exit(bool(bad))
    save_file({k: np.ascontiguousarray(v) for k, v in tensors.items()}, OUT, metadata=notes)
    print(f"{len(notes)} calls, {len(tensors)} tensors")


if __name__ == "__main__":
    main()
