"""`sampan.vision.ops` from Python: results of Paddle 3.3.1 on the same inputs, as sums and weighted sums; its layers."""

import numpy as np
import pytest
import sampan
from sampan import nn
from sampan.vision import ops


def wave(*shape):
    """Values that differ everywhere."""
    return np.sin(np.arange(np.prod(shape)) * 0.7).reshape(shape).astype("float32")


def tensor(values, dtype="float32"):
    return sampan.to_tensor(np.asarray(values).astype(dtype))


BOXES = np.array([[1, 1, 5, 6], [0, 2, 7, 7], [2, 0, 4, 4.5], [3, 3, 8, 8]], "float32")
REGIONS = (tensor(wave(2, 8, 10, 10)), tensor(BOXES), tensor([2, 2], "int32"))
ANCHORS = [10, 13, 16, 30]

CASES = {
    "roi_pool": (lambda: ops.roi_pool(*REGIONS, 2), [([4, 8, 2, 2], "float32", 95.37803, 4.47539)]),
    "roi_align": (
        lambda: ops.roi_align(*REGIONS, (2, 3), 0.5, 2, False),
        [([4, 8, 2, 3], "float32", 2.66869, -2.76769)],
    ),
    "psroi_pool": (lambda: ops.psroi_pool(*REGIONS, 2), [([4, 2, 2, 2], "float32", 0.42013, -1.37286)]),
    "RoIAlign": (lambda: ops.RoIAlign(2)(*REGIONS), [([4, 8, 2, 2], "float32", -1.53367, 0.45614)]),
    "RoIPool": (lambda: ops.RoIPool(2, 0.5)(*REGIONS), [([4, 8, 2, 2], "float32", 54.20917, 0.74861)]),
    "PSRoIPool": (lambda: ops.PSRoIPool(2, 1.0)(*REGIONS), [([4, 2, 2, 2], "float32", 0.42013, -1.37286)]),
    "nms": (lambda: ops.nms(tensor(BOXES), 0.2), [([2], "int64", 3.0, 1.62091)]),
    "nms by category": (
        lambda: ops.nms(tensor(BOXES), 0.1, tensor([0.1, 0.4, 0.3, 0.2]), tensor([0, 1, 0, 1], "int64"), [0, 1], 3),
        [([2], "int64", 3.0, 2.0806)],
    ),
    "matrix_nms": (
        lambda: ops.matrix_nms(tensor(BOXES[None]), tensor(abs(wave(1, 3, 4))), 0.2, 0.1, 4, 3, return_index=True),
        [([3, 6], "float32", 61.30197, -15.98771), ([1], "int32", 3.0, 3.0), ([3, 1], "int32", 8.0, 3.78861)],
    ),
    "yolo_box": (
        lambda: ops.yolo_box(tensor(wave(2, 14, 3, 3)), tensor([[96, 96], [64, 80]], "int32"), ANCHORS, 2, 0.01, 32),
        [([2, 18, 4], "float32", 6062.18328, -55.16863), ([2, 18, 2], "float32", 19.98814, 0.26617)],
    ),
    "yolo_loss": (
        lambda: ops.yolo_loss(
            tensor(wave(2, 14, 4, 4)),
            tensor(abs(wave(2, 5, 4)) * 0.5 + 0.1),
            tensor(np.arange(10).reshape(2, 5) % 2, "int32"),
            ANCHORS,
            [0, 1],
            2,
            0.7,
            8,
        ),
        [([2], "float32", 120.64915, 92.69774)],
    ),
    "prior_box": (
        lambda: ops.prior_box(
            tensor(wave(1, 3, 4, 5)), tensor(wave(1, 3, 20, 25)), [4.0], [8.0], [1.0, 2.0], flip=True, clip=True
        ),
        [([4, 5, 4, 4], "float32", 160.0, -0.44441), ([4, 5, 4, 4], "float32", 48.0, -0.07509)],
    ),
    "box_coder encodes": (
        lambda: ops.box_coder(tensor(BOXES), [0.1, 0.1, 0.2, 0.2], tensor(BOXES[:2] + 0.5)),
        [([2, 4, 4], "float32", 26.31409, 0.10064)],
    ),
    "box_coder decodes": (
        lambda: ops.box_coder(
            tensor(BOXES), tensor(np.full((4, 4), 0.5)), tensor(wave(3, 4, 4)), "decode_center_size", False, 0
        ),
        [([3, 4, 4], "float32", 193.51866, -9.35804)],
    ),
    "deform_conv2d": (
        lambda: ops.deform_conv2d(
            tensor(wave(1, 4, 6, 6)),
            tensor(wave(1, 18, 4, 4)),
            tensor(wave(2, 4, 3, 3)),
            mask=tensor(abs(wave(1, 9, 4, 4))),
        ),
        [([1, 2, 4, 4], "float32", 30.69607, 2.24424)],
    ),
    "generate_proposals": (
        lambda: ops.generate_proposals(
            tensor(abs(wave(1, 2, 3, 3))),
            tensor(wave(1, 8, 3, 3)),
            tensor([[60.0, 60.0]]),
            tensor(abs(wave(3, 3, 2, 4)) * [5, 5, 30, 30]),
            tensor(np.full((3, 3, 2, 4), 0.3)),
            20,
            5,
            0.6,
            0.1,
            return_rois_num=True,
        ),
        [([5, 4], "float32", 200.21123, 35.38598), ([5, 1], "float32", 4.35378, -0.1192), ([1], "int32", 5.0, 5.0)],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_results_are_paddles(name):
    call, expected = CASES[name]
    out = call()
    out = [out] if isinstance(out, sampan.Tensor) else out
    assert [(t.shape, t.numpy().dtype.name) for t in out] == [(shape, dtype) for shape, dtype, *_ in expected]
    for t, (*_, total, weighted) in zip(out, expected):
        values = t.numpy().astype("float64").ravel()
        np.testing.assert_allclose([values.sum(), values @ np.cos(np.arange(values.size))], [total, weighted], rtol=2e-5, atol=2e-4)


def test_distribute_fpn_proposals():
    levels, restore, counts = ops.distribute_fpn_proposals(tensor(BOXES * 40), 2, 5, 4, 224, rois_num=tensor([3, 1], "int32"))
    assert [level.shape for level in levels] == [[0, 4], [3, 4], [1, 4], [0, 4]]
    assert restore.shape == [4, 1] and [int(c.sum()) for c in counts] == [0, 3, 1, 0]


def test_layers_train():
    conv = ops.DeformConv2D(4, 6, 3, padding=1)
    assert isinstance(conv, nn.Layer) and list(conv.state_dict()) == ["weight", "bias"]
    x, offset = tensor(wave(1, 4, 5, 5)), tensor(wave(1, 18, 5, 5))
    out = conv(x, offset, mask=tensor(abs(wave(1, 9, 5, 5))))
    out.sum().backward()
    assert out.shape == [1, 6, 5, 5] and conv.weight.grad.shape == [6, 4, 3, 3]
    block = ops.ConvNormActivation(3, 8, stride=2, activation_layer=None)
    assert [type(layer) for layer in block] == [nn.Conv2D, nn.BatchNorm2D] and block[0].bias is None
    assert ops.ConvNormActivation(3, 8, norm_layer=None)[0].bias is not None
    assert ops.RoIAlign(2)(*REGIONS, aligned=False).shape == [4, 8, 2, 2]


def test_files(tmp_path):
    Image = pytest.importorskip("PIL.Image")
    path = tmp_path / "a.jpg"
    Image.fromarray(np.full((9, 7, 3), 90, "uint8")).save(path)
    picture = ops.decode_jpeg(ops.read_file(str(path)))
    assert picture.shape == [3, 9, 7] and picture.dtype == sampan.uint8 and abs(int(picture[0, 4, 4]) - 90) < 3
    assert ops.decode_jpeg(ops.read_file(str(path)), mode="gray").shape == [1, 9, 7]
    with pytest.raises(OSError):
        ops.read_file(str(tmp_path / "none"))


def test_errors_and_signatures():
    import inspect

    assert list(inspect.signature(ops.nms).parameters)[:3] == ["boxes", "iou_threshold", "scores"]
    with pytest.raises(ValueError, match="nms"):
        ops.nms(tensor(BOXES[0]), 0.2)
    with pytest.raises(TypeError, match="boxes_num"):
        ops.roi_pool(REGIONS[0], REGIONS[1])


def test_anchors_of_proposals_may_be_rows():
    scores, deltas, size = tensor(abs(wave(1, 2, 3, 3))), tensor(wave(1, 8, 3, 3)), tensor([[60.0, 60.0]])
    anchors, variances = tensor(abs(wave(3, 3, 2, 4)) * [5, 5, 30, 30]), tensor(np.full((3, 3, 2, 4), 0.3))
    for a, b in zip(
        ops.generate_proposals(scores, deltas, size, anchors, variances),
        ops.generate_proposals(scores, deltas, size, anchors.reshape([-1, 4]), variances.reshape([-1, 4])),
    ):
        assert a is b is None or a.tolist() == b.tolist()


def test_the_kernels_that_detectors_call():
    kernels, old = sampan._C_ops, sampan._legacy_C_ops
    values, index = kernels.argsort(tensor([3, 1, 2]), 0, True, False)
    assert values.tolist() == [3, 2, 1] and index.tolist() == [0, 2, 1]
    assert old.argsort(tensor([3, 1, 2]), "axis", 0, "descending", True)[1].tolist() == [0, 2, 1]
    anchors, variances = old.anchor_generator(
        tensor(wave(1, 2, 3, 4)), "anchor_sizes", [32.0, 64.0], "aspect_ratios", [0.5, 1.0, 2.0, 0.3], "variances",
        [0.1, 0.1, 0.2, 0.2], "stride", [16.0, 12.0], "offset", 0.5,
    )
    assert anchors.shape == variances.shape == [3, 4, 8, 4]
    np.testing.assert_allclose(anchors.numpy().ravel()[:5], [-12, -7.3333, 27, 18.3333, -32], atol=1e-3)
    np.testing.assert_allclose(anchors.abs().sum().item(), 12741.33, rtol=1e-6)
    rois, counts = tensor([[0, 0, 20, 20], [0, 0, 200, 200], [5, 5, 9, 9]]), tensor([1, 2], "int32")
    levels, each, places = kernels.distribute_fpn_proposals(rois, counts, 2, 5, 4, 224, False)
    again = old.distribute_fpn_proposals(
        rois, counts, 4, 4, "min_level", 2, "max_level", 5, "refer_level", 4, "refer_scale", 224, "pixel_offset", False
    )
    assert [level.shape[0] for level in levels] == [2, 1, 0, 0] and places.tolist() == again[1].tolist()
    assert [n.tolist() for n in each] == [n.tolist() for n in again[2]] == [[1, 1], [0, 1], [0, 0], [0, 0]]
    boxes, scores = tensor(BOXES[None]), tensor(abs(wave(1, 3, 4)))
    out, index, count = kernels.matrix_nms(boxes, scores, 0.2, 4, 3, 0.1)
    expected = ops.matrix_nms(boxes, scores, 0.2, 0.1, 4, 3, return_index=True)
    assert [t.tolist() for t in (out, count, index)] == [t.tolist() for t in expected]


@pytest.mark.parametrize(
    "options, kept",
    [
        ({}, [[0, 1], [0, 2], [1, 2], [1, 1]]),
        ({"background_label": 0}, [[1, 2], [1, 1]]),
        ({"keep_top_k": 3}, [[0, 1], [1, 2], [1, 1]]),
        ({"nms_top_k": 1}, [[0, 1], [1, 2]]),
        ({"score_threshold": 0.5}, [[0, 1], [1, 2], [1, 1]]),
        ({"score_threshold": 2.0}, []),
    ],
)
def test_detections_of_several_classes(options, kept):
    scores = np.array([[[0.4, 0.9, 0.3, 0.6], [0.1, 0.7, 0.8, 0.2]]], "float32")
    told = {"score_threshold": 0.15, "nms_top_k": -1, "keep_top_k": -1, "nms_threshold": 0.3, "background_label": -1, **options}
    out, index, count = sampan._C_ops.multiclass_nms3(tensor(BOXES[None]), tensor(scores), None, **told)
    assert [[int(row[0]), at] for row, [at] in zip(out.tolist(), index.tolist())] == kept
    assert count.tolist() == [len(kept)] and out.shape == [len(kept), 6] and count.dtype == sampan.int32
    for row, [at] in zip(out.numpy(), index.tolist()):
        assert row[1] == scores[0, int(row[0]), at] and (row[2:] == BOXES[at]).all()
    # The same boxes for each class, and one picture.
    each = tensor(np.repeat(BOXES[:, None], 2, 1))
    rows, places, _ = sampan._C_ops.multiclass_nms3(each, tensor(scores[0].T), tensor([4], "int32"), **told)
    assert sorted(rows.tolist()) == sorted(out.tolist())
    assert places.flatten().tolist() == [2 * at + of for of, at in sorted(kept)]
