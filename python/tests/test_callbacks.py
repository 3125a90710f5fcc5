"""Callbacks: what they are told, and what the built-in ones do."""

import os
import sys
import types
import warnings

import numpy as np
import pytest

import sampan
from sampan import callbacks, nn
from sampan.hapi.progressbar import ProgressBar


def batches(count=3):
    rng = np.random.RandomState(0)
    return [(rng.rand(4, 3).astype("float32"), rng.rand(4, 1).astype("float32")) for _ in range(count)]


def model(learning_rate=0.1):
    made = sampan.Model(nn.Linear(3, 1))
    made.prepare(sampan.optimizer.SGD(learning_rate, parameters=made.parameters()), nn.MSELoss())
    return made


class Diary(callbacks.Callback):
    """Notes every event."""

    def __init__(self):
        super().__init__()
        self.events = []

    def __getattribute__(self, name):
        if name.startswith("on_"):
            return lambda *args: self.events.append((name, *args[:-1], dict(args[-1] or {})))
        return super().__getattribute__(name)


def test_what_is_told_and_when():
    diary = Diary()
    trained = model()
    trained.fit(batches(2), batches(1), epochs=1, verbose=0, callbacks=diary)
    names = [event[0] for event in diary.events]
    train, evaluate = (
        ["on_train_batch_begin", "on_train_batch_end"],
        ["on_eval_begin", "on_eval_batch_begin", "on_eval_batch_end", "on_eval_end"],
    )
    assert names == ["on_train_begin", "on_epoch_begin", *train, *train, "on_epoch_end", *evaluate, "on_train_end"]
    assert diary.model is trained
    assert diary.params == {"batch_size": 1, "epochs": 1, "steps": 2, "verbose": 0, "metrics": ["loss"]}
    by_name = {event[0]: event for event in diary.events}
    _, step, logs = by_name["on_train_batch_end"]
    assert step == 1 and logs["step"] == 1 and logs["batch_size"] == 4 and isinstance(logs["loss"][0], float)
    assert by_name["on_eval_begin"][-1] == {"steps": 1, "metrics": ["loss"]}
    assert by_name["on_epoch_end"][1] == 0 and by_name["on_epoch_end"][-1] == logs
    diary.events.clear()
    trained.predict([batches(1)[0][0]], verbose=0, callbacks=[diary])
    assert [e[0] for e in diary.events] == [
        "on_predict_begin",
        "on_predict_batch_begin",
        "on_predict_batch_end",
        "on_predict_end",
    ]


def test_a_callback_can_stop_training():
    class Stop(callbacks.Callback):
        def on_epoch_end(self, epoch, logs=None):
            self.model.stop_training = epoch == 1

    diary = Diary()
    model().fit(batches(), epochs=9, verbose=0, callbacks=[Stop(), diary])
    assert [e[1] for e in diary.events if e[0] == "on_epoch_begin"] == [0, 1]
    with pytest.raises(TypeError, match="Callback"):
        model().fit(batches(), verbose=0, callbacks=[print])


def test_an_exception_in_a_callback_comes_through():
    class Broken(callbacks.Callback):
        def on_train_batch_end(self, step, logs=None):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        model().fit(batches(), verbose=0, callbacks=[Broken()])


# ---- schedules


def test_the_schedule_moves_with_steps_or_epochs():
    def rate_after(callback):
        schedule = sampan.optimizer.lr.StepDecay(1e-3, step_size=1, gamma=0.5)
        model(schedule).fit(batches(3), epochs=2, verbose=0, callbacks=callback)
        return schedule()

    assert rate_after(None) == pytest.approx(1e-3 * 0.5**6)
    assert rate_after([callbacks.LRScheduler(by_step=False, by_epoch=True)]) == pytest.approx(1e-3 * 0.5**2)
    assert rate_after([callbacks.LRScheduler(by_step=False)]) == pytest.approx(1e-3)
    with pytest.raises(ValueError, match="mutually exclusive"):
        callbacks.LRScheduler(by_step=True, by_epoch=True)


def feed(callback, losses, monitor="loss"):
    """Tells a callback of evaluations with these losses."""
    callback.set_model(model())
    callback.on_train_begin()
    for loss in losses:
        callback.on_eval_end({monitor: [loss]})
    return callback.model


def test_reduce_lr_on_plateau(capsys):
    callback = callbacks.ReduceLROnPlateau(factor=0.5, patience=2, cooldown=1, min_lr=0.03)
    assert feed(callback, [1.0, 1.0, 1.0])._optimizer.get_lr() == pytest.approx(0.05)
    assert "Epoch 3: ReduceLROnPlateau reducing learning rate to 0.05." in capsys.readouterr().out
    # One evaluation of rest, then two without success; and never below the end.
    assert feed(callback, [1.0] * 6)._optimizer.get_lr() == pytest.approx(0.03)
    assert feed(callback, [1.0, 0.5, 0.2, 0.1])._optimizer.get_lr() == pytest.approx(0.1)
    acc = callbacks.ReduceLROnPlateau("acc", patience=1, verbose=0)
    assert feed(acc, [0.5, 0.9], "acc")._optimizer.get_lr() == pytest.approx(0.1)
    assert feed(acc, [0.5, 0.4], "acc")._optimizer.get_lr() == pytest.approx(0.01)
    with pytest.raises(ValueError, match="factor"):
        callbacks.ReduceLROnPlateau(factor=1.0)
    with pytest.warns(UserWarning, match="metric name"):
        callback.on_eval_end({"acc": 1.0})


