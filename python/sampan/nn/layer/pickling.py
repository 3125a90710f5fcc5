"""Tensors and parameters in pickles, as a layer that goes to a worker process needs them."""

from __future__ import annotations

import copyreg

from ... import _core

Tensor, Parameter = _core.Tensor, _core.Parameter


def _restore(values, dtype, trained, stop_gradient, name, rest):
    tensor = _core.to_tensor_py(values, dtype)
    made = Parameter(tensor, trainable=not stop_gradient, name=name) if trained else tensor
    made.stop_gradient, made.name = stop_gradient, name
    made.__dict__.update(rest)
    return made


def _reduce(tensor: Tensor):
    if not tensor.is_leaf:
        raise RuntimeError(
            "(PreconditionNotMet) only a leaf can be pickled; this tensor was computed. Hint: x.detach() has no history."
        )
    name = str(tensor.dtype).rpartition(".")[2]
    trained = isinstance(tensor, Parameter)
    return _restore, (tensor.numpy(), name, trained, tensor.stop_gradient, tensor.name, dict(tensor.__dict__))


for _class in (Tensor, Parameter):
    if not any(method in _class.__dict__ for method in ("__reduce__", "__reduce_ex__")):
        copyreg.pickle(_class, _reduce)
