"""Calls of the public names with hostile arguments: a call gives a result or an exception, and nothing else.

A program of its own, since what it looks for ends the process: `python hostile_calls.py [SEED] [CALLS] [NAME …]`. The call
that is being made stands in the last line it printed.
"""

import inspect
import math
import os
import random
import resource
import signal
import sys
import warnings

import numpy as np
import sampan

MODULES = (
    "sampan", "nn", "nn.functional", "nn.initializer", "nn.utils", "linalg", "fft", "signal", "metric", "optimizer",
    "optimizer.lr", "io", "distribution", "vision.ops", "vision.transforms", "vision.models", "text", "autograd", "amp",
    "regularizer", "incubate", "incubate.nn.functional", "geometric", "sparse",
)  # fmt: skip

# What changes the process, reads or writes files, asks the network, or waits.
SKIPPED = {
    "enable_static", "disable_static", "set_default_dtype", "set_device", "set_default_device", "set_flags", "save", "load",
    "set_printoptions", "enable_compat", "disable_compat", "set_grad_enabled", "summary", "flops", "disable_signal_handler",
    "set_global_initializer", "Generator", "set_rng_state", "seed", "manual_seed", "DataParallel", "Model", "LazyGuard",
    "device_guard", "set_num_threads", "image_load", "read_file", "saved_tensors_hooks", "set_image_backend",
    "_C_ops",
}  # fmt: skip

HUGE = [2**31, 2**32, 2**40, 2**62, 2**63 - 1, 2**63, 2**64, 10**30]
SMALL = [0, 1, 2, 3, 4, 8]
ODD = [-1, -2, -(2**31), -(2**63), True, False, None, math.nan, math.inf, -math.inf, 0.5, -1e300, 1e-320, "", "x", "é" * 9,
       b"", b"x", (), [], {}, {"a": 1}, [None], [[1], [2, 3]], [[]], object(), 1j, int, len, range(3), slice(None), ...]  # fmt: skip
WORDS = ["mean", "sum", "none", "NCHW", "NHWC", "NCL", "same", "valid", "reflect", "bilinear", "nearest", "float32", "int64",
         "complex64", "bool", "float16", "uint8", "relu", "tanh", "max", "min", "fro", "nuc", "hann", "reduced"]  # fmt: skip


class Rules:
    """Chooses arguments."""

    def __init__(self, seed):
        self.random = random.Random(seed)

    def size(self):
        pool = self.random.choices([SMALL, HUGE, ODD], [6, 3, 1])[0]
        return self.random.choice(pool)

    def sizes(self):
        kind = self.random.choice([list, tuple])
        return kind(self.size() for _ in range(self.random.choice([0, 1, 1, 2, 2, 3, 4, 5])))

    def tensor(self):
        shape = self.random.choice([[], [0], [1], [3], [2, 3], [3, 3], [0, 3], [2, 3, 4], [1, 3, 8, 8], [2, 1, 4, 4, 4]])
        dtype = self.random.choice(["float32"] * 5 + ["float64", "int64", "int32", "bool", "complex64", "float16", "uint8"])
        values = np.random.RandomState(self.random.randrange(99)).randn(*shape) * self.random.choice([1, 1, 1, 1e4, 0])
        t = sampan.to_tensor(values.astype("float32")).cast(dtype)
        t.stop_gradient = self.random.random() < 0.5 or "float" not in dtype
        return t

    def layer(self):
        return self.random.choice([sampan.nn.ReLU, lambda: sampan.nn.Linear(3, 3), sampan.nn.Sequential])()

    def any(self):
        return self.random.choice([
            self.tensor, self.tensor, self.size, self.sizes, self.layer, lambda: self.random.choice(WORDS),
            lambda: self.random.choice(ODD), lambda: self.random.random(), lambda: [self.tensor(), self.tensor()],
            lambda: np.ones(self.random.choice([(), 3, (2, 3), (3, 8, 8)]), self.random.choice(["f4", "f8", "i8", "u1", "O", "U3"])),
            lambda: lambda *a: a[0],
        ])()  # fmt: skip

    def argument(self, name):
        """Mostly what the name of a parameter asks for."""
        if self.random.random() < 0.15:
            return self.any()
        has = lambda *parts: any(part in name for part in parts)  # noqa: E731
        if name in ("x", "y", "input", "label", "weight", "data", "img", "index", "logits", "a", "b") or has("tensor"):
            return self.tensor()
        if has("shape", "kernel", "stride", "padding", "dilation", "output_size", "axes", "perm", "sizes"):
            return self.random.choice([self.sizes, self.size])()
        if has("num", "size", "dim", "channel", "feature", "bins", "depth", "classes", "axis", "axes", "k", "n", "count", "groups",
               "layers", "step", "epoch", "threshold", "len", "times", "head", "lr"):  # fmt: skip
            return self.size()
        if has("dtype", "reduction", "mode", "format", "method"):
            return self.random.choice(WORDS)
        return self.any()

    def call(self, function):
        try:
            parameters = list(inspect.signature(function).parameters.values())
        except (TypeError, ValueError):
            parameters = []
        args, kwargs = [], {}
        for p in parameters:
            if p.kind is p.VAR_POSITIONAL:
                args += [self.any() for _ in range(self.random.randrange(3))]
            elif p.kind is p.VAR_KEYWORD or p.name in ("name", "pretrained", "callback"):
                continue
            elif p.default is p.empty:
                args.append(self.argument(p.name))
            elif self.random.random() < 0.4:
                kwargs[p.name] = self.argument(p.name)
        return args, kwargs


