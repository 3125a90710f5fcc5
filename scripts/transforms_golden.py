"""Records what Paddle's `vision.transforms` gives for small pictures, for `sampan-data/tests/suite/transforms.rs`.

    python scripts/transforms_golden.py [crates/sampan-data/tests/transforms.safetensors]

Needs paddlepaddle, pillow, numpy and safetensors. Pictures go in as Pillow's unless a name starts with `chw/`: those are
float tensors, which Paddle treats by other rules.
"""

import sys

import numpy as np
import paddle
from paddle.vision.transforms import functional as F
from PIL import Image
from safetensors.numpy import save_file

out = {}

def smooth(h, w, c, rng):
    """A picture with gradients, edges and noise."""
    y, x = np.mgrid[0:h, 0:w]
    layers = [127 + 90 * np.sin(x / (2.0 + k) + k) + 60 * np.cos(y / (3.0 - 0.5 * k)) for k in range(c)]
    image = np.stack(layers, -1) + rng.normal(0, 25, (h, w, c))
    image[h // 3 : h // 2, w // 4 : w // 2] = [250, 10, 30, 128][:c]
    return np.clip(image, 0, 255).astype(np.uint8)

rng = np.random.default_rng(7)
rgb, gray, rgba = smooth(14, 19, 3, rng), smooth(12, 9, 1, rng)[:, :, 0], smooth(9, 13, 4, rng)
colours = rng.integers(0, 256, (24, 32, 3), dtype=np.uint8)
pictures = {"rgb": rgb, "gray": gray, "rgba": rgba}
for name, picture in {**pictures, "colours": colours}.items():
    out["in/" + name] = picture

def record(name, source, f):
    """The result of `f` on a picture of that name."""
    out[f"{source}/{name}"] = np.ascontiguousarray(np.asarray(f(Image.fromarray({**pictures, "colours": colours}[source]))))

for source in pictures:
    for how in ["nearest", "bilinear", "bicubic", "box", "hamming", "lanczos"]:
        for size in [5, 19, (8, 30), (25, 9)]:
            key = size if isinstance(size, int) else f"{size[0]}x{size[1]}"
            record(f"resize/{how}/{key}", source, lambda i: F.resize(i, size, how))
    for how in ["nearest", "bilinear", "bicubic"]:
        fill = {"rgb": (10, 20, 30), "gray": (40,), "rgba": (10, 20, 30, 40)}[source]
        # Paddle makes three numbers of one; a list goes through as it is.
        for angle, expand, center in [(30, 0, None), (-77.5, 1, None), (200, 0, (3, 4)), (90, 0, None), (45, 1, (2, 9))]:
            at = "" if center is None else f"{center[0]}x{center[1]}"
            record(f"rotate/{how}/{angle}/{expand}/{at}", source, lambda i: F.rotate(i, angle, how, bool(expand), center, fill))
        # Paddle hands Pillow the fill colour in the wrong place, so it is always black.
        record(f"affine/{how}/a", source, lambda i: F.affine(i, 25, (2, -3), 1.2, (10, 5), how, 0))
        record(f"affine/{how}/b", source, lambda i: F.affine(i, 0, (3, 1), 0.7, (0, 0), how, 0))
        record(f"affine/{how}/c", source, lambda i: F.affine(i, -140, (0, 0), 1.0, 20, how, 0, (1, 2)))
        start, end = [[0, 0], [10, 0], [10, 8], [0, 8]], [[1, 2], [9, 1], [8, 7], [2, 8]]
        record(f"perspective/{how}", source, lambda i: F.perspective(i, start, end, how, 0))
    for mode in ["constant", "edge", "reflect", "symmetric"]:
        fill = {"rgb": (10, 20, 30), "gray": 40, "rgba": (10, 20, 30, 40)}[source]
        for name, padding in [("1", 2), ("2", (3, 1)), ("4", (1, 2, 3, 4)), ("far", (25, 20, 30, 40))]:
            if name != "far" or source == "rgba":
                record(f"pad/{mode}/{name}", source, lambda i: F.pad(i, padding, fill, mode))
    for box in [(2, 3, 5, 4), (-2, -3, 8, 9), (5, 4, 12, 20)]:
        record("crop/" + "/".join(map(str, box)), source, lambda i: F.crop(i, *box))
    for size in [(7, 4), (30, 8), (6, 5)]:
        record(f"center_crop/{size[0]}/{size[1]}", source, lambda i: F.center_crop(i, size))
    record("hflip", source, F.hflip)
    record("vflip", source, F.vflip)
    for factor in [0.0, 0.3, 1.7]:
        record(f"brightness/{factor}", source, lambda i: F.adjust_brightness(i, factor))
        record(f"contrast/{factor}", source, lambda i: F.adjust_contrast(i, factor))
        record(f"saturation/{factor}", source, lambda i: F.adjust_saturation(i, factor))
    for n in [1, 3]:
        record(f"grayscale/{n}", source, lambda i: F.to_grayscale(i, n))

record("to_tensor", "rgba", F.to_tensor)
for factor in [-0.5, -0.2, 0.07, 0.5]:
    record(f"hue/{factor}", "colours", lambda i: F.adjust_hue(i, factor))
record("normalize/hwc", "rgb", lambda i: F.normalize(i, [120, 110, 100], [60, 50, 40], "HWC"))
record("normalize/bgr", "rgb", lambda i: F.normalize(i, [120, 110, 100], [60, 50, 40], "HWC", True))
record("erase", "rgb", lambda i: F.erase(i, 2, 3, 5, 4, np.array([1, 2, 3])[None, None, :]))

# Float tensors, channels first.
tensor = F.to_tensor(Image.fromarray(rgb[:9, :12]))

def record_tensor(name, f):
    out["chw/" + name] = np.ascontiguousarray(f(tensor).numpy())

for how in ["nearest", "bilinear", "bicubic", "area"]:
    for size in [5, (13, 7)]:
        record_tensor(f"resize/{how}/{size if isinstance(size, int) else '13x7'}", lambda t: F.resize(t, size, how))
for mode in ["constant", "edge", "reflect"]:
    record_tensor(f"pad/{mode}", lambda t: F.pad(t, (1, 2, 3, 4), 0.5, mode))
record_tensor("crop", lambda t: F.crop(t, 2, 3, 5, 4))
record_tensor("center_crop", lambda t: F.center_crop(t, (7, 4)))
record_tensor("hflip", F.hflip)
record_tensor("vflip", F.vflip)
record_tensor("brightness", lambda t: F.adjust_brightness(t, 1.7))
record_tensor("contrast", lambda t: F.adjust_contrast(t, 1.7))
record_tensor("saturation", lambda t: F.adjust_saturation(t, 1.7))
record_tensor("hue", lambda t: F.adjust_hue(t, 0.2))
record_tensor("grayscale", F.to_grayscale)
record_tensor("normalize", lambda t: F.normalize(t, [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]))
record_tensor("erase", lambda t: F.erase(t, 2, 3, 5, 4, paddle.to_tensor([0.1, 0.2, 0.3])[:, None, None]))
record_tensor("rotate/nearest", lambda t: F.rotate(t, 30.0, "nearest", fill=(0.1, 0.2, 0.3)))
record_tensor("rotate/bilinear", lambda t: F.rotate(t, 30.0, "bilinear", fill=(0.1, 0.2, 0.3)))
record_tensor("rotate/expand", lambda t: F.rotate(t, -77.5, "bilinear", True, fill=(0.1, 0.2, 0.3)))
record_tensor("rotate/center", lambda t: F.rotate(t, 200.0, "bilinear", center=(3, 4), fill=(0.1, 0.2, 0.3)))
record_tensor("affine/nearest", lambda t: F.affine(t, 25, (2, -3), 1.2, (10, 5), "nearest", (0.1, 0.2, 0.3)))
record_tensor("affine/bilinear", lambda t: F.affine(t, 25, (2, -3), 1.2, (10, 5), "bilinear", (0.1, 0.2, 0.3)))
start, end = [[0, 0], [10, 0], [10, 8], [0, 8]], [[1, 2], [9, 1], [8, 7], [2, 8]]
record_tensor("perspective", lambda t: F.perspective(t, start, end, "bilinear", (0.1, 0.2, 0.3)))

path = sys.argv[1] if len(sys.argv) > 1 else "crates/sampan-data/tests/transforms.safetensors"
save_file(out, path)
print(len(out), "pictures,", sum(v.nbytes for v in out.values()), "bytes")
