"""`sampan.vision.transforms`: every kind of picture in and out, Pillow's bits, your own transforms."""

import copy
import inspect
import pathlib
import pickle
import subprocess
import sys

import numpy as np
import pytest
import sampan
from sampan.vision import transforms as T
from sampan.vision.transforms import functional as F

Image = pytest.importorskip("PIL.Image")
from PIL import ImageEnhance, ImageOps  # noqa: E402

RNG = np.random.default_rng(3)
BYTES = RNG.integers(0, 256, (24, 31, 3), dtype=np.uint8)
PICTURE = Image.fromarray(BYTES)
GRAY = Image.fromarray(BYTES[:, :, 0])
FILTERS = {
    "nearest": Image.NEAREST,
    "bilinear": Image.BILINEAR,
    "bicubic": Image.BICUBIC,
    "box": Image.BOX,
    "lanczos": Image.LANCZOS,
    "hamming": Image.HAMMING,
}


def same(a, b):
    """Are two of Pillow's pictures the same?"""
    return a.mode == b.mode and a.size == b.size and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("how", FILTERS)
@pytest.mark.parametrize("picture", [PICTURE, GRAY, PICTURE.convert("RGBA"), PICTURE.convert("YCbCr")], ids=lambda p: p.mode)
def test_resize_is_pillows(picture, how):
    assert same(F.resize(picture, (11, 40), how), picture.resize((40, 11), FILTERS[how]))
    assert same(F.resize(picture, 12, how), picture.resize((15, 12), FILTERS[how]))


@pytest.mark.parametrize(
    "ours, pillows",
    [
        (lambda p: F.hflip(p), lambda p: p.transpose(Image.FLIP_LEFT_RIGHT)),
        (lambda p: F.vflip(p), lambda p: p.transpose(Image.FLIP_TOP_BOTTOM)),
        (lambda p: F.crop(p, -2, 3, 10, 40), lambda p: p.crop((3, -2, 43, 8))),
        (lambda p: F.center_crop(p, 7), lambda p: p.crop((12, 8, 19, 15))),
        (lambda p: F.pad(p, (1, 2, 3, 4), (9, 8, 7)), lambda p: ImageOps.expand(p, (1, 2, 3, 4), (9, 8, 7))),
        (lambda p: F.rotate(p, 33, "bilinear", True), lambda p: p.rotate(33, Image.BILINEAR, True)),
        (lambda p: F.rotate(p, 90, expand=True), lambda p: p.rotate(90, expand=True)),
        (lambda p: F.adjust_brightness(p, 1.3), lambda p: ImageEnhance.Brightness(p).enhance(1.3)),
        (lambda p: F.adjust_contrast(p, 0.4), lambda p: ImageEnhance.Contrast(p).enhance(0.4)),
        (lambda p: F.adjust_saturation(p, 1.7), lambda p: ImageEnhance.Color(p).enhance(1.7)),
        (lambda p: F.to_grayscale(p), lambda p: p.convert("L")),
    ],
)
def test_functions_are_pillows(ours, pillows):
    assert same(ours(PICTURE), pillows(PICTURE))


def test_arrays_and_tensors_stay_what_they_are():
    out = F.resize(BYTES, 12)
    assert isinstance(out, np.ndarray) and out.shape == (12, 15, 3) and out.dtype == "uint8"
    assert np.array_equal(F.hflip(BYTES), BYTES[:, ::-1])
    tensor = sampan.to_tensor(BYTES.transpose(2, 0, 1).astype("float32") / 255)
    assert F.resize(tensor, (8, 9)).shape == [3, 8, 9]
    assert np.array_equal(F.hflip(tensor).numpy(), tensor.numpy()[:, :, ::-1])
    # Three rows are rows, not channels, in an array; in a tensor the first axis is the channels'.
    assert F.hflip(np.arange(12.0).reshape(3, 4, 1))[0, 0, 0] == 3.0
    assert F.hflip(sampan.arange(12.0).reshape([3, 1, 4]))[0, 0, 0] == 3.0


@pytest.mark.parametrize("mode", ["1", "L", "P", "I", "F", "LA", "RGB", "RGBA", "YCbCr", "HSV", "I;16"])
def test_modes_of_pillow_stay(mode):
    picture = {"I;16": lambda: GRAY.convert("I").convert("I;16"), "LA": lambda: GRAY.convert("LA")}.get(
        mode, lambda: PICTURE.convert(mode)
    )()
    flipped, expected = F.hflip(picture), picture.transpose(Image.FLIP_LEFT_RIGHT)
    assert np.array_equal(np.asarray(flipped), np.asarray(expected))
    if mode != "I;16":
        assert flipped.mode == mode
    values = F.to_tensor(picture)
    assert values.dtype == ("int32" if mode in ("I", "I;16") else "float32")
    if mode == "P":
        assert flipped.convert("RGB").tobytes() == expected.convert("RGB").tobytes()
        with pytest.raises(TypeError, match="Hint"):
            F.resize(picture, 9)


