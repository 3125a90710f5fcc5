"""Functions of your own with a gradient of your own."""

from __future__ import annotations

from .. import _core


class PyLayerContext:
    """What a `PyLayer` hands from its forward to its backward; it takes attributes of your own too."""

    def __init__(self):
        self.container = None
        self.not_inplace_tensors = ()
        self.non_differentiable = ()
        self.materialize_grads = True
        self.grad_in_dtype_consistent = True

    def save_for_backward(self, *tensors) -> None:
        """Keeps tensors for backward; a change of them in place is then an error. Call it once, in forward."""
        self.container = tensors

    def saved_tensor(self) -> tuple:
        """The kept tensors, in their order."""
        return self.container

    @property
    def saved_tensors(self) -> tuple:
        """The kept tensors, in their order."""
        return self.container

    def mark_not_inplace(self, *args) -> None:
        """Says that outputs which are inputs were not changed in place; they never count as changed here."""
        self.not_inplace_tensors = args

    def mark_non_differentiable(self, *args) -> None:
        """Marks outputs that have no gradient."""
        self.non_differentiable = args

    def set_materialize_grads(self, value: bool) -> None:
        """Does backward get zeros (True) or None for an output that no gradient came back to?"""
        self.materialize_grads = value

    def set_grad_in_dtype_consistent(self, flag: bool) -> None:
        """Kept for Paddle's signature: gradients have the dtype of their outputs."""
        self.grad_in_dtype_consistent = flag


class PyLayer:
    """A function with its own gradient: static methods `forward(ctx, …)` and `backward(ctx, …)`, called by `apply`.

    >>> import sampan
    >>> class Double(sampan.autograd.PyLayer):
    ...     @staticmethod
    ...     def forward(ctx, x):
    ...         return x * 2
    ...     @staticmethod
    ...     def backward(ctx, grad):
    ...         return grad * 2
    >>> x = sampan.to_tensor([1.0], stop_gradient=False)
    >>> Double.apply(x).backward()
    >>> x.grad.tolist()
    [2.0]
    """

    _context = PyLayerContext
    # Native, so that no frame of ours lies between the user's.
    apply = classmethod(_core._apply_layer)

    @staticmethod
    def forward(ctx, *args, **kwargs):
        """The value: at least one tensor, and anything else beside it. Its calls are not recorded."""
        raise NotImplementedError("a PyLayer defines forward(ctx, …) as a static method.")

    @staticmethod
    def backward(ctx, *args):
        """A gradient, or None, for each tensor that forward was given, from those of the outputs."""
        raise NotImplementedError("a PyLayer defines backward(ctx, …) as a static method.")


Function = PyLayer


class saved_tensors_hooks:
    """Inside, every tensor that is saved for a gradient goes through `pack_hook`, and comes back through `unpack_hook`.

    >>> import sampan
    >>> x = sampan.to_tensor([3.0], stop_gradient=False)
    >>> with sampan.autograd.saved_tensors_hooks(lambda t: t.numpy(), sampan.to_tensor):
    ...     y = x * x
    >>> y.backward()
    >>> x.grad.tolist()
    [6.0]
    """

    def __init__(self, pack_hook, unpack_hook):
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def __enter__(self):
        _core._push_saved_hooks(self.pack_hook, self.unpack_hook)
        return self

    def __exit__(self, *_):
        _core._pop_saved_hooks()
        return False
