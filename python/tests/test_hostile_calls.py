"""No argument ends the process or shows a panic: an error that can be caught is all that may come."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import sampan
from sampan import nn
from sampan.nn import functional as F


def test_random_calls_of_all_public_names():
    program = Path(__file__).with_name("hostile_calls.py")
    env = {**os.environ, "RUST_BACKTRACE": "0"}
    done = subprocess.run([sys.executable, program, "1", "1"], capture_output=True, text=True, env=env, timeout=300)
    bad = "\n".join(line for line in done.stdout.splitlines() if line.startswith(("BAD", "    ")))
    assert done.returncode == 0, bad or done.stdout[-500:] + done.stderr[-500:]


IMAGE = np.zeros((8, 8, 3), "uint8")
BOX = ([[0.0, 0.0, 2.0, 2.0]], [1])

SIZES = {
    **{
        name: lambda n, make=getattr(sampan, name): make(n)
        for name in ("FloatTensor", "DoubleTensor", "HalfTensor", "IntTensor", "LongTensor", "ByteTensor", "BoolTensor", "Tensor")
    },
    "zeros": lambda n: sampan.zeros([n]),
    "ones of two axes": lambda n: sampan.ones([n, n]),
    "eye": lambda n: sampan.eye(n),
    "arange": lambda n: sampan.arange(n),
    "linspace": lambda n: sampan.linspace(0, 1, n),
    "randperm": lambda n: sampan.randperm(n),
    "one_hot": lambda n: F.one_hot(sampan.to_tensor([1]), n),
    "bincount": lambda n: sampan.bincount(sampan.to_tensor([n])),
    "histogram": lambda n: sampan.histogram(sampan.ones([3]), bins=n),
    "pad": lambda n: F.pad(sampan.ones([1, 1, 2, 2]), [n] * 4),
    "resize_": lambda n: sampan.ones([2]).resize_([n], fill_zero=True),
    "interpolate": lambda n: F.interpolate(sampan.ones([1, 1, 4, 4]), size=[n, n]),
    "fft": lambda n: sampan.fft.fft(sampan.ones([3]), n),
    "roi_align": lambda n: sampan.vision.ops.roi_align(sampan.ones([1, 1, 4, 4]), *map(sampan.to_tensor, BOX), n),
    "roi_pool": lambda n: sampan.vision.ops.roi_pool(sampan.ones([1, 1, 4, 4]), *map(sampan.to_tensor, BOX), n),
    "psroi_pool": lambda n: sampan.vision.ops.psroi_pool(sampan.ones([1, 4, 4, 4]), *map(sampan.to_tensor, BOX), n),
    "Auc": lambda n: sampan.metric.Auc(num_thresholds=n),
    "Linear": lambda n: nn.Linear(n, n),
    "Conv2D": lambda n: nn.Conv2D(n, 2, 3),
    "kernel of Conv2D": lambda n: nn.Conv2D(1, 1, n),
    "Embedding": lambda n: nn.Embedding(n, n),
    "hidden size of LSTM": lambda n: nn.LSTM(2, n),
    "layers of LSTM": lambda n: nn.LSTM(2, 2, num_layers=n),
    "GRUCell": lambda n: nn.GRUCell(2, n),
    "TransformerEncoder": lambda n: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8), n),
    "resize": lambda n: sampan.vision.transforms.resize(IMAGE, (n, n)),
    "sample": lambda n: sampan.distribution.Normal(0.0, 1.0).sample([n]),
    "create_parameter": lambda n: sampan.create_parameter([n], "float32"),
}


@pytest.mark.parametrize("size", [2**44, 2**62, 2**63 - 1, 2**63, -1, -(2**63)], ids=str)
@pytest.mark.parametrize("name", SIZES)
def test_sizes_that_no_machine_has(name, size):
    if size < 0 and name in ("arange", "one_hot", "pad"):
        return  # These have a meaning.
    with pytest.raises((ValueError, MemoryError, TypeError, OverflowError, IndexError)):
        SIZES[name](size)


def test_a_size_must_be_a_number():
    for wrong in (float("nan"), float("inf"), "3", None, [1], 2.5):
        for call in (nn.Linear, lambda n, _: sampan.zeros([n]), lambda n, _: F.one_hot(sampan.to_tensor([1]), n)):
            with pytest.raises((ValueError, TypeError)):
                call(wrong, 2)


def test_lists_in_lists_without_end():
    deep, own, table = [1.0], [], {}
    own.append(own)
    table["own"] = table
    for _ in range(10_000):
        deep = [deep]
    calls = [
        sampan.to_tensor, sampan.Tensor, sampan.zeros, sampan.concat, sampan.stack, lambda v: sampan.ones([3])[v],
        lambda v: sampan.ones([3]) + v, lambda v: sampan.save({"a": v}, os.devnull), nn.LayerList,
        lambda v: sampan.grad(v, v), lambda v: sampan.optimizer.SGD(parameters=v),
        lambda v: sampan._core._save_set("nowhere", {"pdparams": v}),
    ]  # fmt: skip
    for call in calls:
        for value in (deep, own, table):
            with pytest.raises((ValueError, TypeError, RecursionError, KeyError, IndexError)):
                call(value)


def test_a_layer_that_calls_itself():
    class Endless(nn.Layer):
        def forward(self, x):
            return self(x)

    with pytest.raises(RecursionError):
        Endless()(sampan.ones([1]))