def test_to_tensor_and_normalize():
    x = T.ToTensor()(PICTURE)
    assert x.shape == [3, 24, 31] and np.array_equal(x.numpy(), BYTES.transpose(2, 0, 1).astype("float32") / np.float32(255))
    assert T.ToTensor("HWC")(BYTES).shape == [24, 31, 3]
    assert T.ToTensor()(x) is x and F.to_tensor(x, "HWC").shape == [24, 31, 3]
    assert F.to_tensor(BYTES.astype("float64")).dtype == sampan.float64
    y = T.Normalize(127.5, 127.5, data_format="HWC")(PICTURE)
    assert isinstance(y, np.ndarray) and y.dtype == np.float32
    assert np.array_equal(y, (BYTES.astype("float32") - np.float32(127.5)) / np.float32(127.5))
    turned = F.normalize(BYTES, [0, 0, 0], [1, 1, 1], "HWC", to_rgb=True)
    assert np.array_equal(turned, BYTES[:, :, ::-1].astype("float32"))
    assert np.array_equal(F.normalize(x, [0, 0, 0], [1, 1, 1], to_rgb=True).numpy(), x.numpy())
    z = T.Transpose()(PICTURE)
    assert isinstance(z, np.ndarray) and np.array_equal(z, BYTES.transpose(2, 0, 1))
    assert T.Transpose()(GRAY).shape == (1, 24, 31)


RANDOM = [
    T.RandomResizedCrop(10),
    T.RandomHorizontalFlip(),
    T.RandomVerticalFlip(),
    T.BrightnessTransform(0.4),
    T.SaturationTransform(0.4),
    T.ContrastTransform(0.4),
    T.HueTransform(0.4),
    T.ColorJitter(0.4, 0.4, 0.4, 0.4),
    T.RandomCrop(9, padding=2),
    T.RandomAffine(20, translate=(0.2, 0.2), scale=(0.5, 1.5), shear=[-5, 5]),
    T.RandomRotation(30, interpolation="bilinear"),
    T.RandomPerspective(prob=1.0),
    T.RandomErasing(prob=1.0),
]


@pytest.mark.parametrize("transform", RANDOM, ids=lambda t: type(t).__name__)
def test_random_transforms_follow_the_seed(transform):
    def run(seed):
        sampan.seed(seed)
        out = transform(PICTURE)
        assert isinstance(out, Image.Image) and out.mode == "RGB"
        return out.tobytes()

    assert run(5) == run(5)
    assert any(run(seed) != run(5) for seed in range(6, 20))
    sampan.seed(5)
    drawn = transform(BYTES)
    assert isinstance(drawn, np.ndarray) and drawn.shape == np.asarray(transform(PICTURE)).shape


def test_compose_runs_neighbours_together_with_the_same_result():
    steps = [T.Resize(20), T.RandomCrop(16), T.ColorJitter(0.3), T.ToTensor(), T.Normalize([0.5] * 3, [0.25] * 3)]
    sampan.seed(1)
    together = T.Compose(steps)(PICTURE)
    sampan.seed(1)
    apart = PICTURE
    for step in steps:
        apart = step(apart)
    assert together.shape == [3, 16, 16] and np.array_equal(together.numpy(), apart.numpy())
    both = T.Compose([*steps[:2], lambda p: p.convert("L"), T.ToTensor()])
    assert both(PICTURE).shape == [1, 16, 16]
    # A list that changes is seen.
    both.transforms.append(lambda x: x * 0)
    assert both(PICTURE).abs().sum() == 0
    assert repr(T.Compose([T.Resize(4)])) == "Compose(\n    Resize(size=4, interpolation='bilinear')\n)"
    with pytest.raises(ValueError, match="RandomCrop"):
        T.Compose([T.Resize(4), T.RandomCrop(5), T.ToTensor()])(PICTURE)


class Shift(T.BaseTransform):
    """One random number for all fields of a sample."""

    def _get_params(self, inputs):
        return int(sampan.randint(1, 5, [1]))

    def _apply_image(self, image):
        return image + self.params

    def _apply_coords(self, coords):
        return coords + self.params

    def _apply_label(self, label):
        return -label


