"""Mixed precision of static graphs: what eager programs use of it."""

from __future__ import annotations

import contextlib

__all__ = ["fp16_guard"]


@contextlib.contextmanager
def fp16_guard():
    """Marks what a static graph may compute in half precision. An eager program says that with `sampan.amp.auto_cast`,
    so nothing changes inside.

    >>> import sampan
    >>> with sampan.static.amp.fp16_guard():
    ...     print(sampan.ones([1]).dtype.name)
    float32
    """
    yield
