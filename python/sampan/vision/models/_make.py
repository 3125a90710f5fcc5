"""Classes and functions of models, made from the registries of the core."""

from __future__ import annotations

import inspect

from ... import _core, _registry
from ...nn.layer.builtin import BuiltinLayer


# What Paddle's functions take by position after `pretrained`.
_SECOND = {
    "VGG": ("batch_norm", False),
    "MobileNetV1": ("scale", 1.0),
    "MobileNetV2": ("scale", 1.0),
    "MobileNetV3Small": ("scale", 1.0),
    "MobileNetV3Large": ("scale", 1.0),
}


def _load(model, name: str, weights: tuple[str, str] | None, variant: str) -> None:
    if weights is None or variant:
        of = f"{name} with {variant}" if variant else name
        raise ValueError(f"(NotFound) {of} has no trained weights. Hint: set pretrained=False, then set_state_dict(…).")
    from ... import load
    from ...utils.download import get_weights_path_from_url

    model.set_state_dict(load(get_weights_path_from_url(*weights)))


def _function(cls: type, name: str, doc: str, weights: tuple[str, str] | None, module: str, arguments):
    """The function that builds one model."""
    second = _SECOND.get(cls.__name__)

    def build(pretrained=False, *more, **kwargs):
        if more:
            if second is None or len(more) > 1:
                raise TypeError(f"(InvalidType) {name}: takes at most {1 + bool(second)} arguments by position.")
            kwargs[second[0]] = more[0]
        positional, named = arguments(name, kwargs)
        model = cls(*positional, **named)
        if pretrained:
            special = second and kwargs.get(second[0], second[1]) != second[1]
            _load(model, name, weights, f"{second[0]}={kwargs[second[0]]}" if special else "")
        return model

    kind = inspect.Parameter
    parameters = [kind("pretrained", kind.POSITIONAL_OR_KEYWORD, default=False)]
    if second:
        parameters.append(kind(second[0], kind.POSITIONAL_OR_KEYWORD, default=second[1]))
    build.__signature__ = inspect.Signature([*parameters, kind("kwargs", kind.VAR_KEYWORD)])
    build.__name__ = build.__qualname__ = name
    build.__module__ = module
    build.__doc__ = (
        f"{doc} With `pretrained` it takes over weights trained on ImageNet, from the cache or the network. "
        f"`kwargs` are arguments of `{cls.__name__}`."
    )
    return build


def family(namespace: dict, *classes: str, arguments=_core._model_arguments) -> list[str]:
    """Defines classes of models in a module, and the functions that build them; gives their names.

    `arguments(name, kwargs)` says what the class is built with, by position and by name.
    """
    module = namespace["__name__"]
    for name in classes:
        if name not in namespace:
            definition = _registry.classes("vision.models")[name]
            namespace[name] = type(
                name,
                (BuiltinLayer,),
                {
                    "__doc__": definition.doc,
                    "__module__": module,
                    "_definition": definition,
                },
            )
    functions = [m for m in _core._models() if m[2] in classes and m[0] != "lenet"]
    for name, doc, cls, weights in functions:
        namespace[name] = _function(namespace[cls], name, doc, weights, module, arguments)
    namespace["model_urls"] = {name: weights for name, _, _, weights in functions if weights}
    return [*classes, *(name for name, *_ in functions)]
