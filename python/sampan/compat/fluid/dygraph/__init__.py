"""Dynamic graphs of Paddle 1.x: layers, decays of the learning rate, checkpoints."""

from ....nn import LayerList, ParameterList, Sequential
from ...base.dygraph import disable_dygraph, enable_dygraph, enabled, grad, guard, no_grad, to_variable
from . import base, checkpoint, layers, learning_rate_scheduler, nn
from .checkpoint import load_dygraph, save_dygraph
from .layers import Layer
from .learning_rate_scheduler import (
    CosineDecay,
    ExponentialDecay,
    InverseTimeDecay,
    LearningRateDecay,
    LinearLrWarmup,
    NaturalExpDecay,
    NoamDecay,
    PiecewiseDecay,
    PolynomialDecay,
)
from .nn import (
    FC,
    BatchNorm,
    Conv2D,
    Conv2DTranspose,
    Dropout,
    Embedding,
    GroupNorm,
    InstanceNorm,
    LayerNorm,
    Linear,
    Pool2D,
    PRelu,
)
