"""Attributes of built-in layers that are settings: `conv._stride`, `dropout.p`, `embedding._num_embeddings`."""

from __future__ import annotations

# Attribute: setting, where the names differ; the same for all classes, or (below) for one.
_RENAMED: dict[str, str] = {}
_OF_CLASS: dict[str, dict[str, str]] = {}


def setting(layer, name: str) -> tuple[bool, object]:
    """Was the layer built from, or does it know, something of that name? And what?"""
    settings = layer._settings
    plain = name[1:] if name.startswith("_") else name
    for key in (name, plain):
        if key in settings:
            return True, settings[key]
    return False, None
