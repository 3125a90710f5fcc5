"""Values that gradients need, computed again instead of kept."""

from __future__ import annotations

from .... import _core


def recompute(function, *args, **kwargs):
    """The result of `function(*args, **kwargs)`, of which nothing is kept for `backward` but the arguments: it runs again
    when a gradient is wanted, with the same random numbers unless `preserve_rng_state=False`.

    >>> import sampan
    >>> from sampan.distributed.fleet.utils import recompute
    >>> layer, x = sampan.nn.Linear(2, 2), sampan.ones([1, 2])
    >>> recompute(layer, x).sum().backward()
    """
    preserve = kwargs.pop("preserve_rng_state", True)
    kwargs.pop("use_reentrant", None)
    at = [i for i, value in enumerate(args) if isinstance(value, _core.Tensor)]
    names = [name for name, value in kwargs.items() if isinstance(value, _core.Tensor)]
    shape: list = []

    def run(tensors: list) -> list:
        given, named = list(args), dict(kwargs)
        for i, tensor in zip(at, tensors):
            given[i] = tensor
        named.update(zip(names, tensors[len(at) :]))
        result = function(*given, **named)
        shape[:] = [type(result)] if isinstance(result, (list, tuple)) else [None]
        several = list(result) if isinstance(result, (list, tuple)) else [result]
        if not all(isinstance(part, _core.Tensor) for part in several):
            raise TypeError("(InvalidType) recompute: the function gives a tensor, or a list or tuple of tensors.")
        return several

    found = _core._recompute(run, [*(args[i] for i in at), *(kwargs[name] for name in names)], preserve)
    return found[0] if shape[0] is None else shape[0](found)


def recompute_sequential(ctx, functions, *args, **kwargs):
    """The result of layers in a row, cut into `ctx["segments"]` pieces of which each is computed again in `backward`."""
    layers, segments = list(functions), int(ctx.get("segments", 1))
    if segments < 1:
        raise ValueError(f"(InvalidArgument) recompute_sequential: segments is a number of pieces, got {segments}.")
    preserve = ctx.get("preserve_rng_state", True)
    size = max(1, len(layers) // segments)
    starts = list(range(0, len(layers), size))[:segments]

    def row(part):
        def run(*inputs, **named):
            for layer in part:
                inputs = (layer(*inputs, **named),)
                named = {}
            return inputs[0]

        return run

    for start, end in zip(starts, [*starts[1:], len(layers)]):
        args = (recompute(row(layers[start:end]), *args, preserve_rng_state=preserve, **kwargs),)
        kwargs = {}
    return args[0]
