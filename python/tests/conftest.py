"""What several tests share. With `SAMPAN_TEST_DEVICE=gpu` in the environment all of them run there."""

import json
import os
import types
from pathlib import Path

import numpy as np
import pytest
import sampan as sp

DEVICE = os.environ.get("SAMPAN_TEST_DEVICE")
RECORDED = json.loads((Path(__file__).parent / "recorded" / "layers.json").read_text())


if DEVICE:
    # Before modules of tests make tensors of their own.
    sp.set_device(DEVICE)

    @pytest.fixture(autouse=True)
    def on_the_device():
        """Begins each test on the device that was asked for."""
        sp.set_device(DEVICE)


def fill(layer):
    """Gives the parameters values that form a fixed pattern, and switches to evaluation."""
    for i, p in enumerate(layer.parameters()):
        p.set_value((np.sin(np.arange(p.size) * 0.7 + i) * 0.3).astype("float32").reshape(p.shape))
    layer.eval()
    return layer


def x(*shape, k=0.37):
    """A tensor of a fixed pattern."""
    return sp.to_tensor(np.cos(np.arange(int(np.prod(shape))) * k).astype("float32").reshape(shape))


def flat(outputs):
    """All tensors of nested tuples, in order."""
    if isinstance(outputs, (list, tuple)):
        return [t for part in outputs for t in flat(part)]
    return [outputs]


def check(name, outputs):
    """Compares outputs with the numbers that Paddle 3.3.1 gave: for each the sum of its product with a fixed pattern."""
    found = [(t.shape, (t * x(*t.shape, k=0.11)).sum().item()) for t in flat(outputs)]
    assert [list(shape) for shape, _ in found] == [shape for shape, _ in RECORDED[name]]
    np.testing.assert_allclose([v for _, v in found], [v for _, v in RECORDED[name]], rtol=2e-4, atol=2e-4)


@pytest.fixture
def recorded():
    """Layers and inputs of fixed patterns, and the comparison with recorded numbers."""
    return types.SimpleNamespace(fill=fill, x=x, flat=flat, check=check)
