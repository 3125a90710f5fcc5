"""Methods of `Tensor` that are ops of the registry, and a few that combine them."""

from __future__ import annotations

from . import _core, _creation, _registry, _types
from .device._places import _place

Tensor = _core.Tensor


def _attach() -> None:
    for home in ("Tensor", "", "linalg", "nn.functional", "fft", "signal"):
        for name, op in _registry.functions(home).items():
            if name in Tensor.__dict__ or not (home == "Tensor" or op.is_method):
                continue
            setattr(Tensor, name, op)
    for name in ("is_complex", "is_floating_point", "is_integer", "is_tensor"):
        setattr(Tensor, name, getattr(_types, name))
    for name in ("broadcast_shape", "where_"):
        setattr(Tensor, name, getattr(_creation, name))
    for name, dtype in _types.objects().items():
        setattr(Tensor, name, _cast(name, dtype))
    for name, dtype in {"byte": "uint8", "char": "int8"}.items():
        setattr(Tensor, name, _cast(name, _core._dtype(dtype)))


def _cast(name: str, dtype: _core.dtype):
    def cast(self):
        return self.astype(dtype)

    cast.__name__ = cast.__qualname__ = name
    cast.__doc__ = f"The values as {dtype.name}."
    return cast


_attach()


def method(function):
    """Adds a function as a method of `Tensor`."""
    setattr(Tensor, function.__name__, function)
    return function


def prop(function):
    """Adds a function as a property of `Tensor`."""
    setattr(Tensor, function.__name__, property(function, doc=function.__doc__))
    return function


# ---- where it is


@prop
def place(self):
    """Where it lives."""
    return _place(_core._device_of(self))


@prop
def device(self):
    """The name of the device it lives on."""
    return _core._device_of(self)


@prop
def is_cuda(self):
    """Does it live on a GPU?"""
    return _core._device_of(self) != "cpu"


@method
def get_device(self):
    """The number of the GPU it lives on, -1 for the processor."""
    name = _core._device_of(self)
    return -1 if name == "cpu" else int(name.rpartition(":")[2])


@method
def cpu(self):
    """The tensor on the processor."""
    return _moved(self, "cpu")


@method
def cuda(self, device_id=None, blocking=True):
    """The tensor on a GPU."""
    return _moved(self, f"gpu:{device_id}" if isinstance(device_id, int) else "gpu" if device_id is None else device_id)


@method
def pin_memory(self, blocking=True):
    """The tensor in memory that a GPU can reach."""
    _core._check_place("gpu_pinned")
    return self


def _moved(tensor, device):
    """The tensor on a device; itself if it is there."""
    name = _core._check_place(device)
    return tensor if _core._device_of(tensor) == name else _core._move(tensor, name)


@method
def to(self, *args, **kwargs):
    """The tensor with another dtype, on another device, or with those of another tensor.

    `to(dtype)`, `to(device)`, `to(device, dtype)`, `to(other)`, each also by name, and with `blocking`.
    """
    names = ("device", "dtype", "blocking")
    given = dict(kwargs)
    other = given.pop("other", None)
    if args:
        first, rest = args[0], args[1:]
        if isinstance(first, Tensor):
            other, names = first, ("blocking",)
        else:
            as_dtype = isinstance(first, _core.dtype) or first is None or _is_dtype(first)
            names = ("dtype", "blocking") if as_dtype and first is not None else names
            rest = args
        if len(rest) > len(names):
            raise TypeError(f"(InvalidType) to: takes at most {len(names)} arguments here, got {len(rest)}.")
        for name, value in zip(names, rest):
            if name in given:
                raise TypeError(f"(InvalidType) to: got two values for argument `{name}`.")
            given[name] = value
    unknown = set(given) - {"device", "dtype", "blocking", "copy", "non_blocking"}
    if unknown:
        raise TypeError(f"(InvalidType) to: has no argument `{min(unknown)}`. Hint: to(device, dtype, blocking).")
    device = _core._device_of(other) if other is not None else given.get("device")
    if isinstance(device, int):
        device = f"gpu:{device}"
    if device is not None:
        self = _moved(self, device)
    dtype = other.dtype if other is not None else given.get("dtype")
    if dtype is None or self.dtype == _core._dtype(dtype):
        return self
    return self.astype(dtype)


