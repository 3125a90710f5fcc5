"""Transforms as objects. Those of the package compute in the core; your own are subclasses of `BaseTransform`."""

from __future__ import annotations

from collections.abc import Sequence

from ... import _core, _registry


class Compose:
    """Several transforms, one after the other: those of the package, your own, and plain functions.

    Neighbours of the package run together in the core, without a picture in Python between them.

    >>> import numpy as np
    >>> from sampan.vision import transforms as T
    >>> prepare = T.Compose([T.Resize(8), T.CenterCrop(6), T.ToTensor(), lambda x: x * 2])
    >>> prepare(np.zeros([10, 12, 3], "uint8")).shape
    [3, 6, 6]
    """

    def __init__(self, transforms):
        self.transforms = transforms
        self._plan = ([], [])

    def __call__(self, data):
        # A transform is told apart by what it runs, so that a changed setting or list makes a new plan.
        parts = [_native(t) or t for t in self.transforms]
        known, steps = self._plan
        if len(parts) != len(known) or any(a is not b for a, b in zip(parts, known)):
            self._plan = (parts, steps := _joined(parts))
        if isinstance(data, tuple):
            steps = self.transforms
        for step in steps:
            try:
                data = step(data)
            except Exception as error:
                if hasattr(error, "add_note") and not isinstance(step, _core.Pipeline):
                    error.add_note(f"In: Compose, transform {step}")
                raise
        return data

    def __getstate__(self):
        return {**self.__dict__, "_plan": ([], [])}

    def __repr__(self) -> str:
        return type(self).__name__ + "(" + "".join(f"\n    {t}" for t in self.transforms) + "\n)"


def _native(transform) -> _core.Pipeline | None:
    """What a transform of the package runs, if nothing around it was changed in Python."""
    cls = type(transform)
    plain = (
        isinstance(transform, BuiltinTransform)
        and cls.__call__ is BaseTransform.__call__
        and cls._apply_image is BuiltinTransform._apply_image
        and cls._get_params is BaseTransform._get_params
        and cls._get_apply is BaseTransform._get_apply
        and tuple(transform.keys) == ("image",)
    )
    return transform._pipeline if plain else None


def _joined(parts: list) -> list:
    """Neighbouring pipelines as one."""
    steps: list = []
    for part in parts:
        last = steps[-1] if steps else None
        both = isinstance(part, _core.Pipeline) and isinstance(last, _core.Pipeline)
        steps[-1:] = [last + part] if both else [*steps[-1:], part]
    return steps


def pipeline_of(transform) -> _core.Pipeline | None:
    """What a transform, or a `Compose` of them, runs, if all of it runs in the core."""
    parts = transform.transforms if type(transform) is Compose else [transform]
    steps = _joined([_native(t) or t for t in parts])
    return steps[0] if len(steps) == 1 and isinstance(steps[0], _core.Pipeline) else None


class BaseTransform:
    """What transforms of your own are made from.

    `keys` says what the fields of a sample are, from the first one on; field by field, `_apply_<key>` is called, and
    fields beyond the keys stay as they are. `_get_params(inputs)` is called first; what it returns is `self.params`.

    >>> from sampan.vision import transforms as T
    >>> class Invert(T.BaseTransform):
    ...     def _apply_image(self, image):
    ...         return 255 - image
    ...     def _apply_mask(self, mask):
    ...         return mask
    >>> Invert(keys=("image", "mask"))((5, 1, "cat"))
    (250, 1, 'cat')
    """

    def __init__(self, keys: Sequence[str] | None = None):
        if keys is None:
            keys = ("image",)
        elif not isinstance(keys, Sequence):
            raise ValueError(f"(InvalidArgument) keys should be a sequence, but got keys={keys}")
        for key in keys:
            if self._get_apply(key) is None:
                raise NotImplementedError(
                    f"(Unimplemented) {key} is unsupported data structure. Hint: define _apply_{key}()."
                )
        self.keys = keys
        self.params = None

    def _get_params(self, inputs):
        """Random numbers and the like, drawn once for all fields of a sample."""

    def __call__(self, inputs):
        if not isinstance(inputs, tuple):
            inputs = (inputs,)
        self.params = self._get_params(inputs)
        outputs = list(inputs)
        for i, key in enumerate(self.keys[: len(inputs)]):
            apply = self._get_apply(key)
            if apply is not None:
                outputs[i] = apply(inputs[i])
        return outputs[0] if len(outputs) == 1 else tuple(outputs)

    def _get_apply(self, key):
        return getattr(self, f"_apply_{key}", None)

    def _apply_image(self, image):
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} does not define _apply_image().")

    def _apply_boxes(self, boxes):
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} does not define _apply_boxes().")

    def _apply_mask(self, mask):
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} does not define _apply_mask().")

    def _apply_coords(self, coords):
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} does not define _apply_coords().")


# Transforms that remember one number as a height and a width.
_SQUARES = frozenset({"CenterCrop", "RandomCrop", "RandomResizedCrop"})


class BuiltinTransform(BaseTransform):
    """A transform of the core. Its arguments are attributes, and setting one changes what it does."""

    _definition: _core.ClassDef
    # Transforms have no names.
    _takes_name = False

    def __init__(self, *args, **kwargs):
        # The core knows Paddle's four keys; a subclass may know others.
        keys = kwargs.pop("keys", None)
        core, settings = self._definition.make(*args, **kwargs)
        positional = settings.pop("keys", None)
        self._wrap(core)
        super().__init__(positional if keys is None else keys)
        if self._definition.name in _SQUARES and isinstance(settings["size"], int):
            settings["size"] = (settings["size"],) * 2
        self.__dict__.update(settings)
        self.__dict__["_settings"] = tuple(settings)

    def _wrap(self, core) -> None:
        self.__dict__["_pipeline"] = _core.Pipeline(self._definition.name, core)

    def _rebuild(self) -> None:
        core, _ = self._definition.make(**{name: getattr(self, name) for name in self._settings})
        self._wrap(core)

    @property
    def _apply_image(self):
        return self._pipeline

    def __setattr__(self, name, value):
        before = self.__dict__.get(name)
        super().__setattr__(name, value)
        if name in self.__dict__.get("_settings", ()):
            try:
                self._rebuild()
            except Exception:
                self.__dict__[name] = before
                raise

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_pipeline"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        self._rebuild()

    def __repr__(self) -> str:
        settings = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._settings)
        return f"{type(self).__name__}({settings})"


__all__ = ["BaseTransform", "Compose", *_registry.define(globals(), "vision.transforms", BuiltinTransform)]
