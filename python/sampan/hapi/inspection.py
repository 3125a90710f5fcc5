"""One run of a network with an ear on every layer: the ground of `summary` and `flops`."""

from __future__ import annotations

import contextlib

from .. import _core, framework


@contextlib.contextmanager
def evaluating(net):
    """Evaluation mode, nothing recorded, and the random numbers afterwards as if nothing had happened."""
    modes = [(layer, layer.training) for layer in net.sublayers(include_self=True)]
    state = framework.get_rng_state()
    net.eval()
    try:
        with framework.no_grad():
            yield
    finally:
        for layer, training in modes:
            layer.training = training
        framework.set_rng_state(state)


@contextlib.contextmanager
def listening(layers, hook):
    """Calls `hook(layer, inputs, outputs)` after each of these layers."""
    handles = [layer.register_forward_post_hook(hook) for layer in layers]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


def random_input(shape, dtype):
    """An input of this shape; whole numbers are all zero, so that they are good for an embedding."""
    from .. import rand

    return rand(list(shape)).astype(dtype)


def shapes_of(value):
    """The shape of a tensor; of a list or a dict of them, the list of their shapes."""
    if isinstance(value, _core.Tensor):
        return list(value.shape)
    if isinstance(value, (list, tuple)):
        return [shapes_of(v) for v in value]
    if isinstance(value, dict):
        return [shapes_of(v) for v in value.values()]
    return list(getattr(value, "shape", []))


def own_parameters(layer) -> list:
    """The parameters of a layer itself, with the statistics of a norm."""
    return [p for p in layer._parameters.values() if p is not None]
