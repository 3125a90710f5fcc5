"""Recording what a model does while its program runs, unchanged."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import weakref

import numpy as np

from .. import _core
from ._arguments import wrong
from ._recording import Recording
from ._rhythm import Rhythm
from ._tree import leaves, parts, plain, transform
from .sides import side_of

__all__ = ["Recorder", "record"]

_HERE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def describe(side, model) -> list[dict]:
    """The layers of a model with their settings and parameters."""
    seen, layers = {}, []
    for name, layer in side.layers(model):
        parameters = []
        for own, tensor, buffer, trained in side.parameters(layer):
            full = f"{name}.{own}" if name else own
            shares = seen.setdefault(id(tensor), full)
            described = {"name": full, "shape": [int(d) for d in tensor.shape], "buffer": buffer, "trainable": bool(trained)}
            described["dtype"] = str(tensor.dtype).rsplit(".", 1)[-1]
            parameters.append(described if shares == full else {**described, "shares": shares})
        training = bool(getattr(layer, "training", False))
        entry = {"name": name, "class": type(layer).__name__, "training": training, "parameters": parameters}
        layers.append({**entry, "config": side.config(layer)})
    return layers


class Call:
    """A call that can be made again: what was called, and which tensors went in."""

    def __init__(self, layer, again, args, kwargs, inputs, outputs):
        self.layer, self.again, self.args, self.kwargs = layer, again, args, kwargs
        self.inputs, self.outputs = inputs, outputs


class _Ear:
    """What the sides tell of calls of functions."""

    def __init__(self, recorder):
        self.begin, self._end = recorder._begin, recorder._function

    def __call__(self, *told) -> None:
        self._end(*told)


class Recorder:
    """What `record` gives: it listens until its `with` block ends, and then has the `recording`."""

    def __init__(self, model, optimizer=None, at=(0,), keep_steps=3, functions=True, digest=False):
        self.side, self.model, self.watched = side_of(model), model, optimizer
        self.at, self.keep_steps, self.with_functions = at, keep_steps, functions
        self.step, self.calls, self.replays, self.notes = 0, [], {}, []
        self.sections, self.output, self.optimizer = {}, [], None
        self.names = {}
        self.rhythm = Rhythm(self, digest)
        self._stack, self._leaf_depth, self._busy, self._backward = [], 0, False, False
        self._known, self._alive, self._used = {}, [], {}
        # Tensors that neither the model's inputs nor its parameters have a part in, as masks and positions.
        self._constants = set()
        self._undo = contextlib.ExitStack()
        self._recording = None

    # ---- the with block
    def __enter__(self) -> Recorder:
        side = self.side
        self.layers = describe(side, self.model)
        parameters = self.section("parameters")
        for name, layer in side.layers(self.model):
            for own, tensor, _, _ in side.parameters(layer):
                full = f"{name}.{own}" if name else own
                if id(tensor) not in self.names:
                    self.names[id(tensor)] = full
                    parameters[full] = side.array(tensor)
                    self._known[side.identity(tensor)[0]] = (f"parameter:{full}", side.identity(tensor)[1])
                    self._alive.append(tensor)
        hooked = set()
        for name, layer in side.layers(self.model):
            if id(layer) not in hooked:
                hooked.add(id(layer))
                before, after = functools.partial(self._before, name), functools.partial(self._after, name)
                for remove in side.hook(layer, before, after):
                    self._undo.callback(remove)
        self._undo.enter_context(side.no_fast_paths())
        self._watch_backward()
        if self.watched is not None:
            self._undo.enter_context(side.steps(self.watched, self._before_step, self._after_step))
        if self.with_functions:
            self._undo.enter_context(side.functions(_Ear(self)))
        return self

    def __exit__(self, kind, error, traceback) -> None:
        self._undo.close()
        if error is not None:
            where = next((f["key"] for f in reversed(self._stack)), "")
            self.notes.append(f"the program stopped{f' in {where}' if where else ''}: {kind.__name__}: {_first_line(error)}")

    def section(self, name) -> dict:
        return self.sections.setdefault(name, {})

    @property
    def recording(self) -> Recording:
        """What was recorded."""
        if self._recording is None:
            self._recording = Recording(_core.Recording(json.dumps(self.structure()), self.sections, False))
        return self._recording

    def spent(self) -> Recording:
        """What was recorded, after which the recorder holds no tensors any more: they are not there twice."""
        self.replays.clear()
        self._alive.clear()
        self._known.clear()
        return Recording(_core.Recording(json.dumps(self.structure()), self.sections, True))

    def structure(self) -> dict:
        """Layers and calls as they are known so far."""
        found = {"format": 1, "side": self.side.name, "version": self.side.version, "layers": self.layers}
        found |= {"calls": self.calls, "notes": self.notes, "steps": self.rhythm.steps, "output": self.output, "step": min(self.at, default=0)}
        if self.watched is not None:
            self.optimizer = self.side.optimizer(self.watched, self.names)
        if self.optimizer is not None:
            found["optimizer"] = self.optimizer
        return found

    def save(self, folder) -> None:
        """Writes the recording as a folder."""
        self.recording.save(folder)

    # ---- what the program tells
    def metric(self, name: str, value) -> None:
        """Notes the value of a metric."""
        self.section("metric")[name] = np.asarray(self._value(value), dtype="float64")

    def loss(self, value, name: str = "loss") -> None:
        """Notes a loss; one whose `backward` is called is noted by itself."""
        self.section("loss")[name] = np.asarray(self._value(value))

    def batches(self, loader, count: int = 4) -> None:
        """Notes the first batches of a loader."""
        data = self.section("data")
        for i, batch in zip(range(count), loader):
            items = parts(batch, lambda v: hasattr(v, "shape"))
            for j, (place, item) in enumerate(items):
                if hasattr(item, "shape") or isinstance(item, (bool, int, float)):
                    data[f"batch{i}:{j}"] = np.array(self._value(item), copy=True)
                else:
                    self.notes.append(f"batch {i} of the loader{place} is a {type(item).__name__}, which is not compared")
        if not data:
            self.notes.append("the loader gives no batches that could be compared")

    def _value(self, value):
        return self._array(value) if self.side.is_tensor(value) else np.asarray(value)

    def _identity(self, tensor):
        busy, self._busy = self._busy, True
        try:
            return self.side.identity(tensor)
        finally:
            self._busy = busy

    def _array(self, tensor):
        """The values of a tensor; what reading them calls is not the program's."""
        busy, self._busy = self._busy, True
        try:
            return self.side.array(tensor)
        finally:
            self._busy = busy

    # ---- hooks
    @property
    def _on(self) -> bool:
        return self.step in self.at and not self._busy

    def _before(self, name, layer, args, kwargs):
        if not self._on:
            return None
        if self._leaf_depth == 0:
            key = self._key(name or "(root)")
            inputs = self._inputs(key, (args, kwargs), "input" if not name else None)
            frame = {"key": key, "layer": name, "call": len(self.calls), "inputs": inputs, "place": self._place()}
            frame |= {"args": args, "kwargs": kwargs}
            self._stack.append(frame)
            leaf = self.side.is_leaf(layer)
            self.calls.append({"key": key, "layer": name, "op": type(layer).__name__, "container": not leaf})
            self.calls[-1] |= {"config": {**self.side.config(layer), "training": bool(layer.training)}}
            self.calls[-1] |= {"inputs": [k for k, _ in inputs], "place": frame["place"]}
        if self.side.is_leaf(layer):
            self._leaf_depth += 1
        return None

    def _after(self, name, layer, args, kwargs, output):
        if not self._on:
            return None
        if self.side.is_leaf(layer):
            self._leaf_depth = max(0, self._leaf_depth - 1)
        if self._leaf_depth > 0 or not self._stack:
            return None
        # A layer that failed and was caught left its frame behind.
        while self._stack and self._stack[-1]["layer"] != name:
            self._stack.pop()
        if not self._stack:
            return None
        frame = self._stack.pop()
        call = self.calls[frame["call"]]
        call["outputs"] = self._outputs(frame["key"], output, call["container"])
        call |= self._seen(call["outputs"])
        if not call["container"]:
            again = Call(layer, lambda a, k: layer(*a, **k), frame["args"], frame["kwargs"], frame["inputs"], call["outputs"])
            self.replays[frame["key"]] = again
        elif not name:
            keys = [self._known[self.side.identity(t)[0]][0] for t in leaves(output, self.side.is_tensor)]
            self.calls.append({"key": "(output)", "layer": "", "op": "output", "function": True, "inputs": keys})
            self.calls[-1]["outputs"] = keys
            self.output = self.output or [self._part(*part) for part in parts(output, self.side.is_tensor)]
        return None

    def _part(self, place, value) -> dict:
        """A part of the model's output, tensor or not."""
        described = {"place": place, "class": type(value).__name__}
        if self.side.is_tensor(value):
            return {**described, "key": self._known[self.side.identity(value)[0]][0]}
        if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in "fiub":
            key = f"(output){place}"
            self.section("forward")[key] = np.array(value)
            return {**described, "key": key}
        known = value is None or isinstance(value, (bool, int, float, str))
        return {**described, "value": plain(value) if known else None, "known": known}

    def _begin(self, name, args, kwargs):
        """The key and the inputs of a call of a function, or None if it is not to be noted."""
        if not self._on or self._leaf_depth > 0:
            return None
        layer = self._stack[-1]["layer"] if self._stack else "(program)"
        key = self._key(f"{layer}/{name.strip('_')}")
        return layer, key, self._inputs(key, (args, kwargs))

    def _function(self, name, args, kwargs, config, output, again, begun=None):
        begun = begun or self._begin(name, args, kwargs)
        if begun is None:
            return
        layer, key, inputs = begun
        call = {"key": key, "layer": layer, "op": name, "function": True, "config": config, "place": self._place()}
        call["inputs"] = [k for k, _ in inputs if not k.startswith("parameter:")]
        call["uses"] = [k.removeprefix("parameter:") for k, _ in inputs if k.startswith("parameter:")]
        call["outputs"] = self._outputs(key, output, False)
        if all(k in self._constants for k, _ in inputs):
            call["constant"] = True
            self._constants.update(call["outputs"])
        self.calls.append(call | self._seen(call["outputs"]))
        self.replays[key] = Call(None, again, args, kwargs, inputs, call["outputs"])

    def _key(self, base):
        n = self._used[base] = self._used.get(base, 0) + 1
        return base if n == 1 else f"{base}@{n}"

    def _inputs(self, key, values, prefix=None):
        found = []
        for i, tensor in enumerate(leaves(values, self.side.is_tensor)):
            identity, version = self._identity(tensor)
            known = self._known.get(identity)
            if known is None or (known[1] != version and not known[0].startswith("parameter:")):
                name = f"{prefix}{i}" if prefix else f"{key}:in{i}"
                self._keep(tensor, name)
                if known is None and not self.side.differentiable(tensor):
                    self._constants.add(name)
                known = (name, version)
                if prefix:
                    self.section("inputs")[name] = self.section("forward")[name]
            if prefix:
                self._constants.discard(known[0])
            found.append((known[0], i))
        return found

    def _outputs(self, key, output, container):
        found = []
        tensors = leaves(output, self.side.is_tensor)
        for i, tensor in enumerate(tensors):
            identity, version = self.side.identity(tensor)
            if container and identity in self._known and self._known[identity][1] == version:
                found.append(self._known[identity][0])
                continue
            name = key if i == 0 else f"{key}:{i}"
            self._keep(tensor, name)
            gradients = self.section("gradients")
            if "float" in str(tensor.dtype):
                # A tensor that held the recorder, which holds the tensor, would never be freed.
                self.side.on_gradient(tensor, functools.partial(_note_gradient, weakref.ref(self), gradients, name))
            found.append(name)
        return found

    def _seen(self, keys):
        """Shapes of outputs, and what tells values apart at a glance."""
        arrays = [self.section("forward")[k] for k in keys if k in self.section("forward")]
        seen = {"shapes": [list(x.shape) for x in arrays]}
        if arrays and arrays[0].size and arrays[0].dtype.kind in "fiub":
            x = arrays[0]
            # Sums in double precision; what a mask made infinite tells nothing apart.
            if x.dtype.kind != "f" or np.isfinite(x).all():
                seen["stats"] = [float(x.mean(dtype="float64")), float(x.std(dtype="float64")), float(x.min()), float(x.max())]
        return seen

    def _keep(self, tensor, name):
        identity, version = self.side.identity(tensor)
        self._alive.append(tensor)
        self._known[identity] = (name, version)
        self.section("forward")[name] = self._array(tensor)

    def _place(self):
        """The line of the user's program that makes the call."""
        frame = sys._getframe(2)
        while frame is not None:
            file = frame.f_code.co_filename
            own = file.startswith(_HERE) or "/torch/" in file or "/paddle/" in file or file.startswith("<")
            if not own:
                return f"{os.path.basename(file)}:{frame.f_lineno}"
            frame = frame.f_back
        return ""

    # ---- training
    def _watch_backward(self):
        cls, recorder = self.side.tensor_class(), self
        inner = cls.backward

        def backward(tensor, *args, **kwargs):
            # PyTorch calls it once more from within, where functions are listened to.
            if recorder._backward:
                return inner(tensor, *args, **kwargs)
            # What the way back calls is the library's own.
            busy, recorder._busy, recorder._backward = recorder._busy, True, True
            try:
                recorder._note_loss(recorder._array(tensor), recorder.rhythm.backward())
                out = inner(tensor, *args, **kwargs)
            finally:
                recorder._busy, recorder._backward = busy, False
            if recorder.step < recorder.keep_steps or recorder.step in recorder.at:
                recorder.take_gradients()
            return out

        cls.backward = backward
        self._undo.callback(setattr, cls, "backward", inner)

    def _note_loss(self, value, onto: bool) -> None:
        """Gradients that are added to are those of the sum of the losses."""
        losses = self.section("losses")
        name = f"loss_{self.step}"
        losses[name] = losses[name] + value if onto and name in losses and losses[name].shape == value.shape else value
        if self.step in self.at:
            self.section("loss")["loss"] = losses[name]

    def _each_parameter(self):
        for name, layer in self.side.layers(self.model):
            for own, tensor, buffer, _ in self.side.parameters(layer):
                full = f"{name}.{own}" if name else own
                if self.names.get(id(tensor), full) == full:
                    yield full, tensor, buffer

    def take_gradients(self) -> None:
        """Notes the gradients of all parameters as they are now."""
        found = self.section("backward")
        for name, tensor, buffer in self._each_parameter():
            gradient = None if buffer else self.side.gradient(tensor)
            if gradient is not None:
                value = self._array(gradient)
                found[f"step{self.step}:{name}"] = value

    def _before_step(self):
        self.rhythm.before_step()
        rate = self.side.learning_rate(self.watched)
        self.section("lr")[f"lr_{self.step}"] = np.asarray(rate, dtype="float64")
        if self.step < self.keep_steps:
            # What the step is made from, for instance clipped gradients.
            for name, tensor, buffer in self._each_parameter():
                gradient = None if buffer else self.side.gradient(tensor)
                key = f"step{self.step}:{name}"
                if gradient is not None:
                    now, made = self._array(gradient), self.section("backward").get(key)
                    if made is None or not np.array_equal(made, now, equal_nan=True):
                        self.section("stepped")[key] = now
        self._busy = True

    def _after_step(self):
        self._busy = False
        if self.step < self.keep_steps or self.step in self.at:
            after = self.section("optimizer")
            for name, tensor, _ in self._each_parameter():
                after[f"step{self.step}:{name}"] = self._array(tensor)
        self.rhythm.after_step()
        self.step += 1
        if self.step in self.at:
            # What is recorded of a step is judged by the weights that it begins with.
            for name, tensor, _ in self._each_parameter():
                self.section("parameters")[name] = self._array(tensor)


