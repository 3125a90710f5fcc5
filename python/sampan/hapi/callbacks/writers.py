"""Loss and metrics written for the tools that draw them."""

from __future__ import annotations

import warnings

from .base import Callback, first_number, is_first_process


class _Writer(Callback):
    """Follows a run and gives its figures away: those of training by step, those of an evaluation by epoch."""

    def __init__(self):
        super().__init__()
        self.epochs = self.steps = None
        self.epoch = 0
        self.train_step = 0
        self._is_fit = False
        self.eval_metrics = []

    def on_train_begin(self, logs=None):
        self.epochs = self.params["epochs"]
        self.train_metrics = self.params["metrics"]
        self._is_fit = True
        self.train_step = 0

    def on_epoch_begin(self, epoch, logs=None):
        self.steps = self.params["steps"]
        self.epoch = epoch

    def on_train_batch_end(self, step, logs=None):
        self.train_step += 1
        self._give("train", self.train_metrics, logs, self.train_step)

    def on_eval_begin(self, logs=None):
        self.eval_metrics = (logs or {}).get("metrics", [])

    def on_eval_end(self, logs=None):
        self._give("eval", self.eval_metrics, logs, self.epoch)
        if not self._is_fit:
            self._close()

    def on_train_end(self, logs=None):
        self._is_fit = False
        self._close()

    def _give(self, mode, names, logs, step) -> None:
        if not is_first_process():
            return
        found = {name: first_number(logs[name]) for name in names if name in (logs or {})}
        self._write(mode, {name: value for name, value in found.items() if value is not None}, step)

    def _write(self, mode: str, figures: dict, step: int) -> None:
        raise NotImplementedError

    def _close(self) -> None:
        pass


class VisualDL(_Writer):
    """Writes loss and metrics for VisualDL into `log_dir`; look at them with `visualdl --logdir log_dir`."""

    def __init__(self, log_dir: str):
        super().__init__()
        self.log_dir = log_dir
        self.writer = None

    def _write(self, mode, figures, step):
        if self.writer is None:
            from ...utils import try_import

            self.writer = try_import("visualdl").LogWriter(self.log_dir)
        for name, value in figures.items():
            self.writer.add_scalar(tag=f"{mode}/{name}", step=step, value=value)

    def _close(self):
        if self.writer is not None:
            self.writer.close()
            self.writer = None


class WandbCallback(_Writer):
    """Sends loss and metrics to Weights & Biases; the arguments are those of `wandb.init`."""

    def __init__(self, project=None, entity=None, name=None, dir=None, mode=None, job_type=None, **kwargs):
        from ...utils import try_import

        super().__init__()
        self.wandb = try_import("wandb", "WandbCallback needs the package wandb. Hint: pip install wandb.")
        self.wandb_args = {
            "project": project,
            "name": name,
            "entity": entity,
            "dir": dir,
            "mode": mode,
            "job_type": job_type,
            **kwargs,
        }
        self._run = None
        _ = self.run

    @property
    def run(self):
        """The run of wandb, begun when it is first needed."""
        if self._run is None and is_first_process():
            if self.wandb.run is not None:
                warnings.warn(
                    "A wandb run is in progress and will be used. Hint: call wandb.finish() before for a new one.",
                    stacklevel=2,
                )
                self._run = self.wandb.run
            else:
                self._run = self.wandb.init(**self.wandb_args)
        return self._run

    def on_train_begin(self, logs=None):
        super().on_train_begin(logs)
        if is_first_process():
            self.run.define_metric("train/step")
            self.run.define_metric("train/*", step_metric="train/step")
            self.run.define_metric("epoch")
            self.run.define_metric("eval/*", step_metric="epoch")

    def _write(self, mode, figures, step):
        self.run.log(
            {"train/step" if mode == "train" else "epoch": step} | {f"{mode}/{k}": v for k, v in figures.items()}
        )

    def _close(self):
        if self._run is not None:
            self._run.finish()
            self._run = None
