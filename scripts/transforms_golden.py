"""Records what Paddle's `vision.transforms` gives for small pictures, for `sampan-data/tests/suite/transforms.rs`.

    python scripts/transforms_golden.py            write transforms.safetensors and array_transforms.safetensors
    python scripts/transforms_golden.py --check    compare a live run with the committed files

Needs paddlepaddle, pillow, opencv-python-headless 4, numpy and safetensors. Pictures go in as Pillow's unless a name
starts with `chw/`: those are float tensors, which Paddle treats by other rules. The second file has what becomes of NumPy
arrays, by OpenCV's: version 4, whose arithmetic has been the same for years; version 5 warps by another one.
"""

import pathlib
import sys
from unittest import mock

import cv2
import numpy as np
import paddle
from paddle.vision.transforms import functional as F
from PIL import Image
from safetensors.numpy import load_file, save_file

if not cv2.__version__.startswith("4."):
    raise SystemExit(f"OpenCV {cv2.__version__} warps by other rules; install opencv-python-headless<5")

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

# NumPy arrays.
arrays = {"rgb": rgb, "gray": gray, "rgba": rgba, "colours": colours, "floats": (rgb * np.float32(0.97) + np.float32(1.3))}
array_out = {"in/" + name: picture for name, picture in arrays.items()}

def record_array(name, source, f):
    array_out[f"{source}/{name}"] = np.ascontiguousarray(np.asarray(f(arrays[source].copy())))

for source in arrays:
    # Paddle's arrays take one number for the first channel alone; a list goes through as it is.
    for how in ["nearest", "bilinear", "bicubic", "area", "lanczos"]:
        for size in [5, 19, (8, 30), (25, 9), (12, 16), (8, 8)]:
            key = size if isinstance(size, int) else f"{size[0]}x{size[1]}"
            record_array(f"resize/{how}/{key}", source, lambda i: F.resize(i, size, how))
        if source == "colours":
            continue
        fill = 40 if source == "gray" else (10, 20, 30, 40)
        for angle, expand, center in [(30, 0, None), (-77.5, 1, None), (200, 0, (3, 4)), (90, 0, None), (45, 1, (2, 9))]:
            at = "" if center is None else f"{center[0]}x{center[1]}"
            record_array(f"rotate/{how}/{angle}/{expand}/{at}", source, lambda i: F.rotate(i, angle, how, bool(expand), center, fill))
        record_array(f"affine/{how}/a", source, lambda i: F.affine(i, 25, (2, -3), 1.2, (10, 5), how, 0))
        record_array(f"affine/{how}/b", source, lambda i: F.affine(i, 0, (3, 1), 0.7, (0, 0), how, 0))
        record_array(f"affine/{how}/c", source, lambda i: F.affine(i, -14, (4, 9), 1.0, 20, how, 0, (1, 2)))
        record_array(f"perspective/{how}", source, lambda i: F.perspective(i, start, end, how, 0))
    for mode in ["constant", "edge", "reflect", "symmetric"] if source != "colours" else []:
        for name, padding in [("1", 2), ("2", (3, 1)), ("4", (1, 2, 3, 4))]:
            record_array(f"pad/{mode}/{name}", source, lambda i: F.pad(i, padding, fill, mode))
    record_array("hflip", source, F.hflip)
    record_array("vflip", source, F.vflip)
    if source != "gray":
        for box in [(2, 3, 5, 4), (5, 4, 12, 20)]:
            record_array("crop/" + "/".join(map(str, box)), source, lambda i: F.crop(i, *box))
        record_array("center_crop/6/5", source, lambda i: F.center_crop(i, (6, 5)))
    for factor in [0.0, 0.3, 1.7]:
        record_array(f"brightness/{factor}", source, lambda i: F.adjust_brightness(i, factor))
        if source != "floats":
            record_array(f"contrast/{factor}", source, lambda i: F.adjust_contrast(i, factor))
        if source in ("rgb", "colours", "floats"):
            # Paddle draws the factor at random, from around the one it is given.
            with mock.patch("numpy.random.uniform", lambda low, high: factor):
                record_array(f"saturation/{factor}", source, lambda i: F.adjust_saturation(i, factor))
    if source in ("rgb", "colours", "floats"):
        for factor in [-0.5, -0.2, 0.07, 0.5]:
            record_array(f"hue/{factor}", source, lambda i: F.adjust_hue(i, factor))
        for n in [1, 3]:
            record_array(f"grayscale/{n}", source, lambda i: F.to_grayscale(i, n))
    record_array("to_tensor", source, F.to_tensor)
    if source in ("rgb", "floats"):
        record_array("normalize/hwc", source, lambda i: F.normalize(i, [120, 110, 100], [60, 50, 40], "HWC"))
        record_array("normalize/bgr", source, lambda i: F.normalize(i, [120, 110, 100], [60, 50, 40], "HWC", True))
record_array("erase", "rgb", lambda i: F.erase(i, 2, 3, 5, 4, np.array([1, 2, 3])[None, None, :]))

folder = pathlib.Path(__file__).parent.parent / "crates/sampan-data/tests"
for file, made in [("transforms.safetensors", out), ("array_transforms.safetensors", array_out)]:
    if "--check" not in sys.argv:
        save_file(made, folder / file)
        print(file, len(made), "pictures,", sum(v.nbytes for v in made.values()), "bytes")
        continue
    kept = load_file(folder / file)
    other = [name for name in sorted(kept.keys() | made.keys()) if not (name in kept and name in made)]
    for name in sorted(kept.keys() & made.keys()):
        a, b = kept[name], made[name]
        near = 1 if a.dtype == np.uint8 else 1e-4
        if a.shape != b.shape or a.dtype != b.dtype or np.abs(a.astype(float) - b).max() > near:
            other.append(name)
    print(file, "agrees" if not other else f"differs: {' '.join(other)}")
    if other:
        sys.exit(1)
