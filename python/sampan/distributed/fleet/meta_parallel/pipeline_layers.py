"""A network as a row of layers that is cut into stages, one in each process of the group `pipe`."""

from __future__ import annotations

import functools
import re

from .... import get_rng_state, nn, seed, set_rng_state
from ...parallel import get_rank, get_world_size

# Paddle's: layer n is drawn by the seed 1234 + n, so weights do not depend on where the network is cut.
_FIRST_SEED = 1234


class LayerDesc:
    """A layer to be built in the process that needs it: a class and its arguments."""

    def __init__(self, layer_func, *inputs, **kwargs):
        if not (isinstance(layer_func, type) and issubclass(layer_func, nn.Layer)):
            raise TypeError("(InvalidType) LayerDesc: layer_func is a subclass of nn.Layer, built when it is needed.")
        self.layer_func, self.inputs, self.kwargs = layer_func, inputs, kwargs

    def build_layer(self, **extra_kwargs):
        """The layer."""
        return self.layer_func(*self.inputs, **{**self.kwargs, **extra_kwargs})

    def __repr__(self) -> str:
        told = [*map(str, self.inputs), *(f"{name}={value}" for name, value in self.kwargs.items())]
        return f"{self.layer_func.__name__}({', '.join(told)})"


class SharedLayerDesc(LayerDesc):
    """A layer that stands at several places and has the same weights at each. With `forward_func(layer, x)` it computes
    something else there; `shared_weight_attr` names the weights, or a list of them."""

    def __init__(self, key, layer_func, forward_func=None, shared_weight_attr="weight", *inputs, **kwargs):
        super().__init__(layer_func, *inputs, **kwargs)
        self.layer_name, self.forward_func = key, forward_func
        several = isinstance(shared_weight_attr, (list, tuple))
        self.shared_weight_attr = list(shared_weight_attr) if several else [shared_weight_attr]


def _name(layer) -> str:
    if isinstance(layer, LayerDesc):
        return layer.layer_func.__name__
    return type(layer).__name__ if isinstance(layer, nn.Layer) else getattr(layer, "__name__", "")


def segments(layers: list, stages: int, method) -> list[int]:
    """Where stages begin, and where the last one ends: `uniform`, `layer:Name` (as many layers with that name in each), or a
    list."""
    count = len(layers)
    if count < stages:
        raise ValueError(f"(InvalidArgument) PipelineLayer: {count} layers cannot be cut into {stages} stages.")
    if isinstance(method, (list, tuple)):
        cuts = [*method, count] if len(method) == stages else list(method)
        if len(cuts) != stages + 1 or cuts[0] != 0 or cuts[-1] != count or sorted(cuts) != cuts:
            raise ValueError(
                f"(InvalidArgument) PipelineLayer: seg_method {list(method)} does not cut {count} layers into {stages} "
                "stages. Hint: it has the first layer of each stage, in order, beginning with 0."
            )
        return cuts
    if method == "uniform":
        size, more = divmod(count, stages)
        cuts = [0]
        # The last stages have one layer more, but for the very last, which takes what is left.
        for stage in range(1, stages):
            cuts.append(min(cuts[-1] + size + (stage > stages - more), count))
        return [*cuts, count]
    if isinstance(method, str) and method.startswith("layer:"):
        wanted = re.compile(method.split(":")[1], re.IGNORECASE)
        found = [at for at, layer in enumerate(layers) if wanted.search(_name(layer))]
        if not found or len(found) % stages:
            raise ValueError(
                f"(InvalidArgument) PipelineLayer: {len(found)} layers match {method!r}; they must be divisible by {stages} "
                "stages."
            )
        share = len(found) // stages
        return [0, *(found[share * stage - 1] + 1 for stage in range(1, stages)), count]
    raise ValueError(f"(InvalidArgument) PipelineLayer: seg_method is uniform, layer:Name or a list, got {method!r}.")


