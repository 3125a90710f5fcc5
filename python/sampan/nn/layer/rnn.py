"""Recurrent cells and the layers that walk them along sequences."""

from __future__ import annotations

from ... import _core, _registry
from .builtin import BuiltinLayer
from .container import LayerList
from .layers import Layer

_definitions = _registry.classes("nn")


def _map(f, *structures):
    """Applies `f` to tensors that lie at the same places of structures of tuples, lists and dicts."""
    first = structures[0]
    if isinstance(first, (list, tuple)):
        items = [_map(f, *parts) for parts in zip(*structures)]
        return type(first)(*items) if hasattr(first, "_fields") else type(first)(items)
    if isinstance(first, dict):
        return {key: _map(f, *(s[key] for s in structures)) for key in first}
    return f(*structures)


def _first(structure):
    while isinstance(structure, (list, tuple, dict)):
        structure = next(iter(structure.values() if isinstance(structure, dict) else structure))
    return structure


class RNNCellBase(Layer):
    """The base of cells: a subclass says in `forward(inputs, states)` what one step computes, and in `state_shape` how
    large its states are."""

    def get_initial_states(self, batch_ref, shape=None, dtype=None, init_value=0.0, batch_dim_idx=0):
        """States filled with `init_value` for a batch as large as that of `batch_ref`."""
        batch = _first(batch_ref).shape[batch_dim_idx]
        if dtype is None:
            try:
                dtype = self.state_dtype
            except NotImplementedError:
                dtype = _core.get_default_dtype()

        def fill(shape):
            if isinstance(shape, dict):
                return {key: fill(part) for key, part in shape.items()}
            if all(isinstance(n, int) for n in shape):
                sizes = [n for n in shape[1:]] if len(shape) and shape[0] == -1 else list(shape)
                return _core.op("full")([batch, *sizes], init_value, _first(dtype))
            return type(shape)(fill(part) for part in shape)

        return fill(self.state_shape if shape is None else shape)

    @property
    def state_shape(self):
        """The shape of the states without the batch: a tuple of ints, or a structure of such tuples."""
        raise NotImplementedError(
            f"(Unimplemented) {type(self).__name__} has no `state_shape`. Hint: define it as a property, for example "
            "(self.hidden_size,)."
        )

    @property
    def state_dtype(self):
        """The dtype of the states; the default one unless a cell says otherwise."""
        raise NotImplementedError(f"(Unimplemented) {type(self).__name__} has no `state_dtype`.")


class _Cell(BuiltinLayer, RNNCellBase):
    """A cell of the core."""

    @property
    def state_shape(self):
        return (self.hidden_size,)


class SimpleRNNCell(_Cell):
    _definition = _definitions["SimpleRNNCell"]
    __doc__ = _definition.doc


class GRUCell(_Cell):
    _definition = _definitions["GRUCell"]
    __doc__ = _definition.doc


class LSTMCell(_Cell):
    _definition = _definitions["LSTMCell"]
    __doc__ = _definition.doc

    @property
    def state_shape(self):
        return ((self.proj_size or self.hidden_size,), (self.hidden_size,))


class _Recurrent(BuiltinLayer, LayerList):
    """Recurrent layers on top of each other, which are its elements."""

    def flatten_parameters(self):
        """Does nothing: the parameters lie in memory as they are."""

    @classmethod
    def _mode(cls, told: dict) -> str:
        return f"RNN_{told['activation'].upper()}" if cls._definition.name == "SimpleRNN" else cls._definition.name


class SimpleRNN(_Recurrent):
    _definition = _definitions["SimpleRNN"]
    __doc__ = _definition.doc


class LSTM(_Recurrent):
    _definition = _definitions["LSTM"]
    __doc__ = _definition.doc


class GRU(_Recurrent):
    _definition = _definitions["GRU"]
    __doc__ = _definition.doc


def rnn(cell, inputs, initial_states=None, sequence_length=None, time_major=False, is_reverse=False, **kwargs):
    """Walks a cell along sequences: the outputs of all steps and the last states. A sequence that is shorter than the
    others keeps its states after its end."""
    op = _core.op
    time = 0 if time_major else 1
    states = initial_states
    if states is None:
        states = cell.get_initial_states(batch_ref=inputs, batch_dim_idx=1 - time)
    length = _first(inputs).shape[time]
    steps = [_map(lambda x: op("unbind")(x, time)[t], inputs) for t in range(length)]
    taken = None
    if sequence_length is not None:
        taken = op("unbind")(op("sequence_mask")(sequence_length, length, "bool"), 1)
    outputs = [None] * length
    for t in reversed(range(length)) if is_reverse else range(length):
        outputs[t], new = cell(steps[t], states, **kwargs)
        if taken is not None:

            def keep(new, old, mask=taken[t]):
                return op("where")(mask.reshape([-1] + [1] * (new.ndim - 1)), new, old)

            new = _map(keep, new, states)
        states = new
    return _map(lambda *ys: op("stack")(list(ys), time), *outputs), states


