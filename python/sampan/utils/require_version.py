"""A check that the API is new enough for a program, and not too new."""

import re

from sampan.version import api_version


def parts_of(version, name="version"):
    """A version such as "2.6" as four numbers."""
    if not isinstance(version, str):
        raise TypeError(f"require_version: {name} must be a str, but received {type(version).__name__} {version!r}")
    if not re.fullmatch(r"\d+(\.\d+){0,3}", version):
        raise ValueError(f"require_version: {name} must be up to four numbers, as '2.6.0', but received {version!r}")
    numbers = [int(part) for part in version.split(".")]
    return numbers + [0] * (4 - len(numbers))


def require_version(min_version, max_version=None):
    """Raises an error if the version of Paddle's API that sampan follows is not in [min_version, max_version].

    >>> from sampan.utils import require_version
    >>> require_version("2.0.0")
    >>> require_version("2.0.0", "2.6")
    Traceback (most recent call last):
    ...
    Exception: require_version: the program needs the API of a version from 2.0.0 to 2.6, but this is that of 3.3.1
    """
    least, most = parts_of(min_version, "min_version"), max_version
    if max_version is not None:
        most = parts_of(max_version, "max_version")
    own = parts_of(api_version)
    if own < least or (most is not None and own > most):
        wanted = f"from {min_version}" + (f" to {max_version}" if most else " on")
        raise Exception(
            f"require_version: the program needs the API of a version {wanted}, but this is that of {api_version}"
        )
