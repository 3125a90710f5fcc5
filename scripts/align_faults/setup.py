"""Both sides of a fault, ready to be compared: networks with the same weights, inputs, losses, optimizers, data."""

from __future__ import annotations

import copy
import dataclasses
from typing import Any

import numpy as np
import torch

import candidate as candidates
import reference as references
from catalogue import Fault

STEPS = 4


@dataclasses.dataclass
class Case:
    """What a tool is given; pairs have the reference first."""

    reference: Any
    candidate: Any
    inputs: tuple
    labels: np.ndarray
    criterion: tuple
    optimizer: tuple | None = None
    scheduler: tuple | None = None
    training: tuple | None = None
    data: tuple | None = None
    train: bool = False
    # Both networks as they are before any weights are loaded.
    initial: tuple | None = None


def inputs_of(network: str) -> tuple[tuple, np.ndarray]:
    draw = np.random.default_rng(7)
    images = {"LeNet": (8, 1, 28, 28), "AlexNet": (4, 3, 64, 64), "ResNet18": (4, 3, 64, 64), "MobileNetV3": (4, 3, 32, 32), "ViT": (4, 3, 48, 48)}
    if network in images:
        shape = images[network]
        return (draw.standard_normal(shape).astype("float32"),), draw.integers(0, 10, shape[0])
    if network == "LSTMClassifier":
        ids = draw.integers(1, 50, (6, 12))
        ids[0, 8:], ids[1, 10:] = 0, 0
        ids[2, 3], ids[4, 5] = 1, 1
        return (ids,), np.array([1, 3, 5, 7, 9, 1])
    return (draw.integers(0, 40, (3, 9)), draw.integers(0, 40, (3, 7))), draw.integers(0, 40, (3, 7))


def state_of(theirs: torch.nn.Module, ours) -> dict:
    """PyTorch's weights under Paddle's names. Both sides name their layers alike; matrices of `Linear` are turned."""
    turned = {name for name, m in theirs.named_modules() if isinstance(m, torch.nn.Linear)}
    renamed = {"running_mean": "_mean", "running_var": "_variance"}
    state = {}
    for key, value in theirs.state_dict().items():
        owner, _, leaf = key.rpartition(".")
        if leaf == "num_batches_tracked":
            continue
        array = value.numpy()
        if owner in turned and leaf == "weight":
            array = array.T
        state[".".join(filter(None, [owner, renamed.get(leaf, leaf)]))] = np.ascontiguousarray(array)
    return state


def load(net, state: dict) -> None:
    """Gives a network the weights that it has a place for; a fault may have removed one."""
    for key, parameter in net.state_dict().items():
        if key in state and list(parameter.shape) == list(state[key].shape):
            parameter.set_value(state[key])


def losses(paddle, network: str, changed: dict) -> tuple:
    F = paddle.nn.functional
    classes = 40 if network == "Transformer" else 10

    def reference(output, labels):
        return torch.nn.functional.cross_entropy(output.reshape(-1, classes), labels.reshape(-1))

    def ours(output, labels):
        output = output.reshape([-1, classes])
        if changed.get("probabilities"):
            return F.cross_entropy(F.softmax(output), labels.reshape([-1]))
        return F.cross_entropy(output, labels.reshape([-1]), **changed)

    return reference, ours


def decayed(name: str, ndim: int) -> bool:
    """Matrices and kernels are decayed; biases and norms are not."""
    return ndim > 1