def birnn(cell_fw, cell_bw, inputs, initial_states=None, sequence_length=None, time_major=False, **kwargs):
    """Walks one cell forward and one backward along sequences; their outputs are joined on the last axis."""
    forward, backward = (None, None) if initial_states is None else initial_states
    y_fw, forward = rnn(cell_fw, inputs, forward, sequence_length, time_major, False, **kwargs)
    y_bw, backward = rnn(cell_bw, inputs, backward, sequence_length, time_major, True, **kwargs)
    return _map(lambda a, b: _core.op("concat")([a, b], -1), y_fw, y_bw), (forward, backward)


def _is_core(cell) -> bool:
    """Can the core walk this cell without Python?"""
    return isinstance(cell, _Cell) and type(cell).forward is BuiltinLayer.forward


class _Walk(Layer):
    """A layer that walks cells: the core does it if it knows the cells, Python if they were written there."""

    _names: tuple[str, ...] = ()

    def _setup(self, cells: tuple, **settings):
        super().__init__()
        for name, cell in zip(self._names, cells):
            if not isinstance(cell, Layer):
                raise TypeError(f"(InvalidType) {type(self).__name__}: `{name}` is a cell, got {type(cell).__name__}.")
            setattr(self, name, cell)
        for name, value in settings.items():
            setattr(self, name, value)
        self.__dict__["_settings_of_core"] = settings
        self.__dict__["_core_of"] = None

    def _fast(self):
        """The core's walk over the cells as they are now, or None."""
        cells = [self._sub_layers[name] for name in self._names]
        if not all(_is_core(c) and not c._hooked and c._core.path == "" for c in cells):
            return None
        known = self.__dict__.get("_core_of")
        if known is None or any(a is not b for a, b in zip(known[0], cells)):
            core, _ = _definitions[type(self)._kind].make(*cells, **self._settings_of_core)
            known = self.__dict__["_core_of"] = (cells, core)
        return known[1].forward

    def __getstate__(self):
        return {**super().__getstate__(), "_core_of": None}


class RNN(_Walk):
    _definition = _definitions["RNN"]
    __doc__ = _definition.doc
    _names = ("cell",)
    _kind = "RNN"

    def __init__(self, cell, is_reverse=False, time_major=False):
        self._setup((cell,), is_reverse=is_reverse, time_major=time_major)

    def forward(self, inputs, initial_states=None, sequence_length=None, **kwargs):
        fast = None if kwargs or isinstance(inputs, (list, tuple, dict)) else self._fast()
        if fast is not None:
            return fast(inputs, initial_states, sequence_length)
        return rnn(self.cell, inputs, initial_states, sequence_length, self.time_major, self.is_reverse, **kwargs)


class BiRNN(_Walk):
    _definition = _definitions["BiRNN"]
    __doc__ = _definition.doc
    _names = ("cell_fw", "cell_bw")
    _kind = "BiRNN"

    def __init__(self, cell_fw, cell_bw, time_major=False):
        sizes = [getattr(cell, "input_size", None) for cell in (cell_fw, cell_bw)]
        if sizes[0] != sizes[1] and None not in sizes:
            raise ValueError(
                f"(InvalidArgument) BiRNN: both cells must take the same inputs, cell_fw takes {sizes[0]} features, "
                f"cell_bw {sizes[1]}."
            )
        self._setup((cell_fw, cell_bw), time_major=time_major)

    def forward(self, inputs, initial_states=None, sequence_length=None, **kwargs):
        if isinstance(initial_states, (list, tuple)) and len(initial_states) != 2:
            raise ValueError("(InvalidArgument) BiRNN: initial_states is a pair, one for each of the two cells.")
        fast = None if kwargs or isinstance(inputs, (list, tuple, dict)) else self._fast()
        if fast is not None:
            return fast(inputs, initial_states, sequence_length)
        return birnn(self.cell_fw, self.cell_bw, inputs, initial_states, sequence_length, self.time_major, **kwargs)
