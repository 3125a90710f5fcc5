"""Records what Paddle's `vision.ops` gives for small inputs, for `sampan-data/tests/suite/vision_ops.rs`.

    python scripts/vision_ops_golden.py [crates/sampan-data/tests/vision_ops.safetensors]

Needs paddlepaddle, numpy and safetensors.
"""

import inspect
import json
import sys

import numpy as np
import paddle
from paddle.vision import ops
from safetensors.numpy import save_file

rng = np.random.default_rng(3)
out = {}


def keep(name, value):
    out[name] = np.ascontiguousarray(value.numpy() if isinstance(value, paddle.Tensor) else value)
    return paddle.to_tensor(out[name])


corner = rng.uniform(0, 20, (40, 2))
boxes = keep("boxes", np.concatenate([corner, corner + rng.uniform(2, 10, (40, 2))], 1).astype("float32"))
scores = keep("scores", rng.permutation(40).astype("float32"))
owners = keep("owners", rng.integers(0, 3, 40))
for threshold in [0.1, 0.5]:
    keep(f"nms/plain/{threshold}", ops.nms(boxes, threshold))
    keep(f"nms/scores/{threshold}", ops.nms(boxes, threshold, scores))
    keep(f"nms/owners/{threshold}", ops.nms(boxes, threshold, scores, owners, [0, 1, 2]))
    keep(f"nms/top/{threshold}", ops.nms(boxes, threshold, scores, owners, [0, 1, 2], 5))

prior, target, var = boxes[:5], boxes[5:8], keep("var", rng.uniform(0.1, 1, (5, 4)).astype("float32"))
for normalized in [True, False]:
    code = ops.box_coder(prior, var, target, "encode_center_size", normalized)
    keep(f"box_coder/encode/{normalized}", code)
    keep(f"box_coder/decode/{normalized}", ops.box_coder(prior, var, code * 0.5, "decode_center_size", normalized))
    turned = code.transpose([1, 0, 2]) * 0.5
    keep(f"box_coder/axis/{normalized}", ops.box_coder(prior, [0.1, 0.2, 0.3, 0.4], turned, "decode_center_size", normalized, 1))

x = keep("x", rng.normal(0, 1, (2, 6, 9, 11)).astype("float32"))
count = keep("count", np.array([3, 4], "int32"))
regions = keep("regions", np.concatenate([boxes[:6].numpy(), [[-5, -4, 3, 60]]]).astype("float32"))


def with_gradient(name, f):
    """The result, and the gradient of its sum weighted by sines."""
    leaf = x.clone().detach()
    leaf.stop_gradient = False
    y = f(leaf)
    weights = np.sin(np.arange(1, y.size + 1)).reshape(y.shape).astype("float32")
    (y * paddle.to_tensor(weights)).sum().backward()
    keep(name, y)
    keep("grad/" + name, leaf.grad)


for aligned in [True, False]:
    for ratio in [-1, 2]:
        with_gradient(
            f"roi_align/{aligned}/{ratio}",
            lambda x: ops.roi_align(x, regions, count, (3, 2), 0.5, ratio, aligned),
        )
with_gradient("roi_pool", lambda x: ops.roi_pool(x, regions, count, (3, 2), 0.5))

with_gradient("psroi_pool", lambda x: ops.psroi_pool(x, regions, count, (3, 1), 0.5))

image = paddle.zeros([1, 3, 30, 40])
for name, order in [("plain", False), ("order", True)]:
    found = ops.prior_box(x, image, [4.0, 9.0], [8.0, 16.0], [2.0, 3.0], flip=True, clip=True, min_max_aspect_ratios_order=order)
    keep(f"prior_box/{name}", found[0][:2, :2])
keep("prior_box/steps", ops.prior_box(x, image, 5.0, aspect_ratios=0.5, steps=[3.0, 4.0], offset=0.25)[0][:2, :2])

for offset in [True, False]:
    rois = keep("rois", regions * paddle.to_tensor(rng.uniform(1, 20, (7, 1)).astype("float32")))
    found, restore, numbers = ops.distribute_fpn_proposals(rois, 2, 4, 3, 50, offset, rois_num=count)
    keep(f"fpn/{offset}/rois", paddle.concat(found))
    keep(f"fpn/{offset}/restore", restore)
    keep(f"fpn/{offset}/numbers", paddle.stack(numbers))
    keep(f"fpn/{offset}/in", rois)
del out["rois"]

head = keep("head", rng.normal(0, 1, (2, 16, 3, 4)).astype("float32"))
sizes = keep("sizes", np.array([[60, 80], [100, 50]], "int32"))
anchors = [10, 13, 16, 30]
found = [
    ops.yolo_box(head[:, :14], sizes, anchors, 2, 0.4, 32, True, scale_x_y=1.2),
    ops.yolo_box(head, sizes, anchors, 2, 0.4, 32, False, iou_aware=True, iou_aware_factor=0.3),
]
for i, (b, s) in enumerate(found):
    keep(f"yolo_box/{i}/boxes", b)
    keep(f"yolo_box/{i}/scores", s)