class PipelineLayer(nn.Layer):
    """A row of layers (`LayerDesc`, layers, functions), of which each process of the axis `pipe` builds its stage.
    `fleet.distributed_model` makes it train; `loss_fn(output, label)` stands at its end, or a list of them."""

    def __init__(
        self,
        layers,
        num_stages=None,
        topology=None,
        loss_fn=None,
        seg_method="uniform",
        recompute_interval=0,
        recompute_ctx=None,
        num_virtual_pipeline_stages=None,
        use_cudagraph=False,
        use_dualpipev=False,
    ):
        super().__init__()
        if num_stages is None and topology is None:
            raise ValueError("(InvalidArgument) PipelineLayer: num_stages or topology is needed.")
        if (num_virtual_pipeline_stages or 1) > 1 or use_dualpipev or use_cudagraph:
            raise NotImplementedError(
                "(Unimplemented) PipelineLayer: each process has one stage, trained one forward, one backward. Hint: leave "
                "num_virtual_pipeline_stages, use_dualpipev and use_cudagraph."
            )
        if topology is None:
            from ..topology import CommunicateTopology

            if get_world_size() % num_stages:
                raise ValueError(
                    f"(InvalidArgument) PipelineLayer: {get_world_size()} processes cannot be {num_stages} stages each."
                )
            topology = CommunicateTopology(["data", "pipe", "model"], [get_world_size() // num_stages, num_stages, 1])
        self._topo, self.global_rank = topology, get_rank()
        self._num_stages = topology.get_dim("pipe")
        if num_stages is not None and num_stages != self._num_stages:
            raise ValueError(
                f"(InvalidArgument) PipelineLayer: num_stages is {num_stages}, but the topology has {self._num_stages}."
            )
        at = topology.get_hybrid_group_names().index("pipe")
        self._stage_id = topology.get_coord(self.global_rank)[at]
        self._loss_fn = loss_fn if isinstance(loss_fn, list) else [loss_fn]
        self._recompute_interval, self.recompute_ctx = recompute_interval, recompute_ctx
        self._layers_desc = list(layers)
        self.segment_parts = segments(self._layers_desc, self._num_stages, seg_method)
        self.shared_layers = nn.LayerDict()
        self.run_function: list = []
        before = get_rng_state()
        for index in range(self.segment_parts[self._stage_id], self.segment_parts[self._stage_id + 1]):
            seed(_FIRST_SEED + index)
            self.run_function.append(self._build(index, self._layers_desc[index]))
        set_rng_state(before)
        self.shared_comm = self._share_weights()

    def _build(self, index: int, layer):
        if isinstance(layer, SharedLayerDesc):
            if layer.layer_name not in self.shared_layers:
                self.shared_layers[layer.layer_name] = layer.build_layer()
            built = self.shared_layers[layer.layer_name]
            return built if layer.forward_func is None else functools.partial(layer.forward_func, built)
        built = layer.build_layer() if isinstance(layer, LayerDesc) else layer
        if isinstance(built, nn.Layer):
            self.add_sublayer(str(index), built)
        return built

    def get_stage_from_index(self, layer_idx: int) -> int:
        """The stage that has a layer."""
        if not 0 <= layer_idx < len(self._layers_desc):
            raise ValueError(f"(InvalidArgument) PipelineLayer: there is no layer {layer_idx}.")
        return sum(1 for cut in self.segment_parts[1:-1] if cut <= layer_idx)

    def _share_weights(self) -> dict:
        """A group of stages for each layer that several of them have; all begin with the first one's weights."""
        from ...group import new_group

        stages: dict[str, list[int]] = {}
        weights: dict[str, list[str]] = {}
        for index, layer in enumerate(self._layers_desc):
            if isinstance(layer, SharedLayerDesc):
                stages.setdefault(layer.layer_name, []).append(self.get_stage_from_index(index))
                weights.setdefault(layer.layer_name, []).extend(layer.shared_weight_attr)
        shared = {}
        for key, where in stages.items():
            if len(set(where)) == 1:
                continue
            for line in self._topo.get_comm_list("pipe"):
                ranks = [line[stage] for stage in sorted(set(where))]
                group = new_group(ranks)
                if self.global_rank in ranks:
                    names = sorted(set(weights[key]))
                    shared[key] = {
                        "ranks": ranks,
                        "group": group,
                        "weight_attr": names,
                        "layer": self.shared_layers[key],
                    }
        for comm in shared.values():
            for parameter in self._shared(comm):
                comm["group"]._group.broadcast(parameter, comm["ranks"][0], True)
                # A clip by the norm of all counts it once.
                parameter.is_firstly_shared = self.global_rank == comm["ranks"][0]
        return shared

    @staticmethod
    def _shared(comm: dict) -> list:
        return [getattr(comm["layer"], name) for name in comm["weight_attr"]]

    def allreduce_shared_weight_gradients(self) -> None:
        """Adds the gradients of weights that several stages have."""
        from .... import zeros_like
        from ...communication import ReduceOp

        for comm in self.shared_comm.values():
            for parameter in self._shared(comm):
                if parameter.grad is None:
                    parameter.grad = zeros_like(parameter.detach())
                comm["group"]._group.all_reduce(parameter.grad, ReduceOp.SUM, True)

    def get_num_virtual_stages(self) -> int:
        """One: each process has one stage."""
        return 1

    def forward_function(self, start: int, end: int):
        """Some layers of this stage, one after the other."""

        def run(*inputs):
            value = inputs[0] if len(inputs) == 1 else inputs
            for layer in self.run_function[start:end]:
                value = layer(value)
            return value

        return run

    def forward(self, input, chunk_id=None):
        count = len(self.run_function)
        if not self._recompute_interval:
            return self.forward_function(0, count)(input)
        from ..utils import recompute

        for start in range(0, count, self._recompute_interval):
            given = input if isinstance(input, tuple) else (input,)
            some = self.forward_function(start, min(start + self._recompute_interval, count))
            followed = any(not part.stop_gradient for part in given if hasattr(part, "stop_gradient"))
            input = recompute(some, *given) if followed else some(*given)
        return input
