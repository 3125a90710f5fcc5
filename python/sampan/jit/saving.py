"""`jit.save`: networks and functions as files that Paddle 2.6 and later read."""

from __future__ import annotations

import inspect
import os

from .. import _core
from . import specs
from .to_static import StaticFunction

_CONFIGS = {
    "output_spec", "with_hook", "combine_params", "clip_extra", "skip_forward", "input_names_after_prune",
    "skip_prune_program", "separate_parameters", "keep_name_table",
}  # fmt: skip


def _names(function) -> list[str]:
    """The names of a function's arguments, for inputs that have none."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    return [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.name != "self"]


def trace(function, input_spec, names: list[str] | None = None):
    """The graph of a function, and the tree of its results with numbers in place of tensors."""
    leaves: list = []
    tree = specs.flatten(list(input_spec), leaves, specs.is_spec)
    names = (names or _names(function)) if len(leaves) == len(input_spec) else []
    known = [specs.to_spec(leaf, names[i] if i < len(names) else f"x{i}") for i, leaf in enumerate(leaves)]
    shapes: list = []

    def run(inputs):
        found: list = []
        result = function(*specs.unflatten(tree, inputs))
        shapes[:] = [specs.flatten(result, found, lambda v: isinstance(v, _core.Tensor))]
        if not found:
            raise ValueError("(InvalidArgument) trace: the function gives no tensor, so there is nothing to save.")
        return found

    graph = _core._trace(run, known, specs.source)
    return graph, shapes[0]


def _target(layer, input_spec):
    """The function to trace, the layer it belongs to, and what is known of its inputs."""
    from ..nn import Layer

    if isinstance(layer, Layer):
        marked = layer.__dict__.get("_to_static_forward")
        if marked is None:
            marked = getattr(type(layer), "forward", None)
        marked = marked if isinstance(marked, StaticFunction) else None
        owner, function, last = layer, layer, marked.last_specs(layer) if marked else None
    elif isinstance(layer, StaticFunction):
        owner, function, last, marked = None, layer, layer.last_specs(None), layer
    elif inspect.ismethod(layer) and isinstance(layer.__func__, StaticFunction):
        marked = layer.__func__
        owner = layer.__self__ if isinstance(layer.__self__, Layer) else None
        function, last = layer, marked.last_specs(layer.__self__)
    elif callable(layer):
        owner, function, last, marked = getattr(layer, "__self__", None), layer, None, None
        owner = owner if isinstance(owner, Layer) else None
    else:
        raise TypeError(
            f"(InvalidType) jit.save: the input of jit.save should be 'Layer' or 'Function', but received {type(layer)}."
        )
    if input_spec is None:
        input_spec = (marked.function_spec if marked else None) or last
    if input_spec is None:
        raise ValueError(
            "(InvalidArgument) jit.save: nothing is known of the inputs. Hint: pass "
            "input_spec=[InputSpec([None, 784], 'float32')], or call the network once."
        )
    if not isinstance(input_spec, (list, tuple)):
        raise TypeError(
            f"(InvalidType) jit.save: 'input_spec' is a list or tuple, received {type(input_spec).__name__}."
        )
    return owner, function, list(input_spec)


def _modes(layer) -> list:
    return [(sub, sub.training) for sub in [layer, *layer.sublayers()]] if layer is not None else []


def structured(layer) -> list[tuple[str, str]]:
    """The names of a layer's tensors, as files have them and as `state_dict` has them."""
    return [] if layer is None else [(tensor.name, name) for name, tensor in layer.state_dict().items()]


def save(layer, path, input_spec=None, **configs) -> None:
    """Writes a network for inference: `path.pdmodel`, `path.json` and `path.pdiparams`, for Paddle 2 and 3.

    `input_spec` says what the inputs are like; without it they are like those of the last call of a `to_static` network.
    The network is saved as it computes after `eval()`. What it computes may not depend on the values of tensors in ways
    that only Python sees: such a program is an error, which names the line.

    >>> import sampan, tempfile
    >>> net = sampan.nn.Sequential(sampan.nn.Linear(4, 2), sampan.nn.ReLU())
    >>> path = tempfile.mkdtemp() + "/net"
    >>> sampan.jit.save(net, path, input_spec=[sampan.static.InputSpec([None, 4], "float32", "x")])
    >>> x = sampan.ones([3, 4])
    >>> bool((sampan.jit.load(path)(x) == net(x)).all())
    True
    """
    unknown = set(configs) - _CONFIGS
    if unknown:
        raise ValueError(f"(InvalidArgument) jit.save: there is no config {sorted(unknown)[0]!r}.")
    path = os.fspath(path)
    if not os.path.basename(path):
        raise ValueError(
            f"(InvalidArgument) jit.save: the path is a folder and the beginning of a file's name, got {path!r}."
        )
    owner, function, given = _target(layer, input_spec)
    modes = _modes(owner)
    if owner is not None:
        owner.eval()
    try:
        graph, tree = trace(function, given, _names(owner.forward) if owner is layer and owner is not None else None)
        _select(graph, tree, configs.get("output_spec"))
        graph.save(path, structured(owner))
    finally:
        for sub, training in modes:
            sub.training = training


def _select(graph, tree, wanted) -> None:
    """Leaves the outputs that `output_spec` names by their numbers."""
    if wanted is None:
        return
    if not all(isinstance(w, int) and not isinstance(w, bool) for w in wanted):
        raise NotImplementedError(
            "(Unimplemented) jit.save: output_spec is a list of the numbers of the outputs to keep."
        )
    graph.keep_outputs(list(wanted))
