"""Names that nothing else in the process has: `fc_0`, `fc_1`, …"""

import contextlib

__all__ = ["generate", "guard", "switch"]

try:
    # The counts that layers use too.
    from sampan._core import _generate_name, _swap_names
except ImportError:
    _counts = {}

    def _generate_name(key):
        number = _counts.get(key, 0)
        _counts[key] = number + 1
        return f"{key}_{number}"

    def _swap_names(counts):
        old = dict(_counts)
        _counts.clear()
        _counts.update(counts)
        return old


class UniqueNameGenerator:
    """A count for each key, and a prefix before all names. `ids` are its counts while another generator is in use."""

    def __init__(self, prefix=None):
        self.prefix = prefix or ""
        self.ids = {}

    def __call__(self, key):
        """The next name for `key`."""
        if self is _current:
            return self.prefix + _generate_name(key)
        number = self.ids.get(key, 0)
        self.ids[key] = number + 1
        return f"{self.prefix}{key}_{number}"

    generate = __call__


_current = UniqueNameGenerator()
_checker = None


def generate(key):
    """The next name for `key`.

    >>> from sampan.utils import unique_name
    >>> with unique_name.guard("net_"):
    ...     unique_name.generate("fc"), unique_name.generate("fc")
    ('net_fc_0', 'net_fc_1')
    """
    if not isinstance(key, str):
        raise TypeError(f"unique_name.generate: key must be a str, but received {type(key).__name__} {key!r}")
    return _current(key)


def switch(new_generator=None, new_para_name_checker=None):
    """Puts another generator into use, a fresh one by default; returns the old one and its checker.

    >>> from sampan.utils import unique_name
    >>> old = unique_name.switch()
    >>> unique_name.generate("fc")
    'fc_0'
    >>> _ = unique_name.switch(*old)
    """
    global _current, _checker
    old, old_checker = _current, _checker
    _current, _checker = new_generator or UniqueNameGenerator(), new_para_name_checker
    old.ids = _swap_names(_current.ids)
    return old, old_checker


@contextlib.contextmanager
def guard(new_generator=None):
    """Names inside the block start anew, with the prefix `new_generator` if that is a str; after it all is as before.

    >>> from sampan.utils import unique_name
    >>> names = []
    >>> for _ in range(2):
    ...     with unique_name.guard():
    ...         names.append(unique_name.generate("fc"))
    >>> names
    ['fc_0', 'fc_0']
    """
    if isinstance(new_generator, bytes):
        new_generator = new_generator.decode()
    if isinstance(new_generator, str):
        new_generator = UniqueNameGenerator(new_generator)
    old = switch(new_generator)
    try:
        yield
    finally:
        switch(*old)
