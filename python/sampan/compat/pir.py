"""Types of Paddle's static graphs, for programs that ask whether a value is one of them. None is."""


class Value:
    """A value of a static graph."""

    def __init__(self):
        raise NotImplementedError("(Unimplemented) pir.Value: static graphs are not part of sampan.")
