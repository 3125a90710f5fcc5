"""The real Paddle."""

from __future__ import annotations

import contextlib

import numpy as np
import paddle

from .._tree import leaves, plain
from .sampan_side import PaddleLike

_OPERATORS = "__add__ __radd__ __sub__ __rsub__ __mul__ __rmul__ __truediv__ __rtruediv__ __matmul__ __pow__ __getitem__".split()


class PaddleSide(PaddleLike):
    name = "paddle"
    version = paddle.__version__

    def is_builtin(self, layer):
        return type(layer).__module__.startswith("paddle.nn")

    def config(self, layer):
        found = {k.lstrip("_"): plain(v) for k, v in vars(layer).items() if isinstance(v, (bool, int, float, str, list, tuple))}
        hidden = ("training", "full_name", "dtype", "name_scope", "loaddict_holder", "casted_by_pure_fp16")
        return {k: v for k, v in found.items() if k not in hidden and not k.startswith("forward_")}

    @staticmethod
    def is_tensor(value):
        return isinstance(value, paddle.Tensor)

    def tensor(self, array, like=None):
        made = paddle.to_tensor(np.array(array, copy=True))
        return made if like is None else made.astype(like.dtype)

    def identity(self, tensor):
        return id(tensor), tensor.inplace_version

    def gradients(self, outputs, inputs, upstream):
        pairs = [(o, u) for o, u in zip(outputs, upstream) if not o.stop_gradient]
        if not pairs or not inputs:
            return [None] * len(inputs)
        return list(paddle.grad([p[0] for p in pairs], inputs, [p[1] for p in pairs], allow_unused=True))

    @contextlib.contextmanager
    def functions(self, hear):
        """Paddle has no listener; its table of ops and the operators of its tensors are wrapped for the time."""
        busy = [False]
        changed = []

        def wrap(owner, name):
            inner = getattr(owner, name)

            def outer(*args, **kwargs):
                out = inner(*args, **kwargs)
                if busy[0] or not leaves(out, self.is_tensor) or not leaves((args, kwargs), self.is_tensor):
                    return out
                busy[0] = True
                try:
                    names = ["x", "other", *(f"argument{i}" for i in range(2, len(args)))]
                    config = {n: plain(v) for n, v in [*zip(names, args), *kwargs.items()] if not leaves(v, self.is_tensor)}
                    hear(name, args, kwargs, config, out, lambda a, k: inner(*a, **k))
                finally:
                    busy[0] = False
                return out

            changed.append((owner, name, inner))
            setattr(owner, name, outer)

        table = paddle._C_ops
        for name in dir(table):
            if not name.startswith("_") and callable(getattr(table, name)) and "grad" not in name:
                wrap(table, name)
        for name in _OPERATORS:
            wrap(paddle.Tensor, name)
        try:
            yield
        finally:
            for owner, name, inner in changed:
                setattr(owner, name, inner)

    def tensor_class(self):
        return paddle.Tensor

    def random_state(self):
        return paddle.get_rng_state()

    def set_random_state(self, state):
        paddle.set_rng_state(state)

    def set_value(self, parameter, array):
        with paddle.no_grad():
            parameter.set_value(np.ascontiguousarray(array))
