"""sampan itself."""

from __future__ import annotations

import contextlib
import types

import numpy as np

from ... import _core, get_rng_state, no_grad, set_rng_state
from ... import grad as _grad
from ... import to_tensor as _to_tensor
from .._tree import leaves, plain
from .base import Side

# Settings of a layer that are no part of what it computes.
_OUTSIDE = {"weight_attr", "bias_attr", "name", "device", "dtype", "in_channels", "out_channels", "in_features"}


class PaddleLike(Side):
    """What Paddle's layers and sampan's have in common."""

    def layers(self, model):
        return [("", model), *model.named_sublayers(include_self=False)]

    def parameters(self, layer):
        found = [(n, p, False, not p.stop_gradient) for n, p in layer._parameters.items() if p is not None]
        # Statistics of batch normalisation are parameters that are not trained, here and there.
        found = [(n, p, buffer or n in ("_mean", "_variance"), t) for n, p, buffer, t in found]
        return found + [(n, b, True, False) for n, b in layer._buffers.items() if b is not None]

    def array(self, tensor):
        tensor = tensor.detach()
        if "bfloat16" in str(tensor.dtype):
            tensor = tensor.astype("float32")
        return np.array(tensor.numpy(), copy=True)

    def differentiable(self, tensor):
        return not tensor.stop_gradient

    def leaf(self, tensor):
        made = tensor.detach().clone()
        made.stop_gradient = "float" not in str(made.dtype)
        return made

    def on_gradient(self, tensor, hear):
        if not tensor.stop_gradient:
            tensor.register_hook(lambda g: hear(g))

    def hook(self, layer, before, after):
        first = layer.register_forward_pre_hook(lambda m, a, k: before(m, a, k), with_kwargs=True)
        last = layer.register_forward_post_hook(lambda m, a, k, out: after(m, a, k, out), with_kwargs=True)
        return [first.remove, last.remove]

    def set_value(self, parameter, array):
        with no_grad():
            parameter.set_value(np.ascontiguousarray(array))

    def optimizer(self, optimizer, names):
        groups = getattr(optimizer, "_param_groups", None) or []
        listed = []
        for group in groups if groups and isinstance(groups[0], dict) else []:
            own = {k: plain(v) for k, v in group.items() if k not in ("params", "weight_decay", "grad_clip")}
            if _coefficient(group.get("weight_decay")) is not None:
                own["weight_decay"] = _coefficient(group["weight_decay"])
            listed.append({"config": own, "parameters": [names.get(id(p), "?") for p in group["params"]]})
        decays = self.decay_function(optimizer)
        if decays is not None:
            # The function is asked for each parameter by the parameter's own name.
            named = [(p, names[id(p)]) for p in optimizer._parameter_list or [] if id(p) in names]
            spared = [n for p, n in named if not decays(p.name)]
            listed.append({"config": {"weight_decay": 0.0}, "parameters": spared})
        return {"class": type(optimizer).__name__, "config": self.optimizer_config(optimizer), "groups": listed}

    def decay_function(self, optimizer):
        """The function that says by name which parameters decay, or None."""
        return getattr(optimizer, "_apply_decay_param_fun", None)

    def optimizer_config(self, optimizer):
        found = {k.strip("_"): plain(v) for k, v in vars(optimizer).items() if isinstance(v, (bool, int, float, str))}
        for name in ("_weight_decay", "regularization", "_regularization_coeff"):
            if _coefficient(getattr(optimizer, name, None)) is not None:
                found["weight_decay"] = _coefficient(getattr(optimizer, name))
                break
        clip = getattr(optimizer, "_grad_clip", None)
        if clip is not None:
            found["clip"] = type(clip).__name__
            found["clip_value"] = plain(getattr(clip, "clip_norm", getattr(clip, "max", None)))
        return found

    @contextlib.contextmanager
    def steps(self, optimizer, before, after):
        inner = optimizer.step

        def step(_, *args, **kwargs):
            before()
            out = inner(*args, **kwargs)
            after()
            return out

        optimizer.step = types.MethodType(step, optimizer)
        try:
            yield
        finally:
            del optimizer.step


def _coefficient(decay):
    """The number of a weight decay: given as one, or as a regularizer."""
    for name in ("coeff", "_coeff", "_regularization_coeff"):
        decay = getattr(decay, name, decay)
    return float(decay) if isinstance(decay, (int, float)) else None


class SampanSide(PaddleLike):
    name = "sampan"

    def __init__(self):
        from ...version import full_version

        self.version = full_version

    def is_builtin(self, layer):
        return type(layer).__module__.startswith("sampan.nn") and "vision" not in type(layer).__module__

    def config(self, layer):
        settings = getattr(layer, "_settings", None)
        if not isinstance(settings, dict):
            return super().config(layer)
        return {k: plain(v) for k, v in settings.items() if k not in _OUTSIDE}

    @staticmethod
    def is_tensor(value):
        return isinstance(value, _core.Tensor)

    def tensor(self, array, like=None):
        made = _to_tensor(np.array(array, copy=True))
        return made if like is None else made.astype(like.dtype)

    def identity(self, tensor):
        return _core._tensor_id(tensor), tensor.inplace_version

    def gradients(self, outputs, inputs, upstream):
        pairs = [(o, u) for o, u in zip(outputs, upstream) if not o.stop_gradient]
        if not pairs or not inputs:
            return [None] * len(inputs)
        return list(_grad([p[0] for p in pairs], inputs, [p[1] for p in pairs], allow_unused=True))

    @contextlib.contextmanager
    def functions(self, hear):
        def heard(name, named, outputs):
            values = dict(named)
            if not leaves(list(values.values()), self.is_tensor):
                return
            config = {n: plain(v) for n, v in values.items() if not leaves(v, self.is_tensor)}

            def again(args, kwargs):
                return _core.op(name)(**kwargs)

            hear(name, (), values, config, outputs[0] if len(outputs) == 1 else list(outputs), again)

        _core._hear_calls(heard)
        try:
            yield
        finally:
            _core._stop_hearing()

    def tensor_class(self):
        return _core.Tensor

    def random_state(self):
        return get_rng_state()

    def set_random_state(self, state):
        set_rng_state(state)

    def decay_function(self, optimizer):
        # The core keeps it; here it is among the functions that the optimizer was given.
        for function in optimizer.__dict__.get("_functions", ()) if type(optimizer).__name__ == "AdamW" else ():
            with contextlib.suppress(Exception):
                if all(isinstance(function(p.name), bool) for p in optimizer._parameter_list):
                    return function
        return None

    def optimizer_config(self, optimizer):
        found = super().optimizer_config(optimizer)
        settings = getattr(optimizer, "_settings", None)
        if isinstance(settings, dict):
            kept = {k: plain(v) for k, v in settings.items() if k not in ("parameters", "name", "weight_decay", "grad_clip")}
            found.update({k: v for k, v in kept.items() if v is not None})
        return found
