"""Methods of `Tensor` about its memory and gradient: copies, pickles, replacements, and the private ones people meet."""

from __future__ import annotations

from . import _core
from ._tensor import Tensor, method, prop
from .framework import no_grad


@method
def gradient(self):
    """The gradient as a NumPy array, or None."""
    return None if self.grad is None else self.grad.numpy()


@method
def requires_grad_(self, requires_grad=True):
    """Says whether a gradient is wanted for it."""
    self.stop_gradient = not requires_grad
    return self


def _rows(self, backwards):
    if self.ndim == 0:
        raise TypeError("(InvalidType) iteration over a 0-d tensor.")
    if self.stop_gradient or not _core.is_grad_enabled():
        return _core.Rows(self, backwards)
    # All at once, so that their gradients come back in one step.
    parts = self.unbind(0)
    return iter(parts[::-1] if backwards else parts)


@method
def __iter__(self):
    return _rows(self, False)


@method
def __reversed__(self):
    return _rows(self, True)


# `print` shows that it is a parameter.
_core.Parameter.__str__ = _core.Parameter.__repr__

_format = Tensor.__format__


@method
def __format__(self, spec):
    """A 0-d tensor is written as its number."""
    return _format(self, spec) if self.ndim else format(self.item(), spec)


# ---- copies and pickles


def _flags(source, copy):
    copy.stop_gradient = source.stop_gradient
    copy.persistable = source.persistable
    copy.__dict__.update(source.__dict__)
    return copy


@method
def __copy__(self):
    return _flags(self, self.detach())


@method
def __deepcopy__(self, memo):
    source = self.detach()
    copy = _core.Parameter(source) if isinstance(self, _core.Parameter) else _core.to_tensor_py(source)
    memo[id(self)] = copy
    if isinstance(self, _core.Parameter):
        copy.name = self.name
    return _flags(self, copy)


def _rebuild(parameter, data, dtype, shape, stop_gradient, persistable, name, more):
    """The tensor of a pickle."""
    tensor = _core._from_bytes(data, dtype, shape)
    if parameter:
        tensor = _core.Parameter(tensor, name=name)
    tensor.stop_gradient, tensor.persistable = stop_gradient, persistable
    tensor.__dict__.update(more)
    return tensor


@method
def __reduce_ex__(self, protocol):
    parameter = isinstance(self, _core.Parameter)
    name = self.name if parameter else None
    state = (self.stop_gradient, self.persistable, name, dict(self.__dict__))
    return _rebuild, (parameter, self._bytes(), self.dtype.name, self.shape, *state)


# ---- other memory in its place


@prop
def data(self):
    """The tensor itself; what is assigned to it takes its place."""
    return self


def _set_data(self, other):
    if not isinstance(other, Tensor):
        raise TypeError(f"(InvalidType) data: a Tensor is needed, got {type(other).__name__}.")
    stop = self.stop_gradient
    self._replace(other.detach())
    self.stop_gradient = stop


Tensor.data = Tensor.data.setter(_set_data)


@method
def value(self):
    """The tensor itself."""
    return self


@method
def get_tensor(self):
    """The tensor itself."""
    return self


@method
def copy_(self, other, blocking=True):
    """Takes over the values of another tensor, broadcast to this one's shape and cast to its dtype."""
    with no_grad():
        self[...] = other
    return self


@method
def reconstruct_from_(self, other):
    """Becomes another tensor: its values, shape and dtype, on the same memory."""
    self.data = other
    self.stop_gradient = other.stop_gradient
    return self


def _free(self, asker):
    if not self.stop_gradient:
        raise RuntimeError(f"(PreconditionNotMet) {asker}: a gradient is wanted for this tensor. Hint: x.detach().{asker}(f).")


@method
def apply(self, func):
    """What a function makes of the tensor."""
    _free(self, "apply")
    return func(self)


@method
def apply_(self, func):
    """Takes over what a function makes of the tensor."""
    _free(self, "apply_")
    self.data = func(self)
    return self


# ---- kinds that Paddle has beside the dense one


def _answer(name, value, doc):
    def answer(self):
        return value

    answer.__name__ = answer.__qualname__ = name
    answer.__doc__ = doc
    method(answer)


for _name in ("is_sparse", "is_sparse_coo", "is_sparse_csr", "is_selected_rows", "is_dist", "is_coalesced"):
    _answer(_name, False, "False: it is dense and in one place.")
_answer("is_dense", True, "True: it is dense.")
_answer("_is_initialized", True, "True: it has memory.")
_answer("_is_dense_tensor_hold_allocation", True, "True: it has memory.")


@method
def to_dense(self):
    """The tensor itself, which is dense."""
    return self


# ---- private names that programs use


@method
def _grad_ivar(self):
    """The gradient, or None."""
    return self.grad


@method
def _numel(self):
    """The number of elements."""
    return self.size


@method
def _offset(self):
    """Where its values begin in the memory it shares, in bytes."""
    return self.offset


@method
def _inplace_version(self):
    """How often its memory was written in place."""
    return self.inplace_version


@method
def _copy_to(self, place, blocking=True):
    """A copy on a device."""
    _core._check_place(place)
    return self.detach().clone()


@method
def _to(self, place=None, dtype=None, blocking=None):
    """The tensor with another dtype or on another device."""
    return self.to(place, dtype)


@method
def _clear_data(self):
    """Gives its memory back."""
    self.data = _core.Tensor(0, dtype=self.dtype)


@method
def _share_buffer_to(self, other):
    """Lets another tensor look at this one's memory."""
    other.data = self


@method
def _is_shared_buffer_with(self, other):
    """Do both share memory?"""
    return self._shares_memory(other)


@method
def _slice(self, start, stop):
    """Rows of it, on the same memory."""
    return self.detach()[start:stop]


@method
def _md5sum(self):
    """The MD5 of its bytes."""
    from hashlib import md5

    return md5(self._bytes()).hexdigest()


@method
def _zero_grads(self):
    """Sets the gradient to zeros."""
    self.clear_gradient(True)


@prop
def _place_str(self):
    """The place as text."""
    return repr(self.place)


@prop
def _grad_name(self):
    """The name that its gradient would have in a program."""
    return f"{self.name}@GRAD"
