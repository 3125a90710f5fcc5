"""Every op by its name: Paddle's `_C_ops`."""

from . import _core

globals().update({name: _core.op(name) for name, *_ in _core.ops()})
globals().update({name + "_": _core.op(name + "_") for name, _, _, inplace in _core.ops() if inplace})
