"""`Model`: a network with optimizer, loss and metrics."""

from __future__ import annotations

import inspect
import warnings

from .. import _core, framework
from ..static import InputSpec
from . import data as reading
from . import model_files
from .callbacks import CallbackList, EarlyStopping, config_callbacks
from .callbacks.base import is_first_process
from .data import as_list, tensors
from .precision import Precision
from .replicas import Replicas

__all__ = ["Model"]


class Model:
    """A network that can be trained, evaluated, used, saved and loaded in one call each.

    `inputs` and `labels` are `InputSpec`s that say how many of a batch's parts are which; without them the arguments of
    `forward` are counted as inputs, and the rest are labels.

    >>> import sampan
    >>> model = sampan.Model(sampan.nn.Linear(2, 1))
    >>> adam = sampan.optimizer.Adam(parameters=model.parameters())
    >>> model.prepare(adam, sampan.nn.MSELoss())
    >>> batches = [(sampan.ones([4, 2]), sampan.zeros([4, 1]))] * 3
    >>> model.fit(batches, epochs=2, verbose=0)
    """

    def __init__(self, network, inputs=None, labels=None):
        self.mode = "train"
        self.network = network
        self.stop_training = False
        self._optimizer = self._loss = self._scaler = self._graphed = None
        self._metrics = []
        self._precision = Precision()
        self._replicas = Replicas()
        self._accumulate = 1
        self._remaining = None
        # Were the shapes of the inputs taken from a batch?
        self._inferred = inputs is None
        self._inputs = self._specs_of_forward() if inputs is None else self._check_specs(inputs, "inputs")
        self._labels = None if labels is None else self._check_specs(labels, "labels")

    # ---- what is trained, and how

    def prepare(self, optimizer=None, loss=None, metrics=None, amp_configs=None, *, cuda_graph=False, capture=False) -> None:
        """Sets optimizer, loss (a layer or a function of outputs and labels), metrics and mixed precision.

        `amp_configs` is a level ('O1', 'O2') or a dict with `level`, `init_loss_scaling`, `custom_white_list` and the
        like. With `cuda_graph` a step on a GPU is recorded at the third batch and then started as a whole; see
        `sampan.device.cuda.cuda_graph`. With `capture` that is done on the CPU too, with the same bits; see
        `sampan.jit.to_static`.
        """
        if loss is not None and not callable(loss):
            raise TypeError(f"(InvalidType) prepare: loss is a Layer or a function, received {type(loss).__name__}.")
        for metric in as_list(metrics):
            from ..metric import Metric

            if not isinstance(metric, Metric):
                raise TypeError(f"(InvalidType) prepare: {type(metric).__name__} is not sub class of Metric.")
        self._loss, self._metrics = loss, as_list(metrics)
        self._precision, self._scaler = Precision(amp_configs), None
        self.network, self._optimizer = self._precision.decorate(self.network, optimizer)
        self._graphed = None
        if cuda_graph:
            from ..device.cuda import cuda_graph as graphed

            self._graphed = graphed(self._learn)
        if capture:
            from ..jit.steps import Steps

            steps = Steps(self._learn)
            self._graphed = lambda inputs, labels, update: steps.call((tensors(inputs), tensors(labels), update), {})

    def parameters(self, *args, **kwargs) -> list:
        """The parameters of the network."""
        return self.network.parameters(*args, **kwargs)

    # ---- one batch

    def train_batch(self, inputs, labels=None, update=True):
        """Learns from one batch; gives the losses, and the metrics if there are any. Without `update` gradients add
        up."""
        if self._optimizer is None:
            raise RuntimeError(
                "(PreconditionNotMet) Model: there is no optimizer. Hint: call model.prepare(optimizer, loss) first."
            )
        if self._loss is None:
            raise RuntimeError(
                "(PreconditionNotMet) Model: there is no loss to train by. Hint: call model.prepare(optimizer, loss)."
            )
        self.network.train()
        self.mode = "train"
        if self._graphed is not None and self._replicas.count == 1:
            # As they come: the record has places of its own for them.
            inputs, labels = as_list(inputs), as_list(labels)
            self._learn_shapes(inputs)
            losses, outputs = self._graphed(inputs, labels, update)
        else:
            inputs, labels = tensors(inputs), tensors(labels)
            self._learn_shapes(inputs)
            losses, outputs = self._learn(inputs, labels, update)
        return self._report(losses, outputs, tensors(labels))

    def _learn(self, inputs, labels, update):
        """A step: losses and outputs."""
        with self._precision.cast():
            outputs = as_list(self._replicas.trained(self.network)(*inputs))
        losses = as_list(self._loss(*outputs, *labels))
        total = losses[0] if len(losses) == 1 else sum(losses[1:], losses[0])
        if self._precision.is_mixed:
            if self._scaler is None:
                self._scaler = self._precision.scaler()
            scaled = self._scaler.scale(total)
            scaled.backward()
            if update:
                self._scaler.minimize(self._optimizer, scaled)
        else:
            total.backward()
            if update:
                self._optimizer.step()
        if update:
            self.network.clear_gradients()
        return losses, outputs

    def eval_batch(self, inputs, labels=None):
        """Loss and metrics of one batch, without learning from it."""
        with framework.no_grad():
            inputs, labels = tensors(inputs), tensors(labels)
            outputs = self._forward(inputs, "eval")
            losses = as_list(self._loss(*outputs, *labels)) if self._loss else []
            return self._report(losses, outputs, labels)

    def predict_batch(self, inputs) -> list:
        """The outputs for one batch, as NumPy arrays."""
        return [_numpy(output) for output in self._outputs(inputs)]

    def _outputs(self, inputs) -> list:
        with framework.no_grad():
            return self._forward(tensors(inputs), "test")

    def _forward(self, inputs, mode: str) -> list:
        self.network.eval()
        self.mode = mode
        self._learn_shapes(inputs)
        return as_list(self.network(*inputs))

    def _report(self, losses, outputs, labels):
        metrics = []
        with framework.no_grad():
            losses = self._replicas.mean(losses)
            if self._metrics or self.mode == "eval":
                outputs, labels = self._replicas.together(outputs, labels)
            for metric in self._metrics:
                computed = as_list(metric.compute(*outputs, *labels))
                metrics.append(metric.update(*[_numpy(part) for part in computed]))
        losses = [_numpy(loss) for loss in losses]
        if self._loss and metrics:
            return losses, metrics
        return losses if self._loss else metrics

    # ---- whole runs

    def fit(
        self,
        train_data=None,
        eval_data=None,
        batch_size=1,
        epochs=1,
        eval_freq=1,
        log_freq=10,
        save_dir=None,
        save_freq=1,
        verbose=2,
        drop_last=False,
        shuffle=True,
        num_workers=0,
        callbacks=None,
        accumulate_grad_batches=1,
        num_iters=None,
    ) -> None:
        """Trains on a dataset, a loader or any iterable of batches, and evaluates every `eval_freq` epochs.

        A dataset is shuffled anew in each epoch, in an order that `sampan.seed` decides, unless `shuffle` is False.
        `batch_size` may be two numbers, for training and evaluation. `accumulate_grad_batches` batches make one step.
        `num_iters` is the number of batches after which training ends, whatever `epochs` says.
        """
        if train_data is None:
            raise ValueError("(InvalidArgument) fit: train_data must be given.")
        train_size, eval_size = self._batch_sizes(batch_size)
        loader = reading.to_loader(train_data, train_size, shuffle, drop_last, num_workers)
        eval_loader = None if eval_data is None else reading.to_loader(eval_data, eval_size, num_workers=num_workers)
        self._accumulate = accumulate_grad_batches
        self.stop_training = False
        steps = reading.length(loader)
        self._remaining = _checked(num_iters)
        if num_iters is not None and steps:
            epochs = num_iters // steps + 1
            steps = min(num_iters, steps)
        told = config_callbacks(
            callbacks,
            model=self,
            batch_size=train_size,
            epochs=epochs,
            steps=steps,
            log_freq=log_freq,
            save_freq=save_freq,
            save_dir=save_dir,
            verbose=verbose,
            metrics=self._metrics_name(),
        )
        if eval_loader is None and any(isinstance(c, EarlyStopping) for c in told):
            warnings.warn("EarlyStopping needs validation data.", stacklevel=2)
        logs = {}
        told.on_begin("train")
        for epoch in range(epochs):
            told.on_epoch_begin(epoch)
            logs = self._run_one_epoch(loader, told, "train")
            told.on_epoch_end(epoch, logs)
            if eval_loader is not None and epoch % eval_freq == 0:
                # The limit is on batches of training.
                remaining, self._remaining = self._remaining, None
                self._evaluate(eval_loader, told, reading.length(eval_loader), fitting=True)
                self._remaining = remaining
            if self.stop_training:
                break
        told.on_end("train", logs)

    def evaluate(
        self, eval_data, batch_size=1, log_freq=10, verbose=2, num_workers=0, callbacks=None, num_iters=None
    ) -> dict:
        """Loss and metrics of the model on a dataset, a loader or any iterable of batches. Several processes share a dataset out, and
        all call it; what a loader of one's own gives is judged by the process that reads it."""
        loader = reading.to_loader(eval_data, batch_size, num_workers=num_workers)
        told = config_callbacks(
            callbacks,
            model=self,
            batch_size=batch_size,
            log_freq=log_freq,
            verbose=verbose,
            metrics=self._metrics_name(),
        )
        steps = reading.length(loader)
        self._remaining = _checked(num_iters)
        if num_iters is not None and steps:
            steps = min(num_iters, steps)
        stopped = self.stop_training
        logs = self._evaluate(loader, told, steps)
        self.stop_training = stopped
        return {name: logs[name] for name in self._metrics_name() if name in logs}

    def predict(self, test_data, batch_size=1, num_workers=0, stack_outputs=False, verbose=1, callbacks=None) -> list:
        """The outputs for all data: for each output of the network the list of its batches, or one array if stacked.
        Several processes share a dataset out, all call it, and each gets the outputs of all; a loader of one's own, unless its batch
        sampler is a `DistributedBatchSampler`, is read by the process that calls."""
        loader = reading.to_loader(test_data, batch_size, num_workers=num_workers)
        told = config_callbacks(callbacks, model=self, batch_size=batch_size, verbose=verbose)
        told.on_begin("predict", {"steps": reading.length(loader)})
        self._remaining = None
        batches = []
        logs = self._run_one_epoch(loader, told, "predict", batches)
        outputs = [list(batch) for batch in zip(*batches)]
        if stack_outputs:
            import numpy

            outputs = [numpy.vstack(output) for output in outputs]
        told.on_end("predict", logs)
        return outputs

    def _evaluate(self, loader, told: CallbackList, steps, fitting: bool = False) -> dict:
        told.on_begin("eval", {"steps": steps, "metrics": self._metrics_name()})
        logs = self._run_one_epoch(loader, told, "eval", fitting=fitting)
        told.on_end("eval", logs)
        return logs

    def _run_one_epoch(
        self, loader, told: CallbackList, mode: str, predictions: list | None = None, fitting: bool = False
    ) -> dict:
        logs: dict = {}
        self._replicas.begin(loader, mode, self.network, fitting)
        # Whether a batch is the last matters only for gradients that are still to be used; to know it, one is read
        # ahead.
        ahead = mode == "train" and self._accumulate > 1
        batches = reading.with_last(loader) if ahead else ((batch, False) for batch in loader)
        for step, (batch, is_last) in enumerate(batches):
            parts = reading.flatten(batch)
            told.on_batch_begin(mode, step, logs)
            if mode == "predict":
                outputs = self._outputs(parts[: len(self._inputs)] if self._inputs else parts)
                predictions.append([_numpy(output) for output in self._replicas.together(outputs, [])[0]])
            else:
                count = len(self._inputs) if self._inputs else len(parts) - 1
                inputs, labels = parts[:count], parts[count:]
                if mode == "train":
                    is_last = is_last or (ahead and self._remaining == 1)
                    results = self.train_batch(inputs, labels, update=is_last or (step + 1) % self._accumulate == 0)
                else:
                    results = self.eval_batch(inputs, labels)
                self._note(logs, results)
            logs["step"] = step
            logs["batch_size"] = self._replicas.batch_size(mode, reading.samples_in(parts))
            told.on_batch_end(mode, step, logs)
            if self._remaining is not None:
                self._remaining -= 1
                if self._remaining <= 0:
                    self._remaining = None
                    self.stop_training = True
                    break
        self._replicas.end()
        for metric in self._metrics:
            metric.reset()
        return logs

    def _note(self, logs: dict, results) -> None:
        values = []
        if self._loss:
            losses = results[0] if self._metrics else results
            values.append([float(loss.item()) for loss in losses])
        for metric in self._metrics:
            values.extend(as_list(metric.accumulate()))
        names = self._metrics_name()
        if len(names) != len(values):
            raise ValueError(f"(InvalidArgument) Model: metrics have the names {names}, but gave {len(values)} values.")
        logs.update(zip(names, values))

    def _metrics_name(self) -> list[str]:
        names = ["loss"] if self._loss else []
        for metric in self._metrics:
            names.extend(as_list(metric.name()))
        return names

    # ---- files and tables

    def save(self, path: str, training: bool = True) -> None:
        """Writes `path.pdparams` and, for training, what the optimizer remembers as `path.pdopt`; or, with
        `training=False`, the network for `jit.load`."""
        if not path or path.endswith(("/", "\\")):
            raise ValueError(f"(InvalidArgument) Model.save: path is 'folder/name' or 'name', received {path!r}.")
        if not is_first_process():
            return
        if training:
            model_files.save_training(self, path)
        else:
            model_files.save_inference(self, path)

    def load(self, path: str, skip_mismatch: bool = False, reset_optimizer: bool = False) -> None:
        """Takes over what `save` wrote. Names or shapes that do not fit are an error, or left out with
        `skip_mismatch`."""
        model_files.load(self, path, skip_mismatch, reset_optimizer)

    def summary(self, input_size=None, dtype=None) -> dict:
        """Prints the layers of the network; see `sampan.summary`."""
        from .model_summary import summary

        if input_size is None:
            if not self._inputs or (
                self._inferred and any(len(s.shape) == 1 and s.shape[0] == -1 for s in self._inputs)
            ):
                raise ValueError("(InvalidArgument) Model.summary: 'input_size' or the model's 'inputs' must be set.")
            input_size = self._inputs
        return summary(self.network, input_size, dtypes=dtype)

    # ---- inputs

    def _specs_of_forward(self) -> list[InputSpec]:
        """A place for each argument of `forward`; what a built-in layer takes is not told, but for one input."""
        try:
            parameters = inspect.signature(self.network.forward).parameters.values()
        except (TypeError, ValueError):
            parameters = ()
        plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
        names = [p.name for p in parameters if p.kind in plain]
        return [InputSpec([None], "float32", name) for name in names or ["input"]]

    def _check_specs(self, specs, what: str) -> list[InputSpec]:
        if isinstance(specs, dict):
            names = [spec.name for spec in self._specs_of_forward()]
            specs = [specs[name] for name in names if name in specs] if what == "inputs" else list(specs.values())
        specs = as_list(specs)
        for i, spec in enumerate(specs):
            if not isinstance(spec, InputSpec):
                raise TypeError(f"(InvalidType) Model: {what} are InputSpecs, received {type(spec).__name__}.")
            if spec.name is None:
                raise ValueError(
                    f"(InvalidArgument) Model: {what}[{i}] has no name: {spec}. Hint: InputSpec(shape, dtype, name)."
                )
        return specs

    def _learn_shapes(self, inputs) -> None:
        if self._inferred and (not self._inputs or len(self._inputs) == len(inputs)):
            names = [spec.name for spec in self._inputs]
            self._inputs = [InputSpec(list(t.shape), t.dtype, name) for t, name in zip(inputs, names)]

    @staticmethod
    def _batch_sizes(batch_size) -> tuple[int, int]:
        if isinstance(batch_size, (tuple, list)):
            if len(batch_size) != 2:
                raise ValueError(
                    f"(InvalidArgument) fit: batch_size is one number or two, for training and evaluation, received "
                    f"{batch_size}."
                )
            return tuple(batch_size)
        return batch_size, batch_size


def _checked(num_iters):
    if num_iters is not None and num_iters <= 0:
        raise ValueError(f"(InvalidArgument) num_iters must be greater than 0, received {num_iters}.")
    return num_iters


def _numpy(value):
    if not isinstance(value, _core.Tensor):
        return value
    # NumPy has no bfloat16.
    return (value.astype("float32") if "bfloat16" in str(value.dtype) else value).numpy()