def _is_dtype(value) -> bool:
    if isinstance(value, str) and value.split(":")[0] in ("cpu", "gpu", "xpu", "npu", "dcu"):
        return False
    try:
        _core._dtype(value)
    except TypeError:
        return False
    return True


@method
def astype(self, dtype):
    """The values in another dtype; the tensor itself where it has that dtype, of which `cast` would make a copy."""
    dtype = _core._dtype(dtype)
    return self if self.dtype == dtype else self.cast(dtype)


@method
def type_as(self, other):
    """The values in the dtype of another tensor."""
    return self.astype(other.dtype)


# ---- its size


@method
def numel(self):
    """The number of elements, as a 0-d tensor."""
    return _core.to_tensor_py(self.size, "int64")


@method
def dim(self):
    """The number of axes."""
    return self.ndim


@method
def ndimension(self):
    """The number of axes."""
    return self.ndim


@prop
def itemsize(self):
    """Bytes of one element."""
    return self.dtype.itemsize


@method
def element_size(self):
    """Bytes of one element."""
    return self.dtype.itemsize


@prop
def nbytes(self):
    """Bytes of all elements."""
    return self.size * self.dtype.itemsize


@method
def get_strides(self):
    """Steps of the axes, in elements."""
    return self.strides


@method
def stride(self, dim=None):
    """Steps of the axes, or of one, in elements."""
    return self.strides if dim is None else self.strides[dim]


@method
def is_same_shape(self, other):
    """Have both the same shape?"""
    return self.shape == other.shape


@prop
def T(self):
    """The tensor with its axes reversed."""
    return self.transpose(list(range(self.ndim))[::-1])


@prop
def mT(self):
    """The tensor with its last two axes exchanged."""
    return self.matrix_transpose()


@prop
def layout(self):
    """The name of the order of axes."""
    return "NCHW"


@prop
def type(self):
    """The kind of variable."""
    return "VarType.DENSE_TENSOR"


# ---- new ones like it


def _like(name: str, takes_value: bool = False):
    def make(self, *size, dtype=None, device=None, requires_grad=False, pin_memory=False, **named):
        if device is not None:
            _core._check_place(device)
        if pin_memory:
            _core._check_place("gpu_pinned")
        value = (named.pop("fill_value"),) if "fill_value" in named else ()
        size = (named.pop("size"), *size) if "size" in named else size
        if named:
            raise TypeError(f"(InvalidType) new_{name}: has no argument `{min(named)}`.")
        if takes_value and not value:
            if len(size) != 2:
                raise TypeError("(InvalidType) new_full: takes a size and a value.")
            size, value = size[:1], size[1:]
        shape = size[0] if len(size) == 1 else size
        value = tuple(v.item() if isinstance(v, Tensor) else v for v in value)
        made = _registry.functions("")[name](shape, *value, dtype=self.dtype if dtype is None else dtype)
        made.stop_gradient = not requires_grad
        return made

    make.__name__ = make.__qualname__ = f"new_{name}"
    make.__doc__ = f"`{name}` of a size, in this tensor's dtype unless another is given."
    return method(make)


for _name in ("zeros", "ones", "empty"):
    _like(_name)
_like("full", takes_value=True)


@method
def new_tensor(self, data, dtype=None, device=None, requires_grad=False):
    """A tensor of data, in this tensor's dtype unless another is given."""
    return _creation.as_tensor(_core.to_tensor_py(data), dtype or self.dtype, device, requires_grad)


from . import _tensor_state  # noqa: E402, F401
