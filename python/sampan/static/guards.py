"""Contexts that tell a static graph something about its ops, and change nothing in an eager program."""

from __future__ import annotations

import contextlib

from .. import _core


@contextlib.contextmanager
def device_guard(device: str | None = None):
    """Names the device of the ops inside; the only one is the processor.

    >>> import sampan
    >>> with sampan.static.device_guard("cpu"):
    ...     x = sampan.ones([1])
    """
    if device is not None:
        _core._check_place(device)
    yield


@contextlib.contextmanager
def name_scope(prefix: str | None = None):
    """Names a group of ops, for tools that show graphs.

    >>> import sampan
    >>> with sampan.static.name_scope("encoder"):
    ...     x = sampan.ones([1])
    """
    yield


def cpu_places(device_count: int | None = None) -> list:
    """The processor, once for each of `device_count` devices.

    >>> import sampan
    >>> len(sampan.static.cpu_places(2))
    2
    """
    from .. import CPUPlace

    return [CPUPlace()] * (1 if device_count is None else device_count)