def test_own_transforms():
    shift = Shift(keys=("image", "coords", "label"))
    image, coords, label, rest = shift((10, 20, 3, "rest"))
    assert (image - 10, label, rest) == (coords - 20, -3, "rest") and 1 <= shift.params < 5
    with pytest.raises(NotImplementedError, match="weight"):
        Shift(keys=("image", "weight"))
    with pytest.raises(ValueError, match="sequence"):
        Shift(keys=3)
    flip = T.RandomHorizontalFlip(prob=1.0, keys=("image", "image"))
    a, b, c = flip((PICTURE, GRAY, "label"))
    assert same(a, ImageOps.mirror(PICTURE)) and same(b, ImageOps.mirror(GRAY)) and c == "label"
    with pytest.raises(NotImplementedError, match="_apply_boxes"):
        T.RandomHorizontalFlip(keys=("image", "boxes"))((PICTURE, 1))

    class Half(T.Resize):
        def _apply_image(self, image):
            return super()._apply_image(image.crop((0, 0, 8, 8)))

    assert T.Compose([Half(4), T.ToTensor()])(PICTURE).shape == [3, 4, 4]


def test_settings_are_attributes():
    assert list(inspect.signature(T.Resize).parameters) == ["size", "interpolation", "keys"]
    t = T.RandomCrop(8, pad_if_needed=True)
    assert (t.size, t.padding, t.fill, T.Resize((3, 4)).size) == ((8, 8), None, 0, [3, 4])
    flip = T.RandomHorizontalFlip(0.0)
    assert flip(PICTURE) is PICTURE
    flip.prob = 1.0
    assert same(flip(PICTURE), ImageOps.mirror(PICTURE))
    with pytest.raises(ValueError):
        flip.prob = 2.0
    assert flip.prob == 1.0
    for other in (pickle.loads(pickle.dumps(flip)), copy.deepcopy(flip)):
        assert other.prob == 1.0 and same(other(PICTURE), ImageOps.mirror(PICTURE))
    both = pickle.loads(pickle.dumps(T.Compose([flip, T.ToTensor()])))
    assert both(PICTURE).shape == [3, 24, 31]
    assert F.resize is not None and pickle.loads(pickle.dumps(F.resize))(PICTURE, 9).size == (11, 9)


def test_erase():
    out = F.erase(PICTURE, 2, 3, 4, 5, np.array([1, 2, 3]))
    expected = BYTES.copy()
    expected[2:6, 3:8] = [1, 2, 3]
    assert np.array_equal(np.asarray(out), expected) and np.array_equal(np.asarray(PICTURE), BYTES)
    array = BYTES.copy()
    assert F.erase(array, 2, 3, 4, 5, np.array([1, 2, 3]), inplace=True) is array and np.array_equal(array, expected)
    tensor = sampan.ones([3, 6, 6])
    assert F.erase(tensor, 0, 0, 2, 2, sampan.zeros([3, 1, 1]), inplace=True) is tensor
    assert tensor.sum() == 3 * 32
    erased = T.RandomErasing(prob=1.0, value="random", inplace=True)(BYTES)
    assert not np.array_equal(erased, BYTES)


def test_tensors_follow_paddles_own_rules():
    # Numbers recorded from Paddle 3.3.1.
    x = sampan.arange(0, 12, dtype="float32").reshape([3, 2, 2]) / 12
    close = lambda a, b: np.testing.assert_allclose(a.numpy().ravel(), b, atol=2e-6)  # noqa: E731
    close(F.adjust_brightness(x, 1.5)[2], [1.0, 1.0, 1.0, 1.0])
    close(F.rotate(x, 90)[0], [1 / 12, 3 / 12, 0.0, 2 / 12])
    close(F.pad(x[:1], 1, padding_mode="reflect")[0, 0], [3 / 12, 2 / 12, 3 / 12, 2 / 12])


def test_errors_say_what_was_wrong():
    with pytest.raises(TypeError, match="img should be PIL Image or Tensor Image or ndarray"):
        F.hflip("picture.png")
    with pytest.raises(TypeError, match="ndarray"):
        T.Resize(4)(np.zeros([2, 2, 2, 2, 2]))
    with pytest.raises(ValueError, match="interpolation"):
        T.Resize(4, "cubic")
    with pytest.raises(TypeError, match="img"):
        F.resize(size=3)
    with pytest.raises(TypeError, match="mode CMYK"):
        F.hflip(PICTURE.convert("CMYK"))


