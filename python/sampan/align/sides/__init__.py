"""The libraries that a model may be written in."""

from __future__ import annotations

import sys

from .base import Side


def side_of(model) -> Side:
    """The side that a model belongs to."""
    from ... import nn

    if isinstance(model, nn.Layer):
        from .sampan_side import SampanSide

        return SampanSide()
    # What is not imported cannot have made the model.
    torch, paddle = sys.modules.get("torch"), sys.modules.get("paddle")
    if torch is not None and isinstance(model, torch.nn.Module):
        from .torch_side import TorchSide

        return TorchSide()
    if paddle is not None and hasattr(paddle, "nn") and isinstance(model, paddle.nn.Layer):
        from .paddle_side import PaddleSide

        return PaddleSide()
    raise TypeError(
        f"(InvalidType) align: a model is a torch.nn.Module, a paddle.nn.Layer, a sampan.nn.Layer, or the path of an .onnx "
        f"file, not {type(model).__name__}."
    )
