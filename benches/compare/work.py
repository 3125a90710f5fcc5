"""The list of workloads and what each of them is."""

from collections import namedtuple
from dataclasses import dataclass, field
from typing import Any, Callable

import numpy

GROUPS = {
    "train": "Training steps",
    "captured": "Training steps, captured",
    "infer": "Inference",
    "loader": "Data",
    "startup": "Start",
    "matmul": "Matrix products",
    "conv": "Convolutions, of four images",
    "pool": "Pooling",
    "elementwise": "Elementwise",
    "softmax": "Softmax",
    "norm": "Normalisation",
    "reduction": "Reductions",
    "index": "Gather and scatter",
    "sort": "Sorting",
    "copy": "Copies",
    "optimizer": "Optimizers",
}
"""Group of workloads → its title, in the order of the table."""

WHOLE = ("train", "captured", "infer", "loader", "startup")
"""The groups that are more than a single op."""

WORKLOADS = {}
"""Name → `Workload`."""

Workload = namedtuple("Workload", "group build")


@dataclass
class Work:
    """A step that can be repeated, and what it reads and writes at the very least: a tensor counts as often as it is
    named."""

    step: Callable[[], Any]
    inputs: list = field(default_factory=list)
    outputs: list = field(default_factory=list)
    """Besides what the step returns."""
    trains: bool = False
    """Is it a network whose backward pass needs what the forward pass kept?"""


def workload(name, group):
    def add(build):
        WORKLOADS[name] = Workload(group, build)
        return build

    return add


def array(*shape, high=None, seed=0):
    """The same numbers for everybody: normal floats, or integers below `high`."""
    rng = numpy.random.default_rng(seed)
    return rng.standard_normal(shape).astype("float32") if high is None else rng.integers(0, high, shape)


STATES = {"SGD": 0, "Momentum": 1, "Adam": 2, "AdamW": 2}
"""Numbers that an optimizer remembers for each parameter."""