def test_early_stopping(capsys, tmp_path):
    callback = callbacks.EarlyStopping(patience=2)
    assert not feed(callback, [1.0, 0.9, 0.95]).stop_training
    assert feed(callback, [1.0, 0.9, 0.95, 0.9]).stop_training
    assert "Early stopping." in capsys.readouterr().out
    assert feed(callbacks.EarlyStopping(patience=1, min_delta=0.2, verbose=0), [1.0, 0.9]).stop_training
    assert feed(callbacks.EarlyStopping(patience=1, baseline=0.5, verbose=0), [1.0]).stop_training
    assert feed(callbacks.EarlyStopping("acc", patience=1, verbose=0), [0.5, 0.4], "acc").stop_training
    with pytest.warns(UserWarning, match="fallback to auto"):
        callbacks.EarlyStopping(mode="best")
    # A learning rate of zero: the second evaluation is no better.
    stopped, diary = model(0.0), Diary()
    stopping = callbacks.EarlyStopping(patience=1, verbose=0)
    stopped.fit(batches(), batches(1), epochs=5, verbose=0, save_dir=os.fspath(tmp_path), callbacks=[stopping, diary])
    assert sum(e[0] == "on_epoch_begin" for e in diary.events) == 2
    assert (tmp_path / "best_model.pdparams").exists()


def test_early_stopping_without_evaluation_warns():
    with pytest.warns(UserWarning, match="validation data"):
        model().fit(batches(), verbose=0, callbacks=[callbacks.EarlyStopping()])


def test_checkpoints_of_ones_own(tmp_path):
    saving = callbacks.ModelCheckpoint(save_dir=os.fspath(tmp_path / "mine"))
    model().fit(batches(), epochs=1, verbose=0, save_dir=os.fspath(tmp_path / "fit"), callbacks=[saving])
    assert (tmp_path / "mine" / "final.pdparams").exists() and not (tmp_path / "fit").exists()


def test_a_progress_bar_of_ones_own_replaces_the_default(capsys):
    model().fit(batches(4), verbose=2, log_freq=1, callbacks=[callbacks.ProgBarLogger(log_freq=2, verbose=2)])
    assert [line.split(" - ")[0] for line in capsys.readouterr().out.splitlines()[2:]] == ["step 2/4", "step 4/4"]


class Wandb(types.ModuleType):
    """What of wandb the callback uses."""

    run = None

    def init(self, **settings):
        self.settings, self.logged, self.finished = settings, [], False
        return self

    def define_metric(self, *_, **__):
        pass

    def log(self, figures):
        self.logged.append(figures)

    def finish(self):
        self.finished = True


def test_wandb_gets_the_figures(monkeypatch):
    wandb = Wandb("wandb")
    monkeypatch.setitem(sys.modules, "wandb", wandb)
    callback = callbacks.WandbCallback(project="p", mode="offline", tags=["t"])
    model().fit(batches(2), batches(1), verbose=0, callbacks=[callback])
    assert wandb.settings["project"] == "p" and wandb.settings["tags"] == ["t"]
    assert [sorted(figures) for figures in wandb.logged] == [["train/loss", "train/step"]] * 2 + [
        ["epoch", "eval/loss"]
    ]
    assert wandb.finished


def test_no_wandb_is_said(monkeypatch):
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(ImportError, match="pip install wandb"):
        callbacks.WandbCallback()


# ---- the bar itself


def test_the_line_reads_like_paddles(capsys):
    bar = ProgressBar(num=938, verbose=1)
    bar.update(40, [("loss", [0.0325]), ("acc", 0.99384), ("tiny", np.float32(6.9384e-4)), ("count", 3), ("name", "x")])
    line = capsys.readouterr().out
    assert (
        line.startswith("step  40/938 [")
        and " - loss: 0.0325 - acc: 0.9938 - tiny: 6.9384e-04 - count: 3 - name: x - ETA: " in line
    )
    ProgressBar(num=None, verbose=2).update(7, [("loss", [np.array(0.5), 1.5])])
    assert capsys.readouterr().out.startswith("step   7 - loss: 0.5000 1.5000 - ")
    with pytest.raises(TypeError, match="num"):
        ProgressBar(num=0)


def test_a_terminal_sees_one_line_that_changes(monkeypatch):
    import io

    class Terminal(io.StringIO):
        def isatty(self):
            return True

    out = Terminal()
    bar = ProgressBar(num=2, verbose=1, file=out)
    bar.update(1, [("loss", 0.123456)])
    bar.update(2, [])
    first, second = out.getvalue().split("\r")[1:]
    assert "\n" not in first and second.endswith("\n") and len(second) - 1 >= len(first)


def test_nothing_warns():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model().fit(batches(), batches(1), epochs=2, verbose=0)
