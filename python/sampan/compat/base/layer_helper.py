"""What programs import for the static half of a layer of their own, and do not use in dynamic graphs."""


class LayerHelper:
    """Adds ops to a static graph, which there is none of."""

    def __init__(self, layer_type=None, **kwargs):
        raise NotImplementedError(
            f"(Unimplemented) LayerHelper({layer_type!r}): static graphs are not part of sampan. Hint: the dynamic half of "
            "the layer calls functions."
        )
