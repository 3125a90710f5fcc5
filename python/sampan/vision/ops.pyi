# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype




from .. import _registry as _registry, nn as nn

from .._core import to_tensor_py as to_tensor

from ..nn.layer.builtin import _OTHERS as _OTHERS, BuiltinLayer as BuiltinLayer

class RoIAlign(BuiltinLayer):
    __doc__ = _registry.classes('vision.ops')['RoIAlign'].doc
    _definition = _registry.classes('vision.ops')['RoIAlign']

    def forward(self, x, boxes, boxes_num, aligned=True):
        ...

class ConvNormActivation(nn.Sequential):
    """A convolution, a normalization and an activation, each left out where its class is None.

    >>> import sampan
    >>> block = sampan.vision.ops.ConvNormActivation(3, 8, stride=2)
    >>> block(sampan.ones([1, 3, 8, 8])).shape
    [1, 8, 4, 4]
    """

    def __init__(self, in_channels, out_channels, kernel_size=3, stride=1, padding=None, groups=1, norm_layer=nn.BatchNorm2D, activation_layer=nn.ReLU, dilation=1, bias=None):
        ...

class DeformConv2D(BuiltinLayer):
    """[`deform_conv2d`] with a weight and a bias of its own. Takes `x`, `offset` and, in the second version, `mask`."""

    def __init__(self, in_channels: _int, out_channels: _int, kernel_size: _int | Sequence[_int] | Tensor, stride: _int | Sequence[_int] | Tensor = 1, padding: _int | Sequence[_int] | Tensor = 0, dilation: _int | Sequence[_int] | Tensor = 1, deformable_groups: _int = 1, groups: _int = 1, weight_attr: Any = None, bias_attr: Any = None, name: _str | None = None, **kwargs: Any) -> None: ...


class PSRoIPool(BuiltinLayer):
    """[`psroi_pool`] as a layer. Takes `x`, `boxes` and `boxes_num`."""

    def __init__(self, output_size: _int | Sequence[_int] | Tensor, spatial_scale: _float = 1.0, name: _str | None = None, **kwargs: Any) -> None: ...


class RoIPool(BuiltinLayer):
    """[`roi_pool`] as a layer. Takes `x`, `boxes` and `boxes_num`."""

    def __init__(self, output_size: _int | Sequence[_int] | Tensor, spatial_scale: _float = 1.0, name: _str | None = None, **kwargs: Any) -> None: ...


def box_coder(prior_box, prior_box_var, target_box, code_type='encode_center_size', box_normalized=True, axis=0, name=None) -> Any:
    """Boxes written relative to prior boxes, or back. `prior_box` is `[M, 4]`, `prior_box_var` has that shape too, or is one
    row `[4]` for all, or is `None`.
    """


def decode_jpeg(x, mode='unchanged', name=None) -> Any:
    """The picture in the bytes of a file, `[C, H, W]`: `mode` is unchanged (1 channel if the file is grey, else 3), gray or
    rgb. JPEG is what Paddle takes; all formats of [`image`](crate::vision::image) are understood.
    """


def deform_conv2d(x, offset, weight, bias=None, stride=1, padding=0, dilation=1, deformable_groups=1, groups=1, mask=None, name=None) -> Any:
    """Convolution of `x` `[N, C, H, W]` with `weight` `[M, C / groups, kh, kw]`, each tap of which is read at its own place
    moved by `offset` `[N, 2 * deformable_groups * kh * kw, H', W']` (down, right, in turn) and, in the second version,
    scaled by `mask` `[N, deformable_groups * kh * kw, H', W']`. Gradients go to all tensors.
    """


def distribute_fpn_proposals(fpn_rois, min_level, max_level, refer_level, refer_scale, pixel_offset=False, rois_num=None, name=None) -> Any:
    """Boxes `[R, 4]` sorted into the levels of a pyramid by their size: a box of `refer_scale` pixels belongs to
    `refer_level`, one of twice that to the next. `rois_num` `[N]` says how many belong to each picture, in order. With
    `pixel_offset` the last pixel belongs to a box.
    """


def generate_proposals(scores, bbox_deltas, img_size, anchors, variances, pre_nms_top_n=6000, post_nms_top_n=1000, nms_thresh=0.5, min_size=0.1, eta=1.0, pixel_offset=False, return_rois_num=False, name=None) -> Any:
    """Where an object may be, from what a network says about `anchors` `[H, W, A, 4]`: `scores` `[N, A, H, W]` how likely
    each is one, `bbox_deltas` `[N, 4 * A, H, W]` how to move and resize it, in widths and heights of the anchor and
    logarithms of the growth, each times its place in `variances` `[H, W, A, 4]`.
    """


