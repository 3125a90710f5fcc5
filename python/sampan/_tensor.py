"""Methods of `Tensor` that are ops of the registry, and a few that combine them."""

from __future__ import annotations

from . import _core, _registry

Tensor = _core.Tensor


def _is_method(op: _core.Op) -> bool:
    params = _core.op_info(op.__name__)["params"]
    return bool(params) and params[0][1] in ("Tensor", "Operand")


def _attach() -> None:
    for home in ("", "linalg", "nn.functional", "Tensor"):
        for name, op in _registry.functions(home).items():
            if name in Tensor.__dict__ or (home != "Tensor" and not _is_method(op)):
                continue
            setattr(Tensor, name, op)


_attach()


def _method(function):
    """Adds a function as a method of `Tensor`."""
    setattr(Tensor, function.__name__, function)
    return function


def _property(function):
    """Adds a function as a property of `Tensor`."""
    setattr(Tensor, function.__name__, property(function, doc=function.__doc__))
    return function


@_method
def numel(self):
    """The number of elements, as a 0-d tensor."""
    return _core.to_tensor_py(self.size, "int64")


@_method
def dim(self):
    """The number of axes."""
    return self.ndim


@_method
def ndimension(self):
    """The number of axes."""
    return self.ndim


@_property
def T(self):
    """The tensor with its axes reversed."""
    return self.transpose(list(range(self.ndim))[::-1])


@_property
def mT(self):
    """The tensor with its last two axes exchanged."""
    return self.matrix_transpose()


@_method
def gradient(self):
    """The gradient as a NumPy array, or None."""
    return None if self.grad is None else self.grad.numpy()


@_method
def __iter__(self):
    if self.ndim == 0:
        raise TypeError("(InvalidType) iteration over a 0-d tensor.")
    return iter(self.unbind(0))


@_method
def __deepcopy__(self, memo):
    if not self.is_leaf:
        raise RuntimeError(
            "(PreconditionNotMet) only a leaf can be deep-copied; this tensor was computed. Hint: x.detach().clone()."
        )
    copy = _core.Parameter(self, not self.stop_gradient) if isinstance(self, _core.Parameter) else _core.to_tensor_py(self)
    copy.stop_gradient = self.stop_gradient
    copy.persistable = self.persistable
    copy.__dict__.update(self.__dict__)
    memo[id(self)] = copy
    return copy
