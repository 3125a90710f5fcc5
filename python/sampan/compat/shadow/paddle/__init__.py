"""Stands where Python looks for `paddle`, so that processes started by a program run by sampan find sampan too."""

import sys

# Python's import takes what is in `sys.modules` once this file ran: sampan itself.
sys.modules.pop("paddle", None)

import sampan.compat  # noqa: E402

sampan.compat.install_as_paddle()
