"""Training of a pipeline: micro-batches flow through the stages, one forward, one backward."""

from __future__ import annotations

from .... import amp, is_grad_enabled, nn, no_grad
from ...communication import ReduceOp
from ...objects import broadcast_object_list
from .messages import Neighbours
from .pipeline_layers import PipelineLayer


def _tensors(value) -> list:
    return [part for part in (value if isinstance(value, tuple) else (value,)) if part is not None]


class PipelineParallel(nn.Layer):
    """A `PipelineLayer` that trains. Each batch is cut into `accumulate_steps` micro-batches; a stage computes a few ahead,
    then one forward and one backward in turn, so it keeps as many as stages follow it, and all stages are busy."""

    def __init__(self, layers: PipelineLayer, hcg, strategy):
        super().__init__()
        self._layers, self._hcg = layers, hcg
        told = {"accumulate_steps": 1, "micro_batch_size": 1, **strategy.pipeline_configs}
        self.accumulate_steps, self.micro_batch_size = told["accumulate_steps"], told["micro_batch_size"]
        self._wire = Neighbours(hcg.get_pipe_parallel_group())
        self.stage_id, self.num_stages = self._wire.stage, self._wire.count
        # Processes that have the same stage and see other data.
        groups = hcg.get_data_parallel_group(), hcg.get_sharding_parallel_group()
        self._copies = [group._group for group in groups if group.nranks > 1]
        for group in self._copies:
            group.broadcast_all([*layers.parameters(), *layers.buffers()], group.ranks[0])

    def is_pipeline_first_stage(self, ignore_virtual=False) -> bool:
        """Does this process get the inputs?"""
        return self.stage_id == 0

    def is_pipeline_last_stage(self, ignore_virtual=False) -> bool:
        """Does this process compute the loss?"""
        return self.stage_id == self.num_stages - 1

    def forward(self, *inputs, **kwargs):
        raise RuntimeError(
            "(PreconditionNotMet) a pipeline has no forward of its own. Hint: model.train_batch(data, optimizer), or "
            "model.eval_batch(data)."
        )

    def train_batch(
        self, data, optimizer, lr_scheduler=None, scaler=None, loss_fn_idx=0, return_micro_batch_loss=False
    ):
        """Learns from a batch `[inputs, labels]`; gives its loss in every stage, or with `return_micro_batch_loss` the
        losses of all micro-batches."""
        if not is_grad_enabled():
            raise RuntimeError("(PreconditionNotMet) train_batch: gradients are switched off.")
        self._layers.train()
        losses = self._forward_backward(data, scaler, self._loss_index(loss_fn_idx))
        self._reduce_gradients()
        with amp.auto_cast(enable=False):
            if scaler is not None:
                scaler.step(optimizer)
                scaler.update()
            else:
                optimizer.step()
            optimizer.clear_grad()
        if lr_scheduler is not None:
            lr_scheduler.step()
        return self._told(losses, return_micro_batch_loss)

    @no_grad()
    def eval_batch(self, data, compute_loss=False, loss_fn_idx=0, return_host_tensor=False):
        """The outputs of this stage for each micro-batch, or with `compute_loss` the loss of the batch, in every stage."""
        self._layers.eval()
        self._loss_index(loss_fn_idx)
        found = []
        for step in range(self.accumulate_steps):
            output = self._layers(self._input(data, step))
            if not self.is_pipeline_last_stage():
                self._wire.send(output, self.stage_id + 1)
            elif compute_loss:
                output, _ = self._judge(output, data, step, loss_fn_idx)
            found.append(output)
        self._wire.finish()
        return self._told(found, False) if compute_loss else found

    def _loss_index(self, index: int) -> int:
        found = self._layers._loss_fn
        if not 0 <= index < len(found) or found[index] is None:
            raise ValueError(
                f"(InvalidArgument) pipeline: there is no loss function {index}. Hint: loss_fn of PipelineLayer."
            )
        return index

    def _judge(self, output, data, step: int, index: int) -> tuple:
        """The share of a micro-batch in each loss of the batch, and the one that is trained."""
        label = self._cut(data[1], step, "labels")
        losses = [
            loss_fn(output, label) / self.accumulate_steps for loss_fn in self._layers._loss_fn if loss_fn is not None
        ]
        return [loss.detach() for loss in losses], losses[index]

    def _forward_backward(self, data, scaler, index: int) -> list:
        steps, following = self.accumulate_steps, self.num_stages - 1 - self.stage_id
        ahead = min(following, steps)
        waiting, losses = [], []

        def forward(step: int) -> None:
            given = self._input(data, step)
            output = self._layers(given)
            if self.is_pipeline_last_stage():
                told, output = self._judge(output, data, step, index)
                losses.append(told)
                output = output if scaler is None else scaler.scale(output)
            else:
                self._wire.send(output, self.stage_id + 1)
            waiting.append((given, output))

        def backward() -> None:
            given, output = waiting.pop(0)
            if self.is_pipeline_last_stage():
                output.backward()
            else:
                self._backward_from(_tensors(output))
            if not self.is_pipeline_first_stage():
                grads = [None if part.stop_gradient else part.grad for part in _tensors(given)]
                self._wire.send(tuple(grads), self.stage_id - 1)

        for step in range(ahead):
            forward(step)
        for step in range(ahead, steps):
            forward(step)
            backward()
        for _ in range(ahead):
            backward()
        self._wire.finish()
        return losses

    def _backward_from(self, outputs: list) -> None:
        """Goes on with the gradients of what the next stage was given."""
        from .... import autograd

        grads = self._wire.receive(self.stage_id + 1)
        pairs = [(part, grad) for part, grad in zip(outputs, grads) if grad is not None and not part.stop_gradient]
        if pairs:
            autograd.backward([part for part, _ in pairs], [grad for _, grad in pairs])

    def _input(self, data, step: int):
        if self.is_pipeline_first_stage():
            return self._cut(data[0], step, "inputs")
        return self._wire.receive(self.stage_id - 1)

    def _cut(self, value, step: int, what: str):
        """A micro-batch of a tensor, a tuple of tensors, or a list that has one for each."""
        if isinstance(value, tuple):
            return tuple(self._cut(part, step, what) for part in value)
        if isinstance(value, list):
            if len(value) != self.accumulate_steps:
                raise ValueError(
                    f"(InvalidArgument) pipeline: {len(value)} micro-batches of {what}, expected {self.accumulate_steps}."
                )
            return value[step].detach()
        if value.shape[0] != self.micro_batch_size * self.accumulate_steps:
            raise ValueError(
                f"(InvalidArgument) pipeline: a batch has micro_batch_size {self.micro_batch_size} * accumulate_steps "
                f"{self.accumulate_steps} samples, {what} have {value.shape[0]}. Hint: strategy.pipeline_configs."
            )
        return value[step * self.micro_batch_size : (step + 1) * self.micro_batch_size].detach()

    def _reduce_gradients(self) -> None:
        self._layers.allreduce_shared_weight_gradients()
        tasks = [
            group.all_reduce(parameter.grad, ReduceOp.AVG, False)
            for group in self._copies
            for parameter in self._layers.parameters()
            if parameter.grad is not None
        ]
        for task in tasks:
            task.wait()

    def _told(self, losses: list, each: bool):
        """The losses of the last stage, in all stages: of each micro-batch, or of the whole batch."""
        from .... import to_tensor

        told: list = []
        if self.is_pipeline_last_stage():
            told = [[[loss.dtype.name, loss.item()] for loss in step] for step in losses]
        if self.num_stages > 1:
            pipe = self._hcg.get_pipe_parallel_group()
            broadcast_object_list(told, pipe.ranks[-1], pipe)
        found = []
        for parts in zip(*told):
            values = to_tensor([value for _, value in parts], dtype=parts[0][0])
            found.append(values if each else values.sum())
        return found[0] if len(found) == 1 else found

    def state_dict(self, *args, **kwargs):
        return self._layers.state_dict(*args, **kwargs)

    def set_state_dict(self, state_dict, *args, **kwargs):
        return self._layers.set_state_dict(state_dict, *args, **kwargs)

    set_dict = load_dict = set_state_dict
