"""Parameters that are shared out: each process keeps a part of each, and a layer has them whole while it computes."""

from __future__ import annotations

from ..autograd import PyLayer, saved_tensors_hooks
from ..nn.layer import Layer
from .communication import ReduceOp, _parts

# Steps that look at a parameter as a whole, which no process has.
_NEED_THE_WHOLE = ("Lamb", "LBFGS")


class _Cut:
    """A parameter of which this process keeps one part, flat; the last one may have zeros at its end."""

    def __init__(self, parameter, group):
        self.parameter, self.group = parameter, group._group
        self.shape, self.count = list(parameter.shape), parameter.size
        self.part = self.part_of(parameter.detach())
        self.part.stop_gradient, self.part.name = False, parameter.name
        self.whole = None  # while somebody uses it
        self.users = 0
        parameter._replace(self.part)
        parameter.is_distributed = True

    def _flat(self, tensor):
        """A whole as one row that all processes can share evenly."""
        from .. import concat, zeros

        flat, rest = tensor.reshape([-1]), -self.count % self.group.size()
        return concat([flat, zeros([rest], dtype=flat.dtype)]) if rest else flat

    def part_of(self, tensor):
        """This process's part of a whole."""
        return _parts(self._flat(tensor), self.group.size(), "p_g_os")[self.group.rank].clone()

    def gathered(self, part=None):
        """The whole, from everybody's part."""
        from .. import zeros

        part = self.parameter.detach() if part is None else part
        room = zeros([part.size * self.group.size()], dtype=part.dtype)
        self.group.all_gather(_parts(room, self.group.size(), "p_g_os"), part, True)
        return room[: self.count].reshape(self.shape)

    def reduced(self, grad):
        """This process's part of the mean of gradients."""
        from .. import zeros

        parts = _parts(self._flat(grad), self.group.size(), "p_g_os")
        mine = zeros(parts[0].shape, dtype=grad.dtype)
        self.group.reduce_scatter(mine, parts, ReduceOp.AVG, True)
        return mine

    def use(self) -> None:
        self.users += 1
        if self.users == 1:
            if not self.parameter._is_same(self.part):
                # Somebody put another tensor in its place.
                self.part = self.parameter.detach()
                self.part.stop_gradient, self.part.name = False, self.parameter.name
            self.whole = _Whole.apply(self.part, self)
            self.parameter._replace(self.whole)

    def release(self) -> None:
        self.users -= 1
        if self.users == 0:
            self.restore()

    def restore(self) -> None:
        """Lets go of the whole."""
        if self.whole is not None:
            self.parameter._replace(self.part)
        self.whole, self.users = None, 0


class _Whole(PyLayer):
    """A parameter from its parts; each process gets the mean of the gradients of its part."""

    @staticmethod
    def forward(ctx, part, cut):
        ctx.cut = cut
        return cut.gathered(part.detach())

    @staticmethod
    def backward(ctx, grad):
        return ctx.cut.reduced(grad)


def keep_buffers_alike(network, layers, group) -> None:
    """Gives the buffers of the first process of a group to all, before each forward of a network."""

    def give(layer, inputs):
        found = [*(p for p in layers.parameters() if p.stop_gradient), *layers.buffers()]
        if found and group.nranks > 1:
            group._group.broadcast_all(found, group.ranks[0])

    network.register_forward_pre_hook(give)


