"""Attention and transformers: what Python adds to the layers of the core."""

from __future__ import annotations

import ast
import copy
import weakref
from collections import namedtuple

from ... import _core, _registry
from .builtin import BuiltinLayer
from .container import LayerList
from .layers import Layer

Cache = namedtuple("Cache", ["k", "v"])
Cache.__doc__ = "Keys and values that grow with each call."
StaticCache = namedtuple("StaticCache", ["k", "v"])
StaticCache.__doc__ = "Keys and values that stay as they are."

_definitions = _registry.classes("nn")
_FUNCTIONS = _registry.functions("nn.functional")


def functional():
    """`nn.functional`, where activations are looked up, so that one that a program puts there counts."""
    from .. import functional as found

    return found


class MultiHeadAttention(BuiltinLayer):
    _definition = _definitions["MultiHeadAttention"]
    __doc__ = _definition.doc
    Cache = Cache
    StaticCache = StaticCache

    def compute_kv(self, key, value):
        """Keys and values of the heads, `[batch, heads, length, width]`."""

        def heads(x):
            return x.reshape([0, 0, self.num_heads, self.head_dim]).transpose([0, 2, 1, 3])

        return heads(self.k_proj(key)), heads(self.v_proj(value))

    def gen_cache(self, key, value=None, type=Cache):
        """A cache for `forward`: an empty one for a batch as large as that of `key`, one that holds `key` and `value`,
        or (`type=StaticCache`) the keys and values made of them."""
        if type == StaticCache:
            return StaticCache(*self.compute_kv(key, value))
        if value is None:
            empty = [key.shape[0], self.num_heads, 0, self.head_dim]
            return Cache(_core.op("zeros")(empty, key.dtype), _core.op("zeros")(empty, key.dtype))
        return Cache(key, value)


class _LayerOfStack(BuiltinLayer):
    """What both kinds of layer know: how to make another one like it."""

    def _build(self, args, kwargs):
        bound = {**dict(zip((name for name, *_ in self._definition.params), args)), **kwargs}
        name = bound.get("activation", "relu")
        function = getattr(functional(), name, None) if isinstance(name, str) else None
        if function is None or function is _FUNCTIONS.get(name):
            super()._build(args, kwargs)
            return
        # Somebody put another function there, which Python calls.
        super()._build((), {**bound, "activation": "relu"})
        self.__dict__["_made_with"] = {**self._config, "activation": name}
        self.activation = function

    @property
    def _config(self) -> dict:
        """What the layer was made from. A stack makes others like it from this, changes included."""
        here = self.__dict__
        if "_made_with" not in here:
            args, kwargs = here.get("_made_from", ((), self._settings))
            params = self._definition.params
            bound = {**dict(zip((name for name, *_ in params), args)), **kwargs}
            here["_made_with"] = {
                name: bound[name] if name in bound else ast.literal_eval(default) for name, _, default, *_ in params
            }
        return here["_made_with"]

    @_config.setter
    def _config(self, config: dict) -> None:
        self.__dict__["_made_with"] = config

    def __setattr__(self, name, value):
        if name != "activation" or "_core" not in self.__dict__:
            super().__setattr__(name, value)
            return
        # A function of the core's computes there; any other is called from here.
        known = value if isinstance(value, str) else getattr(value, "__name__", None)
        here = self.__dict__
        for place in (here, self._sub_layers):
            place.pop("activation", None)
        if isinstance(value, str) or _FUNCTIONS.get(known) is value:
            here.pop("_by_parts", None)
            self._tell("activation", known)
        else:
            here["_by_parts"] = True
            if isinstance(value, Layer):
                super().__setattr__(name, value)
            else:
                here["activation"] = value
        self._note_hooks()

    def __getattr__(self, name):
        found = super().__getattr__(name)
        return getattr(functional(), found) if name == "activation" and isinstance(found, str) else found

    def _part(self, number: int, x, compute):
        """`x + dropout(compute(x))` and the norm of that number, before it or after it."""
        norm, dropout = (self._sub_layers[f"{kind}{number}"] for kind in ("norm", "dropout"))
        sum = x + dropout(compute(norm(x) if self.normalize_before else x))
        return sum if self.normalize_before else norm(sum)

    def _feed(self, x):
        return self.linear2(self.dropout(self.activation(self.linear1(x))))


class TransformerEncoderLayer(_LayerOfStack):
    _definition = _definitions["TransformerEncoderLayer"]
    __doc__ = _definition.doc

    def gen_cache(self, src):
        """An empty cache for a batch as large as that of `src`."""
        return self.self_attn.gen_cache(src, type=self.self_attn.Cache)

    def _compute(self, src, src_mask=None, cache=None):
        mask = _convert_attention_mask(src_mask, src.dtype)
        grown = []

        def attend(x):
            if cache is None:
                return self.self_attn(x, x, x, mask)
            y, new = self.self_attn(x, x, x, mask, cache)
            grown.append(new)
            return y

        y = self._part(2, self._part(1, src, attend), self._feed)
        return (y, *grown) if grown else y


class TransformerDecoderLayer(_LayerOfStack):
    _definition = _definitions["TransformerDecoderLayer"]
    __doc__ = _definition.doc

    def gen_cache(self, memory):
        """An empty cache of the own sequence and a cache of the memory."""
        own = self.self_attn.gen_cache(memory, type=self.self_attn.Cache)
        return own, self.cross_attn.gen_cache(memory, memory, type=self.cross_attn.StaticCache)

    def _compute(self, tgt, memory, tgt_mask=None, memory_mask=None, cache=None):
        masks = _convert_attention_mask(tgt_mask, tgt.dtype), _convert_attention_mask(memory_mask, memory.dtype)
        grown = []

        def attend(x, seen, which):
            attention = self.cross_attn if which else self.self_attn
            if cache is None:
                return attention(x, seen, seen, masks[which])
            y, new = attention(x, seen, seen, masks[which], cache[which])
            grown.append(new)
            return y

        y = self._part(1, tgt, lambda x: attend(x, x, 0))
        y = self._part(2, y, lambda x: attend(x, memory, 1))
        y = self._part(3, y, self._feed)
        return (y, tuple(grown)) if grown else y


