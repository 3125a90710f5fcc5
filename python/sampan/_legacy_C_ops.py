"""Ops as Paddle 2 called its kernels: tensors first, then names of attributes, each followed by its value."""

from . import _C_ops

_RENAMED = {"generate_proposals_v2": "generate_proposals"}
_ATTRIBUTES = {"pre_nms_topN": "pre_nms_top_n", "post_nms_topN": "post_nms_top_n"}


def _call(function, args: tuple):
    first = next((i for i, a in enumerate(args) if isinstance(a, str)), len(args))
    names, values = args[first::2], args[first + 1 :: 2]
    return function(*args[:first], **{_ATTRIBUTES.get(name, name): value for name, value in zip(names, values)})


def distribute_fpn_proposals(fpn_rois, rois_num, levels, counts, *attributes):
    """The boxes of each level, where each box went, and how many belong to each picture."""
    boxes, counts, places = _call(_C_ops.distribute_fpn_proposals, (fpn_rois, rois_num, *attributes))
    return boxes, places, counts


def __getattr__(name):
    function = getattr(_C_ops, _RENAMED.get(name, name), None)
    if function is None or name.startswith("__"):
        raise AttributeError(f"module 'sampan._legacy_C_ops' has no attribute {name!r}")
    return lambda *args: _call(function, args)