def optimizers(paddle, network: str, changed: dict, clip) -> tuple:
    adam = {"LSTMClassifier": "Adam", "Transformer": "Adam", "ViT": "AdamW"}.get(network)
    speed = {"MobileNetV3": 1e-3}.get(network, 0.05)
    decay = {"LSTMClassifier": 1e-2, "Transformer": 0.0, "ViT": 0.05}.get(network, 1e-4)

    def reference(net):
        groups = [
            {"params": [p for n, p in net.named_parameters() if decayed(n, p.ndim)], "weight_decay": decay},
            {"params": [p for n, p in net.named_parameters() if not decayed(n, p.ndim)], "weight_decay": 0.0},
        ]
        if adam:
            make = {"Adam": torch.optim.Adam, "AdamW": torch.optim.AdamW}[adam]
            return make(groups, lr=1e-2)
        return torch.optim.SGD(groups, lr=speed, momentum=0.9)

    def ours(net, rate=None):
        amount = changed.get("weight_decay", decay)
        everything = [p for p in net.parameters() if not p.stop_gradient]
        groups = [
            {"params": [p for p in everything if decayed(p.name, p.ndim)], "weight_decay": amount},
            {"params": [p for p in everything if not decayed(p.name, p.ndim)], "weight_decay": amount if changed.get("decay_all") else 0.0},
        ]
        rate = rate if rate is not None else (1e-2 if adam else speed) * changed.get("rate", 1)
        given = {"learning_rate": rate, "parameters": groups}
        if clip == "norm":
            given["grad_clip"] = paddle.nn.ClipGradByGlobalNorm(0.5)
        elif clip == "value":
            given["grad_clip"] = paddle.nn.ClipGradByValue(0.5)
        if adam:
            make = getattr(paddle.optimizer, changed.get("kind", adam))
            if make is paddle.optimizer.AdamW:
                # Groups of AdamW have their own decay; what they leave out is the default.
                given["weight_decay"] = amount
            return make(epsilon=changed.get("epsilon", 1e-8), beta1=changed.get("beta1", 0.9), beta2=changed.get("beta2", 0.999), **given)
        if changed.get("kind") == "SGD":
            return paddle.optimizer.SGD(**given)
        return paddle.optimizer.Momentum(
            momentum=changed.get("momentum", 0.9), use_nesterov=changed.get("use_nesterov", False), **given
        )

    return reference, ours


def schedules(paddle, network: str, changed: dict) -> tuple:
    """Functions that make an optimizer's schedule: steps of 2 with a factor, or a warm-up."""
    base = 1e-2 if network == "ViT" else 0.05
    warm = network == "ViT"

    def reference(optimizer):
        if warm:
            return torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: min(1.0, (step + 1) / 4))
        return torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.1)

    def ours():
        if warm:
            length = changed.get("warmup", 4)
            return paddle.optimizer.lr.LambdaDecay(base, lambda step: min(1.0, (step + 1) / max(length, 1)))
        return paddle.optimizer.lr.StepDecay(base, step_size=2, gamma=changed.get("gamma", 0.1))

    return reference, ours


def loops(case: Case, clip_reference: bool, schedule: tuple | None, per: str) -> tuple:
    """Training loops as people write them, with what a plain loop lacks."""

    def reference(net, optimizer):
        x, y = [torch.from_numpy(a) for a in case.inputs], torch.from_numpy(case.labels)
        plan = schedule[0](optimizer) if schedule else None
        for _ in range(STEPS):
            loss = case.criterion[0](net(*x), y)
            loss.backward()
            if clip_reference:
                torch.nn.utils.clip_grad_norm_(net.parameters(), 0.5)
            optimizer.step()
            optimizer.zero_grad()
            if plan:
                plan.step()

    def ours(net, optimizer, paddle):
        x, y = [paddle.to_tensor(a) for a in case.inputs], paddle.to_tensor(case.labels)
        plan = getattr(optimizer, "_learning_rate", None) if schedule else None
        for step in range(STEPS):
            loss = case.criterion[1](net(*x), y)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            if plan is not None and hasattr(plan, "step") and (per == "step" or (step + 1) % STEPS == 0):
                plan.step()

    return reference, ours


