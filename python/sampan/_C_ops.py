"""Every op by its name: Paddle's `_C_ops`. Arguments are those of the functions, but for a few that programs call as Paddle's
kernels take them."""

import math

from . import _core, _registry

_VISION, _PARTS = _registry.plain_functions("vision.ops"), _registry.plain_functions("_C_ops")

globals().update({name: _core.op(name) for name, *_ in _core.ops()})
globals().update({name + "_": _core.op(name + "_") for name, _, _, inplace in _core.ops() if inplace})


def argsort(x, axis=-1, descending=False, stable=False):
    """The sorted values, and the positions they come from."""
    index = _core.op("argsort")(x, axis, descending, stable)
    return _core.op("take_along_axis")(x, index, axis), index


def box_coder(
    prior_box, prior_box_var, target_box, code_type="encode_center_size", box_normalized=True, axis=0, variance=()
):
    """`vision.ops.box_coder`; four variances for all boxes are the last argument."""
    variances = list(variance) if prior_box_var is None and len(variance) else prior_box_var
    return _VISION["box_coder"](prior_box, variances, target_box, code_type, box_normalized, axis)


def distribute_fpn_proposals(fpn_rois, rois_num, min_level, max_level, refer_level, refer_scale, pixel_offset):
    """The boxes of each level, how many belong to each picture, and where each box went."""
    boxes, places, counts = _VISION["distribute_fpn_proposals"](
        fpn_rois, min_level, max_level, refer_level, refer_scale, pixel_offset, rois_num
    )
    return boxes, counts, places


def generate_proposals(
    scores, bbox_deltas, im_shape, anchors, variances, pre_nms_top_n, post_nms_top_n, nms_thresh, min_size, eta,
    pixel_offset=True,
):
    """Boxes, how likely each is, and how many belong to each picture."""
    return _VISION["generate_proposals"](
        scores, bbox_deltas, im_shape, anchors, variances, pre_nms_top_n, post_nms_top_n, nms_thresh, min_size, eta,
        pixel_offset, True,
    )


def matrix_nms(
    bboxes, scores, score_threshold, nms_top_k, keep_top_k, post_threshold=0.0, use_gaussian=False, gaussian_sigma=2.0,
    background_label=0, normalized=True,
):
    """Detections, where each box stood, and how many belong to each picture."""
    out, counts, index = _VISION["matrix_nms"](
        bboxes, scores, score_threshold, post_threshold, nms_top_k, keep_top_k, use_gaussian, gaussian_sigma,
        background_label, normalized, True, True,
    )
    return out, index, counts


def multiclass_nms3(
    bboxes, scores, rois_num, score_threshold, nms_top_k, keep_top_k, nms_threshold=0.3, normalized=True, nms_eta=1.0,
    background_label=0,
):
    """Detections, where each box stood, and how many belong to each picture: of each class the boxes that no better one
    of the class covers by more than `nms_threshold`."""
    out, counts, index = _PARTS["multiclass_nms3"](
        bboxes, scores, rois_num, score_threshold, nms_top_k, keep_top_k, nms_threshold, normalized, nms_eta,
        background_label,
    )
    return out, index, counts


def anchor_generator(input, anchor_sizes, aspect_ratios, variances, stride, offset):
    """Anchors of each place of `input` `[N, C, H, W]` and their variances, `[H, W, A, 4]` both."""
    height, width = input.shape[2:]
    shapes = []
    for ratio in aspect_ratios:
        # Whole pixels, as they are rounded in C.
        wide = math.floor(math.sqrt(stride[0] * stride[1] / ratio) + 0.5)
        high = math.floor(wide * ratio + 0.5)
        for size in anchor_sizes:
            half = [0.5 * (size / stride[0] * wide - 1), 0.5 * (size / stride[1] * high - 1)]
            shapes.append([-half[0], -half[1], half[0], half[1]])
    across, down = (
        _core.op("arange")(0, n, 1, input.dtype) * step + offset * (step - 1) for n, step in zip((width, height), stride)
    )
    x, y = across.unsqueeze(0).expand([height, width]), down.unsqueeze(1).expand([height, width])
    places = _core.op("stack")([x, y, x, y], -1).unsqueeze(2)
    anchors = places + _core.to_tensor_py(shapes, input.dtype)
    return anchors, _core.to_tensor_py(list(variances), input.dtype).expand(anchors.shape)
