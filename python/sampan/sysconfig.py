"""Where the files of the package lie that extensions compile and link against.

>>> from sampan import sysconfig
>>> sysconfig.get_include().endswith("include"), sysconfig.get_lib().endswith("libs")
(True, True)
"""

from pathlib import Path

__all__ = ["get_include", "get_lib"]


def get_include():
    """The folder of the C headers."""
    return str(Path(__file__).parent / "include")


def get_lib():
    """The folder of the libraries."""
    return str(Path(__file__).parent / "libs")
