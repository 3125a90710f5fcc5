"""Everything in one call."""

from __future__ import annotations

import contextlib
import random

import numpy as np

from . import _pairing
from ._arguments import count, iterates, names, number, steps_or_makes, two, wrong
from ._forcing import force
from ._recorder import Recorder
from ._recording import Recording
from ._report import Report, compare
from .sides import side_of


def _given(side, value):
    if isinstance(value, dict):
        return {k: _given(side, v) for k, v in value.items()}
    if isinstance(value, (tuple, list)):
        return type(value)(_given(side, v) for v in value)
    if isinstance(value, np.ndarray):
        return side.tensor(value)
    return side.tensor(value.numpy()) if hasattr(value, "numpy") and not side.is_tensor(value) else value


def _call(model, inputs):
    if isinstance(inputs, dict):
        return model(**inputs)
    return model(*inputs) if isinstance(inputs, (tuple, list)) else model(inputs)


def _buffers(side, model):
    return [(t, side.array(t)) for _, layer in side.layers(model) for _, t, buffer, _ in side.parameters(layer) if buffer]


def _clear(side, model):
    for _, layer in side.layers(model):
        for _, tensor, buffer, _ in side.parameters(layer):
            if not buffer:
                tensor.grad = None


def _once(model, inputs, labels, criterion, metric) -> Recorder:
    """One pass forward, the loss, and one pass backward."""
    side = side_of(model)
    inputs, labels = _given(side, inputs), _given(side, labels)
    kept = _buffers(side, model)
    _clear(side, model)
    recorder = Recorder(model, at={0})
    try:
        with recorder:
            output = _call(model, inputs)
            if criterion is not None:
                loss = criterion(output, labels) if labels is not None else criterion(output)
                loss.backward()
    except Exception:  # noqa: BLE001
        # The recorder notes what it was; the report says it.
        return recorder
    finally:
        for tensor, array in kept:
            side.set_value(tensor, array)
        _clear(side, model)
    if metric is not None:
        try:
            value = metric(output, labels) if labels is not None else metric(output)
            named = value if isinstance(value, dict) else {"metric": value}
            for name, v in named.items():
                recorder.metric(name, v)
        except Exception as error:  # noqa: BLE001
            recorder.notes.append(f"the metric fails: {type(error).__name__}: {error}")
    return recorder


def _made(value, given, what):
    """An optimizer or scheduler, or what a function makes of a model or an optimizer."""
    if value is None or (hasattr(value, "step") and not isinstance(value, type)):
        return value
    try:
        made = value(given)
    except Exception as error:
        raise ValueError(
            f"(InvalidArgument) align: {what} is a function that makes one of a {type(given).__name__}, and it fails: "
            f"{type(error).__name__}: {error}"
        ) from error
    if not hasattr(made, "step"):
        raise wrong("align", f"what the function for {what} makes", "something with a method step", made)
    return made


def _train(model, optimizer, scheduler, loop, inputs, labels, criterion, steps) -> Recorder:
    """Steps of training, of which losses, rates, gradients and parameters are kept; the model is as before afterwards."""
    side = side_of(model)
    inputs, labels = _given(side, inputs), _given(side, labels)
    optimizer = _made(optimizer, model, "optimizer")
    scheduler = _made(scheduler, optimizer, "scheduler")
    # Gradients and updates are compared for the first step; of the later ones, losses, rates and norms.
    recorder = Recorder(model, optimizer, at=(), keep_steps=1, functions=False)
    try:
        with recorder:
            if loop is not None:
                loop(model, optimizer)
                return recorder
            for _ in range(steps):
                output = _call(model, inputs)
                loss = criterion(output, labels) if labels is not None else criterion(output)
                loss.backward()
                optimizer.step()
                optimizer.zero_grad() if side.name == "torch" else optimizer.clear_grad()
                if scheduler is not None:
                    scheduler.step()
    except Exception:  # noqa: BLE001
        recorder.notes = [n.replace("the program stopped", "the training stopped") for n in recorder.notes]
    finally:
        for name, tensor, _ in recorder._each_parameter():
            side.set_value(tensor, recorder.sections["parameters"][name])
        _clear(side, model)
        # What it is set to is known; its moments are as large as the model.
        recorder.optimizer, recorder.watched = side.optimizer(optimizer, recorder.names), None
    return recorder


def _merge(first: Recorder, second: Recorder | None) -> None:
    """The training's sections beside those of the one pass."""
    if second is None:
        return
    for name in ("losses", "lr", "optimizer", "backward", "stepped"):
        if name in second.sections:
            first.sections[name] = second.sections[name]
    first.optimizer, first.rhythm = second.optimizer, second.rhythm
    first.notes += second.notes
    first._recording = None