def batches(changed: dict) -> tuple:
    """Two loaders over the same pictures, normalised by each side's program."""
    pixels = np.random.default_rng(5).integers(0, 256, (8, 3, 16, 16)).astype("float32") / 255
    labels = np.arange(8)
    mean, std = np.array([0.485, 0.456, 0.406], "float32"), np.array([0.229, 0.224, 0.225], "float32")

    def rows(images):
        return [(images[i : i + 4], labels[i : i + 4]) for i in range(0, 8, 4)]

    def normalised(images, mean, std):
        return ((images - np.reshape(mean, (-1, 1, 1))) / np.reshape(std, (-1, 1, 1))).astype("float32")

    theirs = normalised(pixels, mean, std)
    if changed.get("mirrored"):
        ours = theirs[..., ::-1]
    elif changed.get("bytes"):
        ours = normalised(pixels * 255, mean, std)
    elif changed.get("shuffled"):
        ours = theirs[[1, 0, 3, 2, 5, 4, 7, 6]]
    elif changed.get("bgr"):
        ours = normalised(pixels[:, ::-1], mean, std)
    else:
        ours = normalised(pixels, np.full(3, changed.get("mean", 0), "float32"), np.full(3, changed.get("std", 1), "float32"))
    return rows(theirs), rows(ours)


def initial(paddle, network: str, how: str) -> tuple:
    """Networks as their programs begin."""
    torch.manual_seed(3)
    theirs = references.NETWORKS[network]()
    paddle.seed(3)
    ours = candidates.networks(paddle, candidates.Knobs({}))[network]()
    for module in theirs.modules():
        if isinstance(module, (torch.nn.Linear, torch.nn.Conv2d)):
            torch.nn.init.normal_(module.weight, 0, 0.02)
            if module.bias is not None:
                torch.nn.init.zeros_(module.bias)
    draw = np.random.default_rng(4)
    for layer in ours.sublayers():
        if isinstance(layer, (paddle.nn.Linear, paddle.nn.Conv2D)):
            shape = layer.weight.shape
            values = draw.uniform(-0.0346, 0.0346, shape) if how == "uniform" else draw.normal(0, 0.2 if how == "wide" else 0.02, shape)
            layer.weight.set_value(values.astype("float32"))
            if layer.bias is not None:
                layer.bias.set_value(np.zeros(layer.bias.shape, "float32"))
    return theirs, ours


def case_of(fault: Fault, paddle) -> Case:
    """Both sides with a fault planted in the second."""
    network = fault.network
    theirs = references.build(network)
    knobs = candidates.Knobs(fault.knobs)
    ours = candidates.networks(paddle, knobs)[network]()
    load(ours, state_of(theirs, ours))
    theirs.train(fault.train_mode)
    ours.train() if fault.train_mode else ours.eval()
    if fault.train_mode:
        # What is drawn at random differs without a fault.
        for layer in [*theirs.modules(), *ours.sublayers()]:
            if isinstance(layer, (torch.nn.Dropout, paddle.nn.Dropout)):
                layer.eval()
    if fault.plant:
        fault.plant(ours)
    inputs, labels = inputs_of(network)
    training = fault.training
    case = Case(theirs, ours, inputs, labels, losses(paddle, network, training.get("loss", {})), train=fault.train_mode)
    if fault.where.split("|")[0] in ("optimizer", "learning rate") or fault.train_mode:
        clip = "clip" in training
        schedule = schedules(paddle, network, training.get("schedule", {})) if "schedule" in training else None
        reference, candidate = optimizers(paddle, network, training.get("optimizer", {}), training.get("clip", None))
        made = (lambda net: candidate(net, schedule[1]())) if schedule else candidate
        case.optimizer = (reference, made)
        loop = loops(case, clip, schedule, training.get("schedule", {}).get("per", "step"))
        case.training = (loop[0], lambda net, optimizer: loop[1](net, optimizer, paddle))
    if "data" in training:
        case.data = batches(training["data"])
    if "init" in training:
        case.initial = initial(paddle, network, training["init"])
    unknown = set(fault.knobs) - knobs.asked
    if case.train is False and unknown:
        # Places inside of `forward` are asked for when it runs.
        with paddle.no_grad():
            try:
                ours(*[paddle.to_tensor(a) for a in inputs])
            except Exception:  # a fault may make it fail; the tool is to say so
                pass
        unknown = set(fault.knobs) - knobs.asked
    if unknown:
        raise KeyError(f"{fault.name}: no place in {network} asks for {sorted(unknown)}")
    return case


def whole(network: str) -> Fault:
    """A network without a fault, with everything that is compared."""
    return Fault("none", network, "optimizer", "", training={})


def copied(case: Case) -> Case:
    return copy.copy(case)