def matrix_nms(bboxes, scores, score_threshold, post_threshold, nms_top_k, keep_top_k, use_gaussian=False, gaussian_sigma=2.0, background_label=0, normalized=True, return_index=False, return_rois_num=True, name=None) -> Any:
    """The boxes `[N, M, 4]` with `scores` `[N, C, M]` above `score_threshold`, at most the `nms_top_k` best of each class,
    their scores lowered by how much they overlap better ones of their class. Those that are still above `post_threshold`
    are detections, at most `keep_top_k` of each picture (-1: all). A score falls in proportion to what is not shared,
    or with `use_gaussian` as `exp(gaussian_sigma * -overlap²)`, each relative to the better box's own fall.
    `background_label` is a class that is none (-1: all are). Without `normalized` the last pixel belongs to a box.
    """


def nms(boxes, iou_threshold=0.3, scores=None, category_idxs=None, categories=None, top_k=None, name=None) -> Any:
    """Positions of the boxes `[N, 4]` (left, top, right, bottom) that are kept when each box is dropped which overlaps a
    better one by more than `iou_threshold`. Better means earlier, or of a higher score where `scores` `[N]` are given.
    With `category_idxs` `[N]` and the list of `categories`, only boxes of one category compete. With scores the
    positions come best first, with categories at most `top_k` of them.
    """


def prior_box(input, image, min_sizes, max_sizes=None, aspect_ratios=..., variance=..., flip=False, clip=False, steps=..., offset=0.5, min_max_aspect_ratios_order=False, name=None) -> Any:
    """The prior boxes of an SSD head on the map `input` `[N, C, H, W]` of the picture `image` `[N, C, H', W']`: boxes and
    their variances, both `[H, W, priors, 4]`, in shares of the picture.
    """


def psroi_pool(x, boxes, boxes_num, output_size, spatial_scale=1.0, name=None) -> Any:
    """Means of parts of the maps `x` `[N, C, H, W]`, each part of a box from channels of its own: `[boxes, C / (height *
    width), height, width]`. Boxes as in [`roi_align`], rounded to whole pixels before they are scaled; a part without
    pixels is 0. The gradient goes to `x`.
    """


def read_file(filename, name=None) -> Any:
    """The bytes of a file, `[N]`."""


def roi_align(x, boxes, boxes_num, output_size, spatial_scale=1.0, sampling_ratio=-1, aligned=True, name=None) -> Any:
    """Parts of the maps `x` `[N, C, H, W]` at one size: `[boxes, C, height, width]`. `boxes` `[R, 4]` hold left, top, right
    and bottom, times `spatial_scale` in pixels of the map; `boxes_num` `[N]` says how many lie on each map, in order. Each
    value is the mean of `sampling_ratio` by `sampling_ratio` places between pixels, as many as fit if that is not
    positive. With `aligned` the middle of the first pixel lies at 0.5. The gradient goes to `x`.
    """


def roi_pool(x, boxes, boxes_num, output_size, spatial_scale=1.0, name=None) -> Any:
    """The largest values in parts of the maps `x` `[N, C, H, W]`, at one size: `[boxes, C, height, width]`. Boxes as in
    [`roi_align`], rounded to whole pixels; a part without pixels is 0. The gradient goes to `x`.
    """


def yolo_box(x, img_size, anchors, class_num, conf_thresh, downsample_ratio, clip_bbox=True, scale_x_y=1.0, iou_aware=False, iou_aware_factor=0.5, name=None) -> Any:
    """Boxes `[N, anchors * H * W, 4]` and scores `[N, anchors * H * W, class_num]` from the output of a YOLO head, `x`
    `[N, anchors * (5 + class_num), H, W]`: for each anchor, shift, size, certainty and classes. `img_size` `[N, 2]` holds
    heights and widths, `anchors` widths and heights in pixels of the network's input, which is `downsample_ratio` times
    the map. Boxes less certain than `conf_thresh` are 0. `clip_bbox` keeps boxes inside the picture; `scale_x_y` widens
    the shifts; with `iou_aware`, `anchors` more channels in front hold the expected overlap, which has the share
    `iou_aware_factor` in the certainty.
    """


def yolo_loss(x, gt_box, gt_label, anchors, anchor_mask, class_num, ignore_thresh, downsample_ratio, gt_score=None, use_label_smooth=True, scale_x_y=1.0, name=None) -> Any:
    """The YOLOv3 loss of each picture, `[N]`, from the output of a head on a square map, `x` `[N, masks * (5 + class_num), S, S]`."""


__all__ = ['BuiltinLayer', 'ConvNormActivation', 'DeformConv2D', 'PSRoIPool', 'RoIAlign', 'RoIPool', 'box_coder', 'decode_jpeg', 'deform_conv2d', 'distribute_fpn_proposals', 'generate_proposals', 'matrix_nms', 'nms', 'nn', 'prior_box', 'psroi_pool', 'read_file', 'roi_align', 'roi_pool', 'to_tensor', 'yolo_box', 'yolo_loss']