def test_image_backends(tmp_path):
    path = tmp_path / "a.png"
    PICTURE.save(path)
    vision = sampan.vision
    assert vision.get_image_backend() == "pil" and same(vision.image_load(path).convert("RGB"), PICTURE)
    try:
        vision.set_image_backend("cv2")
        assert np.array_equal(vision.image_load(str(path)), BYTES[:, :, ::-1])
    finally:
        vision.set_image_backend("pil")
    assert np.array_equal(vision.image_load(path, backend="tensor").numpy(), BYTES.transpose(2, 0, 1))
    with pytest.raises(ValueError, match="'pil', 'cv2', 'tensor'"):
        vision.set_image_backend("gif")


def test_nothing_else_is_imported():
    code = "import sys, sampan; print([m for m in ('PIL', 'numpy') if m in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


# What PaddlePaddle 3.3.1 with OpenCV 4 makes of arrays, by `scripts/transforms_golden.py`.
GOLDEN = sampan.load(
    pathlib.Path(__file__).parents[2] / "crates/sampan-data/tests/array_transforms.safetensors", return_numpy=True
)
FILL = (10, 20, 30)
START, END = [[0, 0], [10, 0], [10, 8], [0, 8]], [[1, 2], [9, 1], [8, 7], [2, 8]]
ARRAYS = {
    "rgb/resize/bilinear/8x30": lambda a: F.resize(a, (8, 30)),
    "rgb/resize/nearest/5": lambda a: F.resize(a, 5, "nearest"),
    "rgb/resize/lanczos/25x9": lambda a: F.resize(a, (25, 9), "lanczos"),
    "rgb/resize/area/8x8": lambda a: F.resize(a, [8, 8], "area"),
    "gray/resize/area/8x8": lambda a: F.resize(a, [8, 8], "area"),
    "rgb/rotate/bilinear/90/0/": lambda a: F.rotate(a, 90, "bilinear", fill=FILL),
    "rgb/rotate/nearest/-77.5/1/": lambda a: F.rotate(a, -77.5, "nearest", True, fill=FILL),
    "rgb/affine/bicubic/a": lambda a: F.affine(a, 25, (2, -3), 1.2, (10, 5), "bicubic"),
    "rgb/perspective/bilinear": lambda a: F.perspective(a, START, END, "bilinear"),
    "rgb/perspective/lanczos": lambda a: F.perspective(a, START, END, "lanczos"),
    "rgb/crop/5/4/12/20": lambda a: F.crop(a, 5, 4, 12, 20),
    "rgb/brightness/1.7": lambda a: F.adjust_brightness(a, 1.7),
    "floats/brightness/1.7": lambda a: F.adjust_brightness(a, 1.7),
    "rgb/contrast/0.3": lambda a: F.adjust_contrast(a, 0.3),
    "rgb/saturation/1.7": lambda a: F.adjust_saturation(a, 1.7),
    "rgb/hue/-0.2": lambda a: F.adjust_hue(a, -0.2),
    "rgb/grayscale/1": lambda a: F.to_grayscale(a),
    "rgb/grayscale/3": lambda a: F.to_grayscale(a, 3),
}


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_are_opencvs(name):
    array = GOLDEN["in/" + name.split("/")[0]]
    before, got, want = array.copy(), ARRAYS[name](array), GOLDEN[name]
    assert got.dtype == want.dtype and np.array_equal(got, want) and np.array_equal(array, before)


def test_classes_treat_arrays_as_functions_do():
    array = GOLDEN["in/rgb"]
    pairs = [
        (T.Resize((8, 30)), "rgb/resize/bilinear/8x30"),
        (T.RandomRotation((90, 90), "bilinear", fill=FILL), "rgb/rotate/bilinear/90/0/"),
        (T.ContrastTransform((0.3, 0.3)), "rgb/contrast/0.3"),
        (T.ColorJitter(hue=(-0.2, -0.2)), "rgb/hue/-0.2"),
        (T.Grayscale(), "rgb/grayscale/1"),
    ]
    for transform, name in pairs:
        assert np.array_equal(transform(array), GOLDEN[name])
    both = T.Compose([T.Resize((2, 3)), T.Grayscale()])(array)
    assert np.array_equal(both, F.to_grayscale(F.resize(array, (2, 3))))
    # One number is the colour of all channels: Paddle's arrays have it in the first alone.
    assert (F.pad(array, 1, 9)[0] == 9).all()
    with pytest.raises(ValueError, match="Pillow's"):
        F.resize(array, 2, "hamming")
