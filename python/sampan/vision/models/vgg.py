"""VGG."""

from ... import _core
from ._make import family


class _Features:
    """The layers of a known VGG before its head; made anew wherever they are wanted, so that a model can be copied."""

    def __init__(self, name: str, batch_norm: bool):
        self.name, self.batch_norm = name, batch_norm

    @property
    def _core(self):
        (features,), _ = _core._model_arguments(self.name, {"batch_norm": self.batch_norm})
        return features


def _arguments(name: str, kwargs: dict):
    kwargs = dict(kwargs)
    return [_Features(name, kwargs.pop("batch_norm", False))], kwargs


__all__ = family(globals(), "VGG", arguments=_arguments)
