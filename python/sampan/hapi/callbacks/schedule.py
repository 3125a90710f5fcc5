"""The learning rate while training goes on."""

from __future__ import annotations

import warnings

from .base import Callback, first_number, is_first_process


class LRScheduler(Callback):
    """Moves the learning-rate schedule of the optimizer on after each step, or each epoch."""

    def __init__(self, by_step: bool = True, by_epoch: bool = False):
        super().__init__()
        if by_step and by_epoch:
            raise ValueError("(InvalidArgument) LRScheduler: by_step option is mutually exclusive with by_epoch.")
        self.by_step, self.by_epoch = by_step, by_epoch

    def _step(self) -> None:
        from ...optimizer.lr import LRScheduler as Schedule

        schedule = getattr(self.model._optimizer, "_learning_rate", None)
        if isinstance(schedule, Schedule):
            schedule.step()

    def on_epoch_end(self, epoch, logs=None):
        if self.by_epoch:
            self._step()

    def on_train_batch_end(self, step, logs=None):
        if self.by_step:
            self._step()


class ReduceLROnPlateau(Callback):
    """Multiplies the learning rate by `factor` when the monitored figure has not become better for `patience`
    evaluations.

    After a reduction `cooldown` evaluations pass before counting begins anew; `min_lr` is the end. The optimizer has a
    plain learning rate, no schedule.
    """

    def __init__(
        self, monitor="loss", factor=0.1, patience=10, verbose=1, mode="auto", min_delta=1e-4, cooldown=0, min_lr=0
    ):
        super().__init__()
        if factor >= 1.0:
            raise ValueError(
                f"(InvalidArgument) ReduceLROnPlateau does not support a factor >= 1.0, received {factor}."
            )
        if mode not in ("auto", "min", "max"):
            warnings.warn(f"Learning rate reduction mode {mode} is unknown, fallback to auto mode.", stacklevel=2)
            mode = "auto"
        self.monitor = monitor
        self.factor = factor
        self.patience = patience
        self.verbose = verbose
        self.mode = mode
        self.min_delta = min_delta
        self.cooldown = cooldown
        self.min_lr = min_lr
        self.epoch = 0
        self._upwards = mode == "max" or (mode == "auto" and "acc" in monitor)
        self._reset()

    def _reset(self) -> None:
        self.best = float("-inf") if self._upwards else float("inf")
        self.cooldown_counter = self.wait = 0

    def monitor_op(self, a, b) -> bool:
        """Is `a` better than `b`, and not only a little?"""
        return a > b + self.min_delta if self._upwards else a < b - self.min_delta

    def in_cooldown(self) -> bool:
        """Was the learning rate reduced a short while ago?"""
        return self.cooldown_counter > 0

    def on_train_begin(self, logs=None):
        self._reset()

    def on_eval_end(self, logs=None):
        if not logs or self.monitor not in logs:
            warnings.warn("Monitor of ReduceLROnPlateau should be loss or metric name.", stacklevel=2)
            return
        optimizer = self.model._optimizer
        rate = getattr(optimizer, "_learning_rate", None)
        if not isinstance(rate, (int, float)):
            warnings.warn(
                f"ReduceLROnPlateau expected a learning rate that is a float, received {type(rate).__name__}.",
                stacklevel=2,
            )
            return
        current = first_number(logs[self.monitor])
        if current is None:
            return
        if self.in_cooldown():
            self.cooldown_counter -= 1
            self.wait = 0
        if self.monitor_op(current, self.best):
            self.best = current
            self.wait = 0
        elif not self.in_cooldown():
            self.wait += 1
            if self.wait >= self.patience:
                self._reduce(optimizer)
        self.epoch += 1

    def _reduce(self, optimizer) -> None:
        old = optimizer.get_lr()
        if old <= self.min_lr:
            return
        new = max(old * self.factor, self.min_lr)
        optimizer.set_lr(new)
        if self.verbose > 0 and is_first_process():
            print(f"\nEpoch {self.epoch + 1}: ReduceLROnPlateau reducing learning rate to {new}.")
        self.cooldown_counter = self.cooldown
        self.wait = 0
