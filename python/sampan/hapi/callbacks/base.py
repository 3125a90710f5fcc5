"""`Callback`, which people subclass, and the list of those that take part in a run."""

from __future__ import annotations


def is_first_process() -> bool:
    """Of several processes that train together, only one prints and writes files."""
    from ...distributed import get_rank

    return get_rank() == 0


class Callback:
    """Is told what happens while a `Model` runs; override what you need. `self.model.stop_training = True` ends `fit`.

    `self.params` has `batch_size`, `epochs`, `steps`, `verbose` and `metrics` (the names, `loss` among them).
    `logs` has the loss, as a list of floats, each metric by its name, `step` and `batch_size`.

    >>> import sampan
    >>> class Losses(sampan.callbacks.Callback):
    ...     def on_train_begin(self, logs=None):
    ...         self.losses = []
    ...     def on_train_batch_end(self, step, logs=None):
    ...         self.losses.append(logs["loss"][0])
    """

    def __init__(self):
        self.model = None
        self.params = {}

    def set_params(self, params: dict) -> None:
        """Takes what is known before the run."""
        self.params = params

    def set_model(self, model) -> None:
        """Takes the model."""
        self.model = model

    def on_train_begin(self, logs=None):
        """Before the first epoch."""

    def on_train_end(self, logs=None):
        """After the last epoch."""

    def on_eval_begin(self, logs=None):
        """Before an evaluation; `logs` has `steps` and `metrics`."""

    def on_eval_end(self, logs=None):
        """After an evaluation."""

    def on_predict_begin(self, logs=None):
        """Before a prediction; `logs` has `steps`."""

    def on_predict_end(self, logs=None):
        """After a prediction."""

    def on_epoch_begin(self, epoch, logs=None):
        """Before an epoch, counted from 0."""

    def on_epoch_end(self, epoch, logs=None):
        """After an epoch."""

    def on_train_batch_begin(self, step, logs=None):
        """Before a batch of training, counted from 0."""

    def on_train_batch_end(self, step, logs=None):
        """After a batch of training."""

    def on_eval_batch_begin(self, step, logs=None):
        """Before a batch of an evaluation."""

    def on_eval_batch_end(self, step, logs=None):
        """After a batch of an evaluation."""

    def on_predict_batch_begin(self, step, logs=None):
        """Before a batch of a prediction."""

    def on_predict_batch_end(self, step, logs=None):
        """After a batch of a prediction."""


class CallbackList:
    """Callbacks that are told the same, in order."""

    def __init__(self, callbacks):
        self.callbacks = list(callbacks)

    def append(self, callback: Callback) -> None:
        """Adds one at the end."""
        self.callbacks.append(callback)

    def __iter__(self):
        return iter(self.callbacks)

    def set_params(self, params: dict) -> None:
        """Tells all what is known before the run."""
        for callback in self.callbacks:
            callback.set_params(params)

    def set_model(self, model) -> None:
        """Tells all the model."""
        for callback in self.callbacks:
            callback.set_model(model)

    def _tell(self, event: str, *what) -> None:
        for callback in self.callbacks:
            getattr(callback, event)(*what)

    def on_begin(self, mode: str, logs=None) -> None:
        """`on_train_begin` and the like."""
        self._tell(f"on_{mode}_begin", logs)

    def on_end(self, mode: str, logs=None) -> None:
        """`on_train_end` and the like."""
        self._tell(f"on_{mode}_end", logs)

    def on_epoch_begin(self, epoch: int, logs=None) -> None:
        """Before an epoch."""
        self._tell("on_epoch_begin", epoch, logs)

    def on_epoch_end(self, epoch: int, logs=None) -> None:
        """After an epoch."""
        self._tell("on_epoch_end", epoch, logs)

    def on_batch_begin(self, mode: str, step: int, logs=None) -> None:
        """`on_train_batch_begin` and the like."""
        self._tell(f"on_{mode}_batch_begin", step, logs)

    def on_batch_end(self, mode: str, step: int, logs=None) -> None:
        """`on_train_batch_end` and the like."""
        self._tell(f"on_{mode}_batch_end", step, logs)


def config_callbacks(
    callbacks=None,
    model=None,
    batch_size=None,
    epochs=None,
    steps=None,
    log_freq=2,
    verbose=2,
    save_freq=1,
    save_dir=None,
    metrics=None,
    mode="train",
) -> CallbackList:
    """The user's callbacks and those that every run has: a progress bar, checkpoints, the schedule of the learning
    rate."""
    from .checkpoint import EarlyStopping, ModelCheckpoint
    from .progress import ProgBarLogger
    from .schedule import LRScheduler

    given = callbacks or []
    taking_part = list(given) if isinstance(given, (list, tuple, CallbackList)) else [given]
    for callback in taking_part:
        if not hasattr(callback, "set_model"):
            raise TypeError(
                f"(InvalidType) callbacks: expected callbacks, received {type(callback).__name__}. Hint: subclass "
                "sampan.callbacks.Callback and pass an instance."
            )

    def missing(kind):
        return not any(isinstance(c, kind) for c in taking_part)

    if verbose and missing(ProgBarLogger):
        taking_part.insert(0, ProgBarLogger(log_freq, verbose=verbose))
    if missing(ModelCheckpoint):
        taking_part.append(ModelCheckpoint(save_freq, save_dir))
    for callback in taking_part:
        if isinstance(callback, EarlyStopping):
            callback.save_dir = save_dir
    if missing(LRScheduler):
        taking_part.append(LRScheduler())

    made = CallbackList(taking_part)
    made.set_model(model)
    names = [] if mode == "test" else metrics or []
    made.set_params({"batch_size": batch_size, "epochs": epochs, "steps": steps, "verbose": verbose, "metrics": names})
    return made


def first_number(value):
    """What a log holds under a name as one number: the first of a list; None if it is none."""
    import numbers

    if isinstance(value, (list, tuple)):
        value = value[0] if value else None
    if isinstance(value, numbers.Number):
        return value
    return value.item() if getattr(value, "size", 0) == 1 and hasattr(value, "item") else None