def _note_gradient(recorder, gradients, name, gradient) -> None:
    if gradient is not None and recorder() is not None:
        gradients[name] = recorder()._array(gradient)


def _first_line(error) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip(" -")]
    return next((line for line in lines if "Error" in line or ":" in line), lines[0] if lines else "")[:300]


def record(model, *, optimizer=None, at=(0,), keep_steps: int = 3, functions: bool = True) -> Recorder:
    """Listens to a model of PyTorch, Paddle or sampan while the program in the `with` block runs.

    Inputs and outputs of every layer, calls of functions between them, losses whose `backward` is called, gradients,
    learning rates and parameters after each step of `optimizer` are noted. `at` are the numbers of the training steps
    whose tensors are kept in full, and `keep_steps` of how many steps gradients and parameters are.

    >>> import sampan
    >>> from sampan import align, nn
    >>> net = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
    >>> with align.record(net) as r:
    ...     loss = net(sampan.ones([2, 4])).mean()
    ...     loss.backward()
    >>> [call["key"] for call in r.recording.structure["calls"]]
    ['(root)', '0', '1', '(output)', '(program)/mean']
    >>> r.recording.get("forward", "1").shape
    (2, 3)
    """
    if isinstance(at, int):
        at = (at,)
    if not isinstance(at, (tuple, list, set, range)) or not all(isinstance(n, int) for n in at):
        raise wrong("record", "at", "the numbers of the steps whose tensors are kept", at)
    if isinstance(keep_steps, bool) or not isinstance(keep_steps, int):
        raise wrong("record", "keep_steps", "an int", keep_steps)
    if optimizer is not None and not hasattr(optimizer, "step"):
        raise wrong("record", "optimizer", "an optimizer", optimizer)
    return Recorder(model, optimizer, set(at), keep_steps, functions)


def inside_again(side, call, tensors):
    """The outputs of a call that is made again with other tensors in it."""
    fresh = iter(tensors)
    args, kwargs = transform((call.args, call.kwargs), lambda t: next(fresh), side.is_tensor)
    return leaves(call.again(args, kwargs), side.is_tensor)
