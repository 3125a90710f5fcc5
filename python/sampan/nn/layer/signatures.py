"""How the constructors of built-in layers are written: what the registry does not say."""

from __future__ import annotations

from ... import _registry

# Layers whose constructor has no `name`.
_WITHOUT_NAME = frozenset(
    "BatchNorm CTCLoss Conv1D Conv1DTranspose Conv2D Conv2DTranspose Conv3D Conv3DTranspose CosineSimilarity Flatten "
    "KLDivLoss MSELoss MultiHeadAttention RNN BiRNN SpectralNorm Transformer TransformerDecoder "
    "TransformerDecoderLayer TransformerEncoder TransformerEncoderLayer".split()
)

# How many arguments may be given by position, and the names of those that Paddle 2 took after them.
_BY_POSITION: dict[str, tuple[int, tuple[str, ...]]] = {
    "Conv1D": (7, ("padding_mode", "weight_attr", "bias_attr", "data_format")),
    "Conv2D": (7, ("padding_mode", "weight_attr", "bias_attr", "data_format")),
    "Conv3D": (7, ("padding_mode", "weight_attr", "bias_attr", "data_format")),
    "LayerNorm": (2, ("weight_attr", "bias_attr", "name")),
    "GroupNorm": (3, ("weight_attr", "bias_attr", "data_format", "name")),
    "Embedding": (5, ()),
}


def signature(definition):
    """What the constructor takes, as `inspect` shows it."""
    import inspect  # Slow to import, and rarely asked for.

    name = definition.name
    if name == "Identity":
        return inspect.signature(lambda *args, **kwargs: None)
    params = list(_registry.signature(definition).parameters.values())
    if name in _WITHOUT_NAME:
        params = [p for p in params if p.name != "name"]
    if name in _BY_POSITION:
        free, _ = _BY_POSITION[name]
        params[free:] = [p.replace(kind=inspect.Parameter.KEYWORD_ONLY) for p in params[free:]]
    return inspect.Signature(params)


def arranged(definition, args: tuple, kwargs: dict) -> tuple[tuple, dict]:
    """The arguments in today's order, where they were written in that of Paddle 2."""
    name = definition.name
    if name == "Identity":
        return (), {}
    if name == "Embedding" and len(args) > 3 and isinstance(args[3], bool):
        old = dict(zip(("sparse", "weight_attr", "name"), args[3:]))
        return args[:3], {**old, **kwargs}
    free, old = _BY_POSITION.get(name, (None, ()))
    if free is not None and len(args) > free:
        if len(args) > free + len(old):
            most = free + len(old)
            raise TypeError(f"(InvalidType) {name}: takes at most {most} arguments by position, got {len(args)}.")
        return args[:free], {**dict(zip(old, args[free:])), **kwargs}
    return args, kwargs
