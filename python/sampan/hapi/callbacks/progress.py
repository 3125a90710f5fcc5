"""Progress on the screen."""

from __future__ import annotations

import time

from ..progressbar import ProgressBar
from .base import Callback, is_first_process


class _Run:
    """One pass over the data: how far it is, and how the time was spent since the last line."""

    def __init__(self, steps, metrics, verbose):
        self.steps, self.metrics = steps, metrics
        self.bar = ProgressBar(num=steps, verbose=verbose)
        self.step = self.samples = 0
        self._forget()
        self._mark = time.time()

    def _forget(self):
        self.reading = self.computing = 0.0
        self._count = self._seen = 0

    def batch_begins(self):
        now = time.time()
        self.reading += now - self._mark
        self._mark = now

    def batch_ends(self, logs):
        now = time.time()
        self.computing += now - self._mark
        self._mark = now
        self.step += 1
        self._count += 1
        samples = (logs or {}).get("batch_size", 1)
        self.samples += samples
        self._seen += samples

    def show(self, logs, with_times):
        values = [(name, logs[name]) for name in self.metrics if name in logs]
        if with_times:
            count = max(self._count, 1)
            pace = max(self._seen, 1) / max(self.reading + self.computing, 1e-12)
            values += [
                ("avg_reader_cost", f"{self.reading / count:.5f} sec"),
                ("avg_batch_cost", f"{self.computing / count:.5f} sec"),
                ("ips", f"{pace:.5f} samples/sec"),
            ]
            self._forget()
        self.bar.update(self.step, values)

    def is_due(self, every):
        return self.step % every == 0 and (self.steps is None or self.step < self.steps)


class ProgBarLogger(Callback):
    """Shows step, loss and metrics every `log_freq` steps.

    `verbose`: 0 says nothing, 1 is a bar that moves, 2 a line each time, 3 also how long reading and computing took.
    """

    def __init__(self, log_freq: int = 1, verbose: int = 2):
        super().__init__()
        self.epochs = self.steps = None
        self.log_freq = log_freq
        self.verbose = verbose

    def _prints(self) -> bool:
        return bool(self.verbose) and is_first_process()

    def _batch_end(self, run: _Run, logs) -> None:
        run.batch_ends(logs)
        if self._prints() and run.is_due(self.log_freq):
            run.show(logs or {}, self.verbose == 3)

    def on_train_begin(self, logs=None):
        self.epochs = self.params["epochs"]
        if self._prints():
            print(
                "The loss value printed in the log is the current step, and the metric is the average value of "
                "previous steps."
            )

    def on_epoch_begin(self, epoch, logs=None):
        self.steps = self.params["steps"]
        if self._prints() and self.epochs:
            print(f"Epoch {epoch + 1}/{self.epochs}")
        self._train = _Run(self.steps, self.params["metrics"], self.verbose)

    def on_train_batch_begin(self, step, logs=None):
        self._train.batch_begins()

    def on_train_batch_end(self, step, logs=None):
        self._batch_end(self._train, logs)

    def on_epoch_end(self, epoch, logs=None):
        if self._prints() and self.steps is not None:
            self._train.show(logs or {}, self.verbose == 3)

    def on_eval_begin(self, logs=None):
        logs = logs or {}
        if self._prints():
            print("Eval begin...")
        self._eval = _Run(logs.get("steps"), logs.get("metrics", []), self.verbose)

    def on_eval_batch_begin(self, step, logs=None):
        self._eval.batch_begins()

    def on_eval_batch_end(self, step, logs=None):
        self._batch_end(self._eval, logs)

    def on_eval_end(self, logs=None):
        if self._prints() and self._eval.steps is not None:
            self._eval.show(logs or {}, self.verbose == 3)
            print(f"Eval samples: {self._eval.samples}")

    def on_predict_begin(self, logs=None):
        logs = logs or {}
        if self._prints():
            print("Predict begin...")
        self._predict = _Run(logs.get("steps"), logs.get("metrics", []), self.verbose)

    def on_predict_batch_begin(self, step, logs=None):
        self._predict.batch_begins()

    def on_predict_batch_end(self, step, logs=None):
        self._batch_end(self._predict, logs)

    def on_predict_end(self, logs=None):
        if self._prints():
            run = self._predict
            if run.step % self.log_freq != 0 or run.step == run.steps or self.verbose == 1:
                run.show(logs or {}, self.verbose == 3)
            print(f"Predict samples: {run.samples}")