@contextlib.contextmanager
def _as_it_was(model):
    """Modes of the layers, gradients and random numbers are afterwards what they were."""
    side = side_of(model)
    layers = side.layers(model)
    modes = [(layer, layer.training) for _, layer in layers if hasattr(layer, "training")]
    trained = [t for _, layer in layers for _, t, buffer, _ in side.parameters(layer) if not buffer]
    gradients = [(t, side.taken(side.gradient(t))) for t in trained]
    numbers, plain, arrays = side.random_state(), random.getstate(), np.random.get_state()
    try:
        yield
    finally:
        for layer, training in modes:
            layer.training = training
        for tensor, gradient in gradients:
            tensor.grad = gradient
        side.set_random_state(numbers)
        random.setstate(plain)
        np.random.set_state(arrays)


def align(
    reference,
    candidate,
    inputs,
    *,
    labels=None,
    criterion=None,
    optimizer=None,
    scheduler=None,
    training=None,
    steps: int = 2,
    train: bool | None = None,
    data=None,
    batches: int = 4,
    metric=None,
    mapping=None,
    checks=None,
    tolerance: float | None = None,
) -> Report:
    """Runs two models side by side, and says where they part and why.

    `inputs` (an array, or a tuple or dict of them) and `labels` are NumPy arrays that both sides get. What each side does
    with them in its own words comes as a pair, reference first: `criterion` (functions of the output and the labels),
    `optimizer` (optimizers, or functions that make one for a model), `scheduler`, `metric`, `data` (loaders) and
    `training` (functions of the model and the optimizer that run a training loop of their own, else there are `steps`
    plain ones). `train` sets the mode of both models; None leaves each as it is. `mapping` corrects the pairs, `checks`
    names the checks to do (all by default), and `tolerance` is the relative difference that is still equal.

    Every layer of the candidate is also run on the reference's input, so that one run finds all that differ. The models
    are afterwards as they were: weights, statistics, gradients, modes and random numbers.

    >>> import sampan
    >>> from sampan import align, nn
    >>> net = nn.Sequential(nn.Linear(4, 3), nn.Softmax())
    >>> align.align(net, net, sampan.ones([2, 4]).numpy()).ok
    True
    """
    if isinstance(reference, str) or isinstance(candidate, str):
        from .sides.onnx_side import align_file

        return align_file(reference, candidate, inputs, mapping, checks, tolerance)
    criteria = two(criterion, "criterion", callable, "a function of the output and the labels")
    metrics = two(metric, "metric", callable, "a function of the output and the labels")
    optimizers = two(optimizer, "optimizer", steps_or_makes, "an optimizer or a function that makes one for a model")
    schedulers = two(scheduler, "scheduler", steps_or_makes, "a scheduler or a function that makes one for an optimizer")
    loops = two(training, "training", callable, "a function of the model and the optimizer")
    loaders = two(data, "data", iterates, "a loader or anything else that gives batches")
    steps, batches = count(steps, "align", "steps"), count(batches, "align", "batches")
    checks, tolerance = names(checks, "align"), number(tolerance, "align", "tolerance")
    if train is not None and not isinstance(train, bool):
        raise wrong("align", "train", "True, False, or None for the modes as they are", train)
    needed = [what for what, given in (("scheduler", scheduler), ("training", training)) if given is not None]
    if needed and optimizer is None:
        raise ValueError(f"(InvalidArgument) align: {needed[0]} needs an optimizer.")
    if optimizer is not None and criterion is None and training is None:
        raise ValueError("(InvalidArgument) align: an optimizer needs a criterion, whose gradients it steps with, or a training loop.")
    with contextlib.ExitStack() as as_they_were:
        sides = []
        for i, model in enumerate((reference, candidate)):
            as_they_were.enter_context(_as_it_was(model))
            if train is not None:
                model.train() if train else model.eval()
            sides.append(_once(model, inputs, labels, criteria[i], metrics[i]))
        a, b = sides
        pairing = _pairing.pair(a, b, mapping)
        force(a, b, pairing.calls)
        for i, model in enumerate((reference, candidate)):
            if loaders[i] is not None:
                sides[i].batches(loaders[i], batches)
            if optimizers[i] is not None:
                # The training has gradients of its own.
                sides[i].sections.pop("backward", None)
                arguments = (optimizers[i], schedulers[i], loops[i], inputs, labels, criteria[i], steps)
                _merge(sides[i], _train(model, *arguments))
    return compare(a.spent(), b.spent(), mapping=mapping, checks=checks, tolerance=tolerance)


def as_recording(value) -> Recording:
    """A recording out of what stands for one."""
    from ._recording import load

    if isinstance(value, Recorder):
        return value.recording
    return value if isinstance(value, Recording) else load(value)