def public():
    """(name, callable) of what people call."""
    found = {}
    for module in MODULES:
        part = sampan
        for word in module.split(".") if module != "sampan" else ():
            part = getattr(part, word, None)
        for name in getattr(part, "__all__", None) or dir(part or object()):
            value = getattr(part, name, None)
            # The large models take seconds each; their makers are all alike.
            large = module == "vision.models" and name not in ("LeNet", "alexnet", "mobilenet_v1", "resnet18")
            if callable(value) and not large and not name.startswith("_") and name not in SKIPPED:
                found.setdefault(id(value), (f"{module}.{name}", value))
    for name in dir(sampan.Tensor):
        if not name.startswith("__") and callable(getattr(sampan.Tensor, name)) and name not in SKIPPED:
            found.setdefault(id(getattr(sampan.Tensor, name)), (f"Tensor.{name}", getattr(sampan.Tensor, name)))
    return sorted(found.values())


class TooLong(BaseException):
    """A call that does not come back."""


def too_long(*_):
    raise TooLong


def short(value):
    try:
        if isinstance(value, sampan.Tensor):
            return f"tensor({value.shape}, {value.dtype})"
        text = repr(value)
    except Exception as error:
        text = f"<{type(value).__name__}: {error}>"
    return text if len(text) < 80 else text[:77] + "..."


def use(result):
    """Looks at what came back: a class is used once, a tensor read."""
    if isinstance(result, sampan.Tensor):
        if result.size < 1000:
            result.tolist()
    elif isinstance(result, sampan.nn.Layer):
        result(sampan.ones([1, 3, 8, 8]))
    elif isinstance(result, sampan.metric.Metric):
        result.update(sampan.ones([2, 2]), sampan.ones([2, 1], dtype="int64"))
        result.accumulate()


def is_ours(error):
    """Is it a mistake of the package rather than of the caller?"""
    name = type(error).__name__
    return name in ("PanicException", "SystemError", "TooLong") or "made a mistake" in str(error)


def main(seed=0, calls=3, *names):
    limit = 6 << 30
    resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
    signal.signal(signal.SIGALRM, too_long)
    warnings.simplefilter("ignore")
    devnull, shown = os.open(os.devnull, os.O_WRONLY), os.dup(1)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)
    out = os.fdopen(shown, "w", buffering=1)
    bad = total = 0
    for name, function in public():
        if names and name not in names:
            continue
        rules = Rules(f"{seed} {name}")
        for _ in range(int(calls)):
            try:
                args, kwargs = rules.call(function)
            except Exception as error:
                print(f"no arguments for {name}: {error}", file=out)
                continue
            text = f"{name}({', '.join([*map(short, args), *(f'{k}={short(v)}' for k, v in kwargs.items())])})"
            print(text, file=out)
            total += 1
            try:
                signal.alarm(10)
                use(function(*args, **kwargs))
            except BaseException as error:
                if is_ours(error):
                    bad += 1
                    print(f"BAD {type(error).__name__}: {str(error)[:300]}\n    {text}", file=out)
            finally:
                signal.alarm(0)
    print(f"{total} calls, {bad} bad", file=out)
    out.flush()
    os._exit(1 if bad else 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
