"""`jit.save`: networks and functions as files that Paddle 2.6 and later read."""

from __future__ import annotations

import contextlib
import inspect
import os
import types

from .. import _core
from . import flow, rewrite, specs, to_static
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
        try:
            result = function(*specs.unflatten(tree, inputs))
        except ValueError as error:
            if "a meta tensor holds no values" not in str(error):
                raise
            raise RuntimeError(
                f"(PreconditionNotMet) trace: the program reads a tensor's value ({specs.place(error)}), which a graph does "
                f"not know before it runs: {error}"
            ) from error
        shapes[:] = [specs.flatten(result, found, lambda v: isinstance(v, _core.Tensor))]
        if not found:
            raise ValueError("(InvalidArgument) trace: the function gives no tensor, so there is nothing to save.")
        return found

    graph = _core._trace(run, known, specs.source)
    return graph, shapes[0]


def _target(layer, input_spec, caller: str):
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
            f"(InvalidType) {caller}: the input of {caller} should be 'Layer' or 'Function', but received {type(layer)}."
        )
    if input_spec is None:
        input_spec = (marked.function_spec if marked else None) or last
    if input_spec is None:
        raise ValueError(
            f"(InvalidArgument) {caller}: nothing is known of the inputs. Hint: pass "
            "input_spec=[InputSpec([None, 784], 'float32')], or call the network once."
        )
    if not isinstance(input_spec, (list, tuple)):
        raise TypeError(
            f"(InvalidType) {caller}: 'input_spec' is a list or tuple, received {type(input_spec).__name__}."
        )
    return owner, function, list(input_spec)


def _rewritten(function):
    """A function with control flow that can be traced."""
    if not to_static.is_enabled():
        return function
    marked = function.__func__ if inspect.ismethod(function) else function
    if isinstance(marked, StaticFunction):
        plain = marked.dygraph_function
        return flow.called(types.MethodType(plain, function.__self__) if inspect.ismethod(function) else plain)
    return flow.called(function)


@contextlib.contextmanager
def _traceable(owner):
    """While it lasts, the layers of a network compute by functions with control flow that can be traced."""
    changed = []
    layers = [owner, *owner.sublayers()] if owner is not None and to_static.is_enabled() else []
    try:
        for layer in layers:
            own = layer.__dict__.get("forward")
            plain = own if own is not None else getattr(type(layer), "forward", None)
            plain = plain.dygraph_function if isinstance(plain, StaticFunction) else plain
            plain = plain.__func__ if inspect.ismethod(plain) else plain
            made = rewrite.rewritten(plain)
            if made is not plain:
                changed.append((layer, own))
                layer.__dict__["forward"] = types.MethodType(made, layer)
        yield
    finally:
        for layer, own in changed:
            if own is None:
                del layer.__dict__["forward"]
            else:
                layer.__dict__["forward"] = own


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
    graph, owner = traced(layer, input_spec, configs.get("output_spec"), "jit.save")
    graph.save(path, structured(owner))


def traced(layer, input_spec, output_spec, caller: str):
    """The graph of a network or function as it computes after `eval()`, and the layer it belongs to."""
    owner, function, given = _target(layer, input_spec, caller)
    modes = _modes(owner)
    if owner is not None:
        owner.eval()
    names = _names(owner.forward) if owner is layer and owner is not None else _names(function)
    try:
        with _traceable(owner):
            graph, tree = trace(function if function is owner else _rewritten(function), given, names)
        _select(graph, tree, output_spec, caller)
    finally:
        for sub, training in modes:
            sub.training = training
    return graph, owner


def _select(graph, tree, wanted, caller: str) -> None:
    """Leaves the outputs that `output_spec` names by their numbers."""
    if wanted is None:
        return
    if not all(isinstance(w, int) and not isinstance(w, bool) for w in wanted):
        raise NotImplementedError(
            f"(Unimplemented) {caller}: output_spec is a list of the numbers of the outputs to keep."
        )
    graph.keep_outputs(list(wanted))
