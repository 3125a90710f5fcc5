"""The best sequence of tags: a function and a layer of the core."""

from .. import _registry
from ..nn.layer.builtin import BuiltinLayer

viterbi_decode = _registry.plain_functions("text")["viterbi_decode"]
__all__ = ["viterbi_decode", *_registry.define(globals(), "text", BuiltinLayer)]
