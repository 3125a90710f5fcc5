"""A network with its loss and optimizer, as Paddle's static auto-parallel calls it: one call is one step."""

from __future__ import annotations

import copy

from ... import _core, amp
from ...autograd import no_grad
from .across import computing_on
from .calls import mesh_of
from .optimizer import ShardingStage1, ShardingStage2, ShardingStage3, ShardOptimizer, shard_optimizer, shard_scaler
from .stages import brought

_SECTIONS = {
    "amp": {"enable": False, "dtype": "float16", "level": "o1", "init_loss_scaling": 32768.0},
    "gradient_merge": {"enable": False, "k_steps": 1, "avg": True},
    "sharding": {"enable": False, "stage": 1, "degree": 8},
    "pipeline": {"enable": False, "schedule_mode": "1F1B", "micro_batch_size": 1, "accumulate_steps": 1},
    # Ops here are fused already.
    "fused_passes": {"enable": False, "gemm_epilogue": False, "dropout_add": False},
}


_SCHEDULES = ("1F1B", "FThenB")


def _part(tensor, step: int, count: int):
    """A micro-batch of a batch."""
    rows = tensor.shape[0]
    if rows % count:
        raise ValueError(
            f"(InvalidArgument) pipeline: {rows} samples are not {count} micro-batches (accumulate_steps)."
        )
    return tensor[step * (rows // count) : (step + 1) * (rows // count)]


class _Section:
    """Settings of one kind."""

    def __init__(self, told: dict):
        self.__dict__.update(told)

    def __repr__(self):
        return repr(self.__dict__)


class Strategy:
    """What `dist.to_static` is told: `amp`, `gradient_merge`, `sharding`, and `pipeline` for networks that `parallelize` cut into
    stages; `fused_passes` changes nothing."""

    def __init__(self, config: dict | None = None):
        if config is not None and not isinstance(config, dict):
            raise ValueError(f"(InvalidArgument) Strategy: config is a dict, got {type(config).__name__}.")
        config = copy.deepcopy(config or {})
        for name, defaults in _SECTIONS.items():
            setattr(self, name, _Section({**defaults, **config.get(name, {})}))
        self.full_graph = config.get("full_graph", True)


class DistModel:
    """A network on a mesh with its loss and optimizer. In training a call computes the loss, takes a step and gives the loss; in
    evaluation it gives the loss, in prediction the outputs, `{"outs": [...]}`."""

    def __init__(self, layer, loader=None, loss=None, optimizer=None, strategy=None, metrics=None, input_spec=None):
        self._layer, self._loss, self._optimizer = layer, loss, optimizer
        self._strategy = strategy or Strategy()
        self._steps, self._mode, self._scaler = 0, None, None
        told = self._strategy.pipeline
        if told.enable and told.schedule_mode not in _SCHEDULES:
            raise ValueError(
                f"(InvalidArgument) to_static: schedule_mode is one of {', '.join(_SCHEDULES)}, got {told.schedule_mode!r}."
            )
        if told.enable and self._strategy.gradient_merge.enable:
            raise ValueError(
                "(InvalidArgument) to_static: a pipeline merges the gradients of its micro-batches. Hint: accumulate_steps, without "
                "gradient_merge."
            )
        shared = self._strategy.sharding
        if shared.enable and optimizer is not None and not isinstance(optimizer, ShardOptimizer):
            stages = {1: ShardingStage1, 2: ShardingStage2, 3: ShardingStage3}
            self._optimizer = shard_optimizer(optimizer, stages[shared.stage]())
        if self._strategy.amp.enable and self._strategy.amp.dtype == "float16":
            self._scaler = amp.GradScaler(init_loss_scaling=self._strategy.amp.init_loss_scaling)
            if mesh_of(layer.parameters()) is not None:
                # Processes have different gradients, and step all or none.
                self._scaler = shard_scaler(self._scaler)
        if loss is not None:
            self.train() if optimizer is not None else self.eval()
        else:
            self.predict()

    def train(self) -> None:
        """From now on calls train."""
        if self._loss is None or self._optimizer is None:
            raise ValueError("(InvalidArgument) DistModel: training needs a loss and an optimizer.")
        self._mode = "train"
        self._layer.train()

    def eval(self) -> None:
        """From now on calls give the loss."""
        if self._loss is None:
            raise ValueError("(InvalidArgument) DistModel: an evaluation needs a loss.")
        self._mode = "eval"
        self._layer.eval()

    def predict(self) -> None:
        """From now on calls give the outputs."""
        self._mode = "predict"
        self._layer.eval()

    def _forward(self, args):
        told = self._strategy.amp
        with amp.auto_cast(told.enable, level=told.level.upper(), dtype=told.dtype):
            if self._mode == "predict":
                outputs = self._layer(*args)
                return {"outs": list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]}
            *inputs, labels = args
            outputs = self._layer(*inputs)
            outputs = list(outputs) if isinstance(outputs, (list, tuple)) else [outputs]
            if (mesh := mesh_of(outputs)) is not None:
                labels = brought(labels, mesh)
            return self._loss(*outputs, labels)

    def __call__(self, *args):
        args = [item for arg in args for item in (arg if isinstance(arg, (list, tuple)) else [arg])]
        if self._mode != "train":
            with no_grad():
                found = self._forward(args)
                return found if self._mode == "predict" else self._everywhere(found)
        if self._strategy.pipeline.enable:
            loss = self._through_stages(args)
            self._step()
            return self._everywhere(loss)
        loss = self._forward(args)
        merged = self._strategy.gradient_merge
        count = merged.k_steps if merged.enable else 1
        self._backward(loss / count if count > 1 and merged.avg else loss)
        self._steps += 1
        if self._steps % count == 0:
            self._step()
        return self._everywhere(loss.detach())

    def _backward(self, loss) -> None:
        (self._scaler.scale(loss) if self._scaler is not None else loss).backward()

    def _step(self) -> None:
        if self._scaler is not None:
            self._scaler.step(self._optimizer)
            self._scaler.update()
        else:
            self._optimizer.step()
        self._optimizer.clear_grad()

    def _everywhere(self, loss):
        """A loss of the last stage in all processes."""
        stages = self._layer.__dict__.get("_stages")
        return loss if stages is None else brought(loss, stages.whole)

    def _through_stages(self, args):
        """The gradients of a batch, by micro-batches: a stage computes some ahead of the next ones, and then one backward for each
        forward; so all are busy. Gives the mean of their losses."""
        told, stages = self._strategy.pipeline, self._layer.__dict__.get("_stages")
        count = told.accumulate_steps
        following = 0 if stages is None else stages.following()
        ahead = count if told.schedule_mode == "FThenB" else min(following, count)
        parts = [[_part(tensor, step, count) for tensor in args] for step in range(count)]
        waiting, losses = [], []
        with computing_on():
            for step in range(count + ahead):
                if step < count:
                    loss = self._forward(parts[step]) / count
                    losses.append(loss.detach())
                    waiting.append(loss)
                if step >= ahead:
                    self._backward(waiting.pop(0))
        total = losses[0]
        for loss in losses[1:]:
            total = total + loss
        return total

    def state_dict(self, mode: str = "all", split_fusion: bool = True) -> dict:
        """Parameters (`param`), states of the optimizer (`opt`), or both (`all`)."""
        if mode not in ("all", "param", "opt"):
            raise ValueError(f"(InvalidArgument) state_dict: the mode is all, param or opt, got {mode!r}.")
        found = {} if mode == "opt" else dict(self._layer.state_dict())
        if mode != "param" and self._optimizer is not None:
            states = self._optimizer.state_dict()
            found.update((name, value) for name, value in states.items() if isinstance(value, _core.Tensor))
        return found

    def set_state_dict(self, state_dict: dict) -> None:
        """Takes over what `state_dict` gave."""
        own = self._layer.state_dict()
        self._layer.set_state_dict({name: value for name, value in state_dict.items() if name in own})
        states = {name: value for name, value in state_dict.items() if name not in own}
        if self._optimizer is not None and states:
            self._optimizer.set_state_dict(states)


def to_static(layer, loader=None, loss=None, optimizer=None, strategy=None, input_spec=None) -> DistModel:
    """A network on a mesh, with its loss and optimizer, of which one call is one step. Nothing is compiled: calls run as they are
    written."""
    return DistModel(layer, loader, loss, optimizer, strategy, input_spec=input_spec)
