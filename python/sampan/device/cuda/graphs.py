"""Whole steps as one launch: a function's work on the GPU is recorded once and then started again as a whole."""

from __future__ import annotations

import functools
import warnings

from ... import _core
from ...jit.specs import flatten, is_spec, source, unflatten

__all__ = ["cuda_graph", "is_cuda_graph_supported"]


def is_cuda_graph_supported() -> bool:
    """Is there a GPU whose work can be recorded?"""
    return _core._gpu_count() > 0


def cuda_graph(function=None):
    """Records what a function does on the GPU at its third call, and from then on does all of it again with one launch.

    A step of training (forward, backward, optimizer, schedule, clipping, mixed precision with a scaler) gives the same bits
    as without it, several times faster where kernels are small. Tensors and arrays among the arguments are copied to the
    places where the record expects them; other arguments, other shapes, another mode of a layer or a frozen parameter are
    recorded apart. What else the function does (printing, counting, numbers of Python that change) happens only while it is
    recorded. A function that reads a value, say by `float(loss)`, cannot be recorded: it runs as it is, and a warning names
    the line. On the CPU it always does.

    >>> import sampan
    >>> net = sampan.nn.Linear(4, 1)
    >>> opt = sampan.optimizer.Adam(parameters=net.parameters())
    >>> @sampan.device.cuda.cuda_graph
    ... def step(x, y):
    ...     loss = sampan.nn.functional.mse_loss(net(x), y)
    ...     loss.backward()
    ...     opt.step()
    ...     opt.clear_grad()
    ...     return loss
    >>> losses = [float(step(sampan.ones([2, 4]), sampan.zeros([2, 1]))) for _ in range(4)]
    >>> losses[3] < losses[0]
    True
    """
    if function is None:
        return cuda_graph
    graphed = _core.Captured(source, True)
    trees: dict = {}
    told = []

    @functools.wraps(function)
    def call(*args, **kwargs):
        leaves: list = []
        tree = flatten((args, kwargs), leaves, is_spec)
        tag = _text(tree)
        tensors = [leaf if isinstance(leaf, _core.Tensor) else _on_host(leaf) for leaf in leaves]

        def run(given):
            args, kwargs = unflatten(tree, given)
            results: list = []
            trees[tag] = flatten(function(*args, **kwargs), results, lambda value: isinstance(value, _core.Tensor))
            return results

        results = graphed.call(tag, tensors, run)
        if graphed.why_not is not None and not told:
            told.append(True)
            name = getattr(function, "__qualname__", repr(function))
            warnings.warn(f"cuda_graph: {name} is not recorded but called: {graphed.why_not}.", stacklevel=2)
        return unflatten(trees[tag], results)

    call.nodes = graphed.nodes
    call.reset = graphed.reset
    return call


def _on_host(array):
    """An array as a tensor of the processor on the same memory, from where the record copies it."""
    return _core._share_array(array)


def _text(tree) -> str:
    """The same text for trees that differ in their tensors alone."""
    if isinstance(tree, dict):
        return "{" + ",".join(f"{key!r}:{_text(item)}" for key, item in tree.items()) + "}"
    if isinstance(tree, (list, tuple)):
        return f"{type(tree).__name__}(" + ",".join(map(_text, tree)) + ")"
    if tree is None or isinstance(tree, (bool, int, float, complex, str, bytes)):
        return repr(tree)
    return "*" if type(tree).__name__ == "_Leaf" else f"{type(tree).__name__}@{id(tree)}"
