"""Files written while training goes on, and its early end."""

from __future__ import annotations

import os
import warnings

from .base import Callback, first_number, is_first_process


class ModelCheckpoint(Callback):
    """Saves the model and the optimizer every `save_freq` epochs as `save_dir/EPOCH`, and at the end as
    `save_dir/final`."""

    def __init__(self, save_freq: int = 1, save_dir: str | None = None):
        super().__init__()
        self.save_freq = save_freq
        self.save_dir = save_dir

    def _save(self, name) -> None:
        if self.model and self.save_dir and is_first_process():
            path = f"{self.save_dir}/{name}"
            print(f"save checkpoint at {os.path.abspath(path)}")
            self.model.save(path)

    def on_epoch_end(self, epoch, logs=None):
        if epoch % self.save_freq == 0:
            self._save(epoch)

    def on_train_end(self, logs=None):
        self._save("final")


class EarlyStopping(Callback):
    """Ends `fit` when the monitored figure of the evaluations has not become better for `patience` of them.

    `mode` says what better is: `min`, `max`, or `auto`, which is `max` for names with `acc`. A change below `min_delta`
    is none, and with a `baseline` the figure must beat that first. The best model is saved as `best_model` in
    `save_dir` of `fit`.
    """

    def __init__(
        self, monitor="loss", mode="auto", patience=0, verbose=1, min_delta=0, baseline=None, save_best_model=True
    ):
        super().__init__()
        self.monitor = monitor
        self.patience = patience
        self.verbose = verbose
        self.baseline = baseline
        self.wait_epoch = 0
        self.stopped_epoch = 0
        self.best_weights = None
        self.save_best_model = save_best_model
        self.save_dir = None
        if mode not in ("auto", "min", "max"):
            warnings.warn(f"EarlyStopping mode {mode} is unknown, fallback to auto mode.", stacklevel=2)
            mode = "auto"
        self._upwards = mode == "max" or (mode == "auto" and "acc" in monitor)
        self.min_delta = abs(min_delta) if self._upwards else -abs(min_delta)
        self._forget()

    def _forget(self) -> None:
        worst = float("-inf") if self._upwards else float("inf")
        self.best_value = worst if self.baseline is None else self.baseline

    def monitor_op(self, a, b) -> bool:
        """Is `a` better than `b`?"""
        return a > b if self._upwards else a < b

    def on_train_begin(self, logs=None):
        self.wait_epoch = 0
        self._forget()

    def on_eval_end(self, logs=None):
        if not logs or self.monitor not in logs:
            warnings.warn("Monitor of EarlyStopping should be loss or metric name.", stacklevel=2)
            return
        current = first_number(logs[self.monitor])
        if current is None:
            return
        keeps = self.save_best_model and self.save_dir is not None
        best = os.path.join(self.save_dir, "best_model") if keeps else None
        if self.monitor_op(current - self.min_delta, self.best_value):
            self.best_value = current
            self.wait_epoch = 0
            if keeps:
                self.model.save(best)
        else:
            self.wait_epoch += 1
        if self.wait_epoch >= self.patience:
            self.model.stop_training = True
            if self.verbose > 0:
                print(f"Epoch {self.stopped_epoch + 1}: Early stopping.")
                if keeps:
                    print(f"Best checkpoint has been saved at {os.path.abspath(best)}")
        self.stopped_epoch += 1
