"""Weights of one framework or format as those of another, key by key."""

from __future__ import annotations

import json
import os
from typing import Any

import numpy as np

from .. import _core
from ._arguments import mapping_text, path


class Conversion:
    """What became of every key.

    Attributes:
        state: the target's keys and their values, in its order.
        rows: for each key of the target its sources, shapes, what was done and why they are a pair.
        dropped, made: keys of the source and of the target with the reason; left: keys of the target that the mapping leaves
            as they are; unused, missing: keys of the source and of the target without a partner.
    """

    def __init__(self, state: dict, account: str, text: str):
        self.state = state
        account = json.loads(account)
        self.rows: list[dict] = account["rows"]
        self.dropped: list[list[str]] = account["dropped"]
        self.made: list[list[str]] = account["made"]
        self.left: list[str] = account["left"]
        self.unused: list[str] = account["unused"]
        self.missing: list[str] = account["missing"]
        self.notes: list[str] = account["notes"]
        self._text = text

    def __str__(self) -> str:
        return self._text

    def __repr__(self) -> str:
        return f"<Conversion: {self._text.splitlines()[-1]}>"


def _library(model: Any) -> str | None:
    """`torch` or `paddle`, by the classes that a model is made of; sampan's way is Paddle's."""
    roots = [cls.__module__.partition(".")[0] for cls in type(model).__mro__]
    for root in roots:
        if root == "torch":
            return "torch"
        if root in ("paddle", "sampan"):
            return "paddle"
    return None


def _array(value: Any):
    """A tensor of any library as one of ours."""
    from .. import to_tensor

    if isinstance(value, _core.Tensor):
        return value
    if hasattr(value, "detach"):
        value = value.detach()
    if hasattr(value, "cpu"):
        value = value.cpu()
    if str(getattr(value, "dtype", "")) in ("torch.bfloat16", "paddle.bfloat16"):
        value = value.float() if hasattr(value, "float") else value.astype("float32")
    # A copy of its own: later changes of the model do not reach it.
    array = np.array(value.numpy() if hasattr(value, "numpy") else value)
    return to_tensor(array)


def _sublayers(model: Any):
    if hasattr(model, "named_modules"):
        return model.named_modules()
    return model.named_sublayers(include_self=True)


def _structure(model: Any, lies: str | None):
    """The weights of a live model with the classes of their layers, or those of a dict."""
    if isinstance(model, dict):
        rows = []
        for key, value in model.items():
            if hasattr(value, "shape"):
                tensor = _array(value)
                rows.append((str(key), "", "", list(tensor.shape), tensor))
        return _core._weights_of("the dict", lies, rows)
    library = _library(model)
    if library is None or not hasattr(model, "state_dict"):
        raise TypeError(
            f"(InvalidType) convert_weights: expected a path, a dict of tensors or a model of PyTorch, Paddle or sampan, got "
            f"{type(model).__name__}."
        )
    classes = {name: type(layer).__name__ for name, layer in _sublayers(model)}
    rows = []
    for key, value in model.state_dict().items():
        if not hasattr(value, "shape"):
            continue
        tensor = _array(value)
        own = getattr(value, "name", None) if library == "paddle" else None
        rows.append((key, classes.get(key.rpartition(".")[0], ""), own or "", list(tensor.shape), tensor))
    return _core._weights_of(type(model).__name__, lies or library, rows)


def _is_path(value: Any) -> bool:
    return isinstance(value, (str, os.PathLike))


def _zoo(name: str):
    from ..vision import models

    build = getattr(models, name, None) if name.isidentifier() else None
    if not callable(build):
        raise ValueError(
            f"(InvalidArgument) convert_weights: there is neither a file nor a network of sampan.vision.models called {name!r}."
        )
    return build()


def _check_tied(model: Any, state: dict) -> None:
    """Two keys of one parameter get the same values, or an error."""
    first = {}
    for key, value in model.state_dict().items():
        if key not in state:
            continue
        # PyTorch makes new objects on the same memory.
        place = value.data_ptr() if _library(model) == "torch" else id(value)
        before = first.setdefault((place, tuple(value.shape)), key)
        if not np.array_equal(state[before].numpy(), state[key].numpy(), equal_nan=True):
            raise ValueError(
                f"(InvalidArgument) convert_weights: {before} and {key} are one parameter in the target, and get different "
                f"values. Hint: untie them, or leave one out with a line `- = {key}` of the mapping."
            )


def _load(model: Any, state: dict) -> None:
    """Puts values into a live model."""
    _check_tied(model, state)
    if _library(model) == "torch":
        import torch

        arrays = {key: torch.from_numpy(value.numpy().copy()) for key, value in state.items()}
        model.load_state_dict(arrays, strict=False)
    elif isinstance(model, _core.LayerBase):
        model.set_state_dict(state)
    else:
        model.set_state_dict({key: value.numpy() for key, value in state.items()})


def convert_weights(
    source: Any,
    target: Any = None,
    *,
    to: str | os.PathLike | None = None,
    mapping: str | os.PathLike | dict | None = None,
    partial: bool = False,
    source_model: Any = None,
    key: str | None = None,
    source_layout: str | None = None,
    target_layout: str | None = None,
) -> Conversion:
    """Gives a network the weights of another framework's implementation.

    Layers are paired by their names, by their order, or because only one has their shapes; where several pairs are
    possible the error lists them. Matrices of linear layers are transposed between PyTorch and Paddle, by the class of the
    layer. Nothing in a file is run.

    Args:
        source: a file of weights (.pth, .pdparams, .pdiparams, .safetensors, .npz, .onnx), a dict of tensors, or a model of
            PyTorch, Paddle or sampan.
        target: a model, which takes the weights over; the name of a network in `sampan.vision.models`; or a file of
            weights with the keys that are wanted. Without one, the source's keys are kept.
        to: a file to write, whole or not at all.
        mapping: lines that correct the pairs (`source = target`, `source = -`, `- = target`, `transpose key`, `plain key`), a
            file of such lines, or a dict of names.
        partial: allow keys without a partner, which are then named in the result.
        source_model: the model that the source was saved from, or its name in the zoo, where the file has no names.
        key: the entry of a checkpoint that holds the weights.
        source_layout, target_layout: "torch" or "paddle", where neither format nor names nor classes tell.
    """
    for name, value in (("key", key), ("source_layout", source_layout), ("target_layout", target_layout)):
        if value is not None and not isinstance(value, str):
            raise TypeError(f"(InvalidType) convert_weights: {name} is a str, not {type(value).__name__}.")
    if source_model is not None:
        source_model = _structure(_zoo(source_model) if isinstance(source_model, str) else source_model, None)
    if _is_path(source):
        given = _core._weights_in(os.fspath(source), key, source_layout, source_model)
    else:
        given = _structure(source, source_layout)
    template, wanted, live = None, None, None
    if _is_path(target):
        if os.path.isfile(target):
            template = os.fspath(target)
            wanted = _core._weights_in(template, None, target_layout, None)
        else:
            wanted = _structure(_zoo(os.fspath(target)), target_layout)
    elif target is not None:
        wanted = _structure(target, target_layout)
        live = None if isinstance(target, dict) else target
    state, account, text = _core._convert_weights(
        given, wanted, target_layout, mapping_text(mapping, "convert_weights"), bool(partial), None if to is None else path(to, "convert_weights"), template
    )
    state = dict(state)
    if live is not None:
        _load(live, state)
    return Conversion(state, account, text)