names = ["offset", "weight", "bias", "mask"]
shapes = [(2, 2 * 2 * 6, 4, 5), (6, 2, 3, 2), (6,), (2, 2 * 6, 4, 5)]
maps = keep("maps", rng.normal(0, 1, (2, 4, 7, 9)).astype("float32"))
leaves = [maps] + [keep(n, rng.normal(0, 0.7, s).astype("float32")) for n, s in zip(names, shapes)]
for leaf in leaves:
    leaf.stop_gradient = False
m, o, f, b, k = leaves
y = ops.deform_conv2d(m, o, f, b, (2, 2), (1, 1), (1, 1), 2, 2, k)
(y * paddle.to_tensor(np.sin(np.arange(1, y.size + 1)).reshape(y.shape).astype("float32"))).sum().backward()
keep("deform_conv2d", y)
for name, leaf in zip(["maps"] + names, leaves):
    keep("grad/deform_conv2d/" + name, leaf.grad)

# Losses and their gradients: a score of 0, a box without an area, boxes that fit the prediction.
head = keep("yolo/x", rng.normal(0, 1, (2, 14, 4, 4)).astype("float32"))
true = rng.uniform(0.1, 0.6, (2, 5, 4)).astype("float32")
true[1, 1, 2] = 0
true = keep("yolo/boxes", true)
labels = keep("yolo/labels", rng.integers(0, 2, (2, 5)).astype("int32"))
share = rng.uniform(0.1, 1, (2, 5)).astype("float32")
share[1, 4] = 0
share = keep("yolo/scores", share)
pairs = [10, 13, 16, 30, 33, 23]
for i, (score, smooth, scale) in enumerate([(None, True, 1.0), (share, False, 1.2)]):
    leaf = head.clone().detach()
    leaf.stop_gradient = False
    loss = ops.yolo_loss(leaf, true, labels, pairs, [0, 2], 2, 0.3, 16, score, smooth, scale_x_y=scale)
    (loss * paddle.to_tensor([0.3, -1.2])).sum().backward()
    keep(f"yolo/{i}", loss)
    keep(f"yolo/{i}/grad", leaf.grad)
# Boxes in one pixel: Paddle adds up their losses, but not their gradients.
shared = keep("yolo/shared/boxes", paddle.concat([true[:, :4], true[:, 3:4] * paddle.to_tensor([1, 1, 1.1, 0.9])], 1))
keep("yolo/shared", ops.yolo_loss(head, shared, labels, pairs, [0, 2], 2, 0.3, 16))

probs = keep("rpn/scores", rng.permutation(2 * 3 * 4 * 5).reshape(2, 3, 4, 5).astype("float32") / 120)
deltas = keep("rpn/deltas", rng.normal(0, 0.6, (2, 12, 4, 5)).astype("float32"))
extents = keep("rpn/sizes", np.array([[30, 40], [25, 20]], "float32"))
corner = rng.uniform(-4, 30, (4, 5, 3, 2))
places = keep("rpn/anchors", np.concatenate([corner, corner + rng.uniform(1, 14, (4, 5, 3, 2))], 3).astype("float32"))
spread = keep("rpn/variances", rng.uniform(0.1, 3, (4, 5, 3, 4)).astype("float32"))
plans = [(6000, 1000, 0.5, 0.1, 1.0, False), (30, 7, 0.8, 3.0, 0.9, True), (-1, 5, 0.0, 2.0, 1.0, False), (-1, -1, 0.3, 500.0, 1.0, False)]
for i, plan in enumerate(plans):
    found = ops.generate_proposals(probs, deltas, extents, places, spread, *plan, return_rois_num=True)
    for name, value in zip(["rois", "probs", "num"], found):
        keep(f"rpn/{i}/{name}", value)

corner = rng.uniform(0, 20, (2, 12, 2))
several = keep("matrix/boxes", np.concatenate([corner, corner + rng.uniform(5, 15, (2, 12, 2))], 2).astype("float32"))
certain = keep("matrix/scores", rng.permutation(2 * 3 * 12).reshape(2, 3, 12).astype("float32") / 72)
for i, plan in enumerate([(0.2, 0.1, 8, 10, False, 2.0, 0, True), (0.1, 0.2, -1, -1, True, 1.5, -1, False), (2.0, 0.1, 3, 3)]):
    found = ops.matrix_nms(several, certain, *plan, return_index=True)
    for name, value in zip(["out", "num", "index"], found):
        keep(f"matrix/{i}/{name}", value)

path = sys.argv[1] if len(sys.argv) > 1 else "crates/sampan-data/tests/vision_ops.safetensors"
# What is public and no class, with its arguments as Rust writes their defaults.
signatures = {}
for module in ["vision.ops", "vision.transforms"]:
    place = getattr(paddle.vision, module.split(".")[1])
    for name in place.__all__:
        if not isinstance(getattr(place, name), type):
            taken = inspect.signature(getattr(place, name)).parameters.values()
            default = lambda p: "" if p.default is p.empty else "=" + json.dumps(p.default).replace("null", "None")
            signatures[f"{module}.{name}"] = ", ".join(p.name + default(p) for p in taken if p.name != "name")
save_file(out, path, metadata=signatures)
print(len(out), "tensors,", sum(v.nbytes for v in out.values()), "bytes")