class GroupShardedStage3(Layer):
    """A network whose large parameters are shared out among processes (`group_sharded_parallel` with `p_g_os`). A layer
    gathers its parameters when its forward begins and lets go of them when it ends; what the graph would keep of them is
    gathered again in `backward`. Code that reads a parameter outside of its layer's forward sees one part, flat:
    `exclude_layer` keeps such layers whole."""

    def __init__(self, layer, optimizer, group, sync_buffers, segment_size, buffer_max_size, exclude_layer):
        super().__init__(layer.full_name() + "_stage3")
        self._layers = layer
        if (kind := type(optimizer).__name__) in _NEED_THE_WHOLE:
            raise ValueError(
                f"(InvalidArgument) group_sharded_parallel: {kind} looks at whole parameters, which no process has with "
                "p_g_os. Hint: level='os_g', or another optimizer."
            )
        clip = type(optimizer._grad_clip).__name__
        if clip == "ClipGradByNorm":
            raise ValueError(
                "(InvalidArgument) group_sharded_parallel: ClipGradByNorm looks at whole gradients, which no process has "
                "with p_g_os. Hint: ClipGradByGlobalNorm."
            )
        engine = group._group
        engine.broadcast_all([*layer.parameters(), *layer.buffers()], engine.ranks[0])
        before = optimizer.state_dict()
        self.__dict__["_cuts"] = {}
        for inner in layer.sublayers(include_self=True):
            if type(inner).__name__ in exclude_layer or id(inner) in exclude_layer:
                continue
            cuts = [self._cut(p, group, segment_size) for p in inner._parameters.values() if p is not None]
            cuts = [cut for cut in cuts if cut is not None]
            if cuts:
                inner.register_forward_pre_hook(lambda layer, inputs, cuts=cuts: _each(cuts, _Cut.use))
                inner.register_forward_post_hook(lambda layer, inputs, outputs, cuts=cuts: _each(cuts, _Cut.release))
        self._take_states(optimizer, before)
        if sync_buffers:
            keep_buffers_alike(self, layer, group)
        small = [(n, p) for n, p in layer.named_parameters() if not p.stop_gradient and id(p) not in self._cuts]
        bytes_of = 4 * buffer_max_size
        from .. import _core

        self.__dict__["_reducer"] = _core.Reducer(engine, small, bytes_of, bytes_of, False) if small else None

    def _cut(self, parameter, group, least: int):
        if id(parameter) not in self._cuts and not parameter.stop_gradient and parameter.size >= max(least, 1):
            self._cuts[id(parameter)] = _Cut(parameter, group)
        return self._cuts.get(id(parameter))

    def _state_of(self, name: str):
        """The cut parameter that a state of the optimizer belongs to element by element."""
        found = [cut for cut in self._cuts.values() if name.startswith(cut.parameter.name + "_")]
        return max(found, key=lambda cut: len(cut.parameter.name)) if found and "_pow_acc" not in name else None

    def _take_states(self, optimizer, states: dict) -> None:
        """States that were loaded before are shared out, too."""
        taken = {}
        for name, value in states.items():
            cut = self._state_of(name)
            whole = cut is not None and list(getattr(value, "shape", ())) == cut.shape
            taken[name] = cut.part_of(value.detach()) if whole else value
        if any(taken[name] is not states[name] for name in taken):
            optimizer.set_state_dict(taken)

    def whole_states(self, states: dict) -> dict:
        """States of an optimizer as one process would have them. All processes call it."""
        found = {}
        for name in states:
            value, cut = states[name], self._state_of(name)
            cut_up = cut is not None and list(getattr(value, "shape", ())) == list(cut.part.shape)
            found[name] = cut.gathered(value.detach()) if cut_up else value
        return found

    def forward(self, *inputs, **kwargs):
        if self._reducer is not None:
            self._reducer.prepare()

        def pack(tensor):
            for cut in self._cuts.values():
                if cut.whole is not None and tensor.shape == cut.shape and tensor._shares_memory(cut.whole):
                    return cut
            return tensor

        try:
            with saved_tensors_hooks(pack, lambda kept: kept.gathered() if isinstance(kept, _Cut) else kept):
                return self._layers(*inputs, **kwargs)
        finally:
            _each(self._cuts.values(), _Cut.restore)

    def get_all_parameters(self, convert2cpu=False) -> list:
        """The values of all trainable parameters, whole. All processes call it."""
        return [self._whole(p) for p in self._layers.parameters() if not p.stop_gradient]

    def _whole(self, tensor):
        cut = self._cuts.get(id(tensor))
        return tensor if cut is None else cut.gathered()

    def state_dict(self, *args, **kwargs):
        """The state of the network with whole parameters. All processes call it."""
        return {name: self._whole(tensor) for name, tensor in self._layers.state_dict(*args, **kwargs).items()}

    def set_state_dict(self, state_dict, *args, **kwargs):
        """Takes whole parameters over, each process its part."""
        own = self._layers.state_dict()
        given = {}
        for name, value in state_dict.items():
            cut = self._cuts.get(id(own.get(name)))
            if cut is not None:
                from .. import to_tensor

                value = cut.part_of(to_tensor(value).reshape(cut.shape))
            given[name] = value
        return self._layers.set_state_dict(given, *args, **kwargs)

    set_dict = load_dict = set_state_dict


def _each(cuts, act) -> None:
    for cut in list(cuts):
        act(cut)
