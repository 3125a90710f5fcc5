"""A mark for functions that will go."""

import functools
import inspect
import warnings

from sampan.version import api_version

from .require_version import parts_of


class VisibleDeprecationWarning(UserWarning):
    """A warning that is shown where a plain DeprecationWarning would not be."""


def deprecated(update_to="", since="", reason="", level=0):
    """Marks a function: 0 says so in its documentation, 1 warns at each call as well, 2 makes each call an error.

    >>> from sampan.utils import deprecated
    >>> @deprecated(update_to="sampan.new", since="2.0.0", level=2)
    ... def old():
    ...     "Does it."
    >>> old()
    Traceback (most recent call last):
    ...
    RuntimeError: old is deprecated since 2.0.0; use sampan.new
    """
    for name, value in (("update_to", update_to), ("since", since), ("reason", reason)):
        if not isinstance(value, str):
            raise TypeError(f"deprecated: {name} must be a str, but received {type(value).__name__} {value!r}")
    if level not in (0, 1, 2):
        raise ValueError(f"deprecated: level must be 0, 1 or 2, but received {level!r}")
    update_to, since, reason = update_to.strip(), since.strip(), reason.strip()

    def mark(function):
        message = f"{function.__qualname__} is deprecated"
        message += f" since {since}" if since else ""
        message += f"; use {update_to}" if update_to else ""
        message += f" ({reason})" if reason else ""
        documentation = f"Warning: {message}.\n\n{inspect.cleandoc(function.__doc__ or '')}".rstrip()
        if level == 0:
            function.__doc__ = documentation
            return function

        @functools.wraps(function)
        def marked(*args, **kwargs):
            if level == 2:
                raise RuntimeError(message)
            if not since or parts_of(api_version) >= parts_of(since, "since"):
                warnings.warn(message, VisibleDeprecationWarning, stacklevel=2)
            return function(*args, **kwargs)

        marked.__doc__ = documentation
        return marked

    return mark
