"""Helpers around the framework: nested structures, names, versions, downloads, exchange with other libraries."""

from . import dlpack, download, layers_utils, unique_name
from .deprecated import deprecated
from .install_check import run_check
from .layers_utils import (
    assert_same_structure,
    convert_to_list,
    flatten,
    is_sequence,
    map_structure,
    pack_sequence_as,
    to_sequence,
)
from .lazy_import import try_import
from .require_version import require_version

__all__ = ["deprecated", "run_check", "require_version", "try_import"]
