"""PyTorch."""

from __future__ import annotations

import contextlib
import inspect

import numpy as np
import torch
from torch.overrides import TorchFunctionMode, resolve_name

from .._tree import leaves, plain
from .base import Side

# Builtin functions have no signature that Python could read.
_NAMES = {
    "softmax": ["input", "dim"],
    "log_softmax": ["input", "dim"],
    "flatten": ["input", "start_dim", "end_dim"],
    "mean": ["input", "dim", "keepdim"],
    "sum": ["input", "dim", "keepdim"],
    "cat": ["tensors", "dim"],
    "conv2d": ["input", "weight", "bias", "stride", "padding", "dilation", "groups"],
    "conv1d": ["input", "weight", "bias", "stride", "padding", "dilation", "groups"],
    "avg_pool2d": ["input", "kernel_size", "stride", "padding", "ceil_mode", "count_include_pad", "divisor_override"],
    "gelu": ["input", "approximate"],
    "linear": ["input", "weight", "bias"],
    "clamp": ["input", "min", "max"],
    "masked_fill": ["input", "mask", "value"],
    "roll": ["input", "shifts", "dims"],
    "chunk": ["input", "chunks", "dim"],
    "split": ["input", "size", "dim"],
    "scaled_dot_product_attention": ["query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale"],
    "adaptive_avg_pool2d": ["input", "output_size"],
}
_NAMES["mul"] = _NAMES["add"] = _NAMES["sub"] = _NAMES["div"] = _NAMES["__mul__"] = ["input", "other"]


def _argument_names(function, name) -> list:
    plain_name = name.strip("_")
    if plain_name in _NAMES:
        return _NAMES[plain_name]
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return ["input", "other"]


_IN_PLACE = "__iadd__ __isub__ __imul__ __idiv__ __itruediv__ __ipow__ __iand__ __ior__ __setitem__".split()


class _Functions(TorchFunctionMode):
    def __init__(self, hear):
        super().__init__()
        self.hear = hear

    def __torch_function__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        name = getattr(func, "__name__", str(func))
        # What is written over must be read before.
        early = name in _IN_PLACE or (name.endswith("_") and not name.startswith("__"))
        begun = self.hear.begin(name, args, kwargs) if early else None
        out = func(*args, **kwargs)
        if name in ("__get__", "backward", "register_hook", "__format__", "__repr__", "requires_grad_", "retain_grad"):
            return out
        result = args[0] if name == "__setitem__" else out
        is_tensor = TorchSide.is_tensor
        if not leaves(result, is_tensor) or not leaves((args, kwargs), is_tensor):
            return out
        if name == "wrapper":
            name = resolve_name(func).rsplit(".", 1)[-1]
        names = _argument_names(func, name)
        names += [f"argument{i}" for i in range(len(names), len(args))]
        config = {n: plain(v) for n, v in [*zip(names, args), *kwargs.items()] if not leaves(v, is_tensor)}

        def again(new_args, new_kwargs):
            made = func(*new_args, **new_kwargs)
            return new_args[0] if name == "__setitem__" else made

        self.hear(name, args, kwargs, config, result, again, begun)
        return out


class TorchSide(Side):
    name = "torch"
    version = torch.__version__

    def layers(self, model):
        return list(model.named_modules(remove_duplicate=False))

    def parameters(self, layer):
        found = [(n, p, False, p.requires_grad) for n, p in layer._parameters.items() if p is not None]
        return found + [(n, b, True, False) for n, b in layer._buffers.items() if b is not None]

    def is_builtin(self, layer):
        return type(layer).__module__.startswith("torch.nn.")

    @staticmethod
    def is_tensor(value):
        return isinstance(value, torch.Tensor)

    def array(self, tensor):
        tensor = tensor.detach()
        if tensor.dtype == torch.bfloat16:
            tensor = tensor.float()
        return np.array(tensor.cpu().numpy(), copy=True)

    def tensor(self, array, like=None):
        made = torch.from_numpy(np.array(array, copy=True))
        return made if like is None else made.to(like.device, like.dtype)

    def identity(self, tensor):
        return id(tensor), tensor._version

    def differentiable(self, tensor):
        return tensor.requires_grad

    def leaf(self, tensor):
        made = tensor.detach().clone()
        return made.requires_grad_() if made.is_floating_point() else made

    def gradients(self, outputs, inputs, upstream):
        pairs = [(o, u) for o, u in zip(outputs, upstream) if o.requires_grad]
        if not pairs or not inputs:
            return [None] * len(inputs)
        return list(torch.autograd.grad(*([p[0] for p in pairs], inputs, [p[1] for p in pairs]), allow_unused=True))

    def taken(self, gradient):
        # A parameter without a gradient gets another tensor, so that this one stays as it is.
        return gradient

    def random_state(self):
        return torch.get_rng_state(), torch.cuda.get_rng_state_all() if torch.cuda.is_initialized() else None

    def set_random_state(self, state):
        torch.set_rng_state(state[0])
        if state[1] is not None:
            torch.cuda.set_rng_state_all(state[1])

    def on_gradient(self, tensor, hear):
        if tensor.requires_grad:
            tensor.register_hook(lambda g: hear(g))

    def hook(self, layer, before, after):
        first = layer.register_forward_pre_hook(lambda m, a, k: before(m, a, k), with_kwargs=True)
        last = layer.register_forward_hook(lambda m, a, k, out: after(m, a, k, out), with_kwargs=True)
        return [first.remove, last.remove]

    def functions(self, hear):
        return _Functions(hear)

    def tensor_class(self):
        return torch.Tensor

    @contextlib.contextmanager
    def no_fast_paths(self):
        on = torch.backends.mha.get_fastpath_enabled()
        torch.backends.mha.set_fastpath_enabled(False)
        try:
            yield
        finally:
            torch.backends.mha.set_fastpath_enabled(on)

    def optimizer(self, optimizer, names):
        groups = []
        for group in optimizer.param_groups:
            config = {k: plain(v) for k, v in group.items() if k != "params"}
            groups.append({"config": config, "parameters": [names.get(id(p), "?") for p in group["params"]]})
        config = {k: plain(v) for k, v in optimizer.defaults.items()}
        return {"class": type(optimizer).__name__, "config": config, "groups": groups}

    @contextlib.contextmanager
    def steps(self, optimizer, before, after):
        hooks = [
            optimizer.register_step_pre_hook(lambda *_: before()),
            optimizer.register_step_post_hook(lambda *_: after()),
        ]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def learning_rate(self, optimizer):
        return float(optimizer.param_groups[0]["lr"])

    def set_value(self, parameter, array):
        with torch.no_grad():
            parameter.copy_(self.tensor(array, parameter))