class _Stack(BuiltinLayer):
    """Layers of one kind one after the other: the one given, and others made from the same arguments."""

    def _build(self, args, kwargs):
        bound = _bound(self._definition, args, kwargs)
        first, n, norm = (bound.get(name) for name, *_ in self._definition.params)
        if isinstance(n, int) and not isinstance(first, (list, tuple)) and n > 10_000:
            # As many as the core allows: they would be made one by one until the memory is full.
            raise ValueError(f"(InvalidArgument) {type(self).__name__}: num_layers must be at most 10000, got {n}.")
        if not isinstance(first, (list, tuple)):
            config = getattr(first, "_config", None)
            if config is None and n > 1:
                raise TypeError(
                    f"(InvalidType) {type(self).__name__}: a {type(first).__name__} has no `_config` to make {n - 1} "
                    "more like it from. Hint: pass a list of layers."
                )
            first = [first, *(type(first)(**config) for _ in range(n - 1))][:n]
        super()._build((list(first), n), {"norm": norm})
        layers = self._sub_layers.setdefault("layers", LayerList())
        # The layers are Python's own: a change of the list makes the core's part anew.
        layers.__dict__.update(_inner={}, _root=weakref.ref(self))
        self._inner.pop("norm", None)
        if norm is None:
            self._sub_layers.pop("norm", None)
            self.__dict__["norm"] = None
        else:
            self._sub_layers["norm"] = norm
        self.__dict__["num_layers"] = n

    def _list_changed(self, layers: LayerList) -> None:
        """Layers were added or taken away: the core's part is made anew from those there are."""
        if layers is not self._sub_layers.get("layers"):
            return
        modes = self.training
        core, settings = self._definition.make(list(layers), len(layers), norm=self.norm)
        made_from = ((list(layers), len(layers)), {"norm": self.norm})
        self.__dict__.update(_core=core, _settings=settings, _made_from=made_from)
        core.set_training(modes)
        self.__dict__["num_layers"] = len(layers)
        self._note_hooks()

    def _put(self, kind, name, value):
        super()._put(kind, name, value)
        if name in ("layers", "norm") and "num_layers" in self.__dict__:
            self.layers.__dict__.update(_inner={}, _root=weakref.ref(self))
            self._list_changed(self.layers)


def _bound(definition, args: tuple, kwargs: dict) -> dict:
    names = [name for name, *_ in definition.params]
    if len(args) > len(names):
        raise TypeError(f"(InvalidType) {definition.name}: takes at most {len(names)} arguments, got {len(args)}.")
    unknown = [name for name in kwargs if name not in names]
    if unknown:
        takes = ", ".join(names)
        raise TypeError(f"(InvalidType) {definition.name}: has no argument `{unknown[0]}`. Hint: it takes {takes}.")
    bound = {**dict(zip(names, args)), **kwargs}
    for name in names[:2]:
        if name not in bound:
            raise TypeError(f"(InvalidType) {definition.name}: argument `{name}` is missing.")
    return bound


class TransformerEncoder(_Stack):
    _definition = _definitions["TransformerEncoder"]
    __doc__ = _definition.doc

    def gen_cache(self, src):
        """An empty cache for each layer."""
        return [layer.gen_cache(src) for layer in self.layers]


class TransformerDecoder(_Stack):
    _definition = _definitions["TransformerDecoder"]
    __doc__ = _definition.doc

    def gen_cache(self, memory, do_zip=False):
        """The caches of each layer; with `do_zip` those of the own sequence together and those of the memory."""
        caches = [layer.gen_cache(memory) for layer in self.layers]
        return list(zip(*caches)) if do_zip else caches


class Transformer(BuiltinLayer):
    _definition = _definitions["Transformer"]
    __doc__ = _definition.doc

    def generate_square_subsequent_mask(self, length):
        """A mask that lets position `i` see positions `0..=i`: zeros, and minus infinity above the diagonal."""
        length = int(length)
        return _core.op("triu")(_core.op("full")([length, length], float("-inf")), 1)


# ---- what programs import besides the layers


def _convert_param_attr_to_list(param_attr, n: int) -> list:
    """`n` attributes of one, or of a list of as many. Parameters of one name get numbers after it."""
    from ..attr import ParamAttr

    if isinstance(param_attr, (list, tuple)):
        if len(param_attr) != n:
            raise ValueError(f"(InvalidArgument) {n} attributes are needed, received {len(param_attr)}.")
        return [attr if isinstance(attr, bool) else ParamAttr._to_attr(attr) for attr in param_attr]
    if param_attr is False:
        return [False] * n
    made = []
    for i in range(n):
        attr = copy.copy(ParamAttr._to_attr(param_attr))
        if attr.name:
            attr.name = f"{attr.name}_{i}"
        made.append(attr)
    return made


def _convert_attention_mask(attn_mask, dtype):
    """A mask as it is added to scores: where a bool or integer one is 0, nothing is seen."""
    if attn_mask is None or attn_mask.dtype == dtype:
        return attn_mask
    if "float" in str(attn_mask.dtype):
        return attn_mask.astype(dtype)
    return (attn_mask.astype(dtype) - 1.0) * 1e9
