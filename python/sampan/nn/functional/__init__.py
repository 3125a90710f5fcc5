"""Functions of neural networks: Paddle's `nn.functional`."""

from ... import _core, _registry
from . import flash_attention

globals().update(_registry.functions("nn.functional"))
globals().update(_registry.plain_functions("nn.functional"))


def silu(x, inplace=False, name=None):
    """`x * sigmoid(x)`; with `inplace` the result takes the place of `x`."""
    result = _core.op("silu")(x)
    if not inplace:
        return result
    x._replace(result)
    return x


def triplet_margin_with_distance_loss(
    input, positive, negative, distance_function=None, margin=1.0, swap=False, reduction="mean", name=None
):
    """How much farther the negative is than the positive, up to `margin`, by a distance of one's own."""
    from ..layer import TripletMarginWithDistanceLoss

    return TripletMarginWithDistanceLoss(distance_function, margin, swap, reduction)(input, positive, negative)
