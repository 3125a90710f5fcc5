"""Records what Paddle's `vision.ops` gives for small inputs, for `sampan-data/tests/suite/vision_ops.rs`.

    python scripts/vision_ops_golden.py [crates/sampan-data/tests/vision_ops.safetensors]

Needs paddlepaddle, numpy and safetensors.
"""

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

x = keep("x", rng.normal(0, 1, (2, 3, 9, 11)).astype("float32"))
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

path = sys.argv[1] if len(sys.argv) > 1 else "crates/sampan-data/tests/vision_ops.safetensors"
save_file(out, path)
print(len(out), "tensors,", sum(v.nbytes for v in out.values()), "bytes")
