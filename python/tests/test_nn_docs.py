"""The examples in the documentation of `sampan.nn` run."""

import doctest
import importlib

import pytest

MODULES = "layer.layers layer.ordered layer.container attr initializer utils.norms".split()


@pytest.mark.parametrize("name", MODULES)
def test_examples_run(name):
    result = doctest.testmod(importlib.import_module(f"sampan.nn.{name}"))
    assert result.attempted > 0 and result.failed == 0
