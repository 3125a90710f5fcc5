"""Functions of neural networks: Paddle's `nn.functional`."""

from ... import _registry

globals().update(_registry.functions("nn.functional"))
