"""Sets of pictures: the bundled digits, files in the forms in which they are published, folders."""

import gzip
import io
import pickle
import struct
import tarfile

import numpy as np
import pytest

import sampan
from sampan import _core
from sampan.io import DataLoader, Subset
from sampan.vision import transforms as T
from sampan.vision.datasets import (
    MNIST,
    VOC2012,
    Cifar10,
    Cifar100,
    DatasetFolder,
    FashionMNIST,
    Flowers,
    ImageFolder,
)

Image = pytest.importorskip("PIL.Image")


@pytest.fixture(autouse=True)
def home(tmp_path, monkeypatch):
    """A home without a cache."""
    folder = tmp_path / "home"
    folder.mkdir()
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.delenv("SAMPAN_HOME", raising=False)
    return folder


def idx(values):
    values = np.asarray(values, "uint8")
    return struct.pack(f">HBB{values.ndim}I", 0, 8, values.ndim, *values.shape) + values.tobytes()


def digits(n=6):
    return np.arange(n * 28 * 28).reshape(n, 28, 28).astype("uint8"), np.arange(n) % 10


def put_digits(folder, prefix="train", n=6):
    images, labels = digits(n)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{prefix}-images-idx3-ubyte.gz", folder / f"{prefix}-labels-idx1-ubyte.gz"]
    for path, values in zip(paths, (images, labels)):
        path.write_bytes(gzip.compress(idx(values)))
    return paths


def archive(path, files):
    with tarfile.open(path, "w:gz") as tar:
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
    return path


def picture(color, size=(4, 3), form="png"):
    out = io.BytesIO()
    Image.new("RGB", size, color).save(out, form)
    return out.getvalue()


def test_the_bundled_digits():
    train, test = MNIST(), MNIST(mode="Test", backend="cv2", download=False)
    assert (len(train), len(test)) == (60000, 10000)
    image, label = train[0]
    assert isinstance(image, Image.Image) and image.mode == "L" and image.size == (28, 28)
    assert label.dtype == np.int64 and label.tolist() == [5]
    image, label = test[-1]
    assert image.dtype == np.float32 and image.shape == (28, 28) and image.max() == 254 and label.tolist() == [6]
    assert np.array_equal(np.array(MNIST(mode="test")[-1][0]), image)
    with pytest.raises(IndexError, match="MNIST has 10000 samples, there is none at index 10000"):
        test[10000]
    for arguments in ({"mode": "valid"}, {"backend": "tensor"}, {"image_path": __file__}):
        with pytest.raises(ValueError, match="MNIST"):
            MNIST(**arguments)


def test_files_of_digits(home, tmp_path):
    paths = put_digits(tmp_path)
    images, labels = digits()
    given = MNIST(str(paths[0]), str(paths[1]), backend="cv2")
    assert len(given) == 6 and all(np.array_equal(given[i][0], images[i]) for i in range(6))
    # What lies where Paddle puts it comes before the bundled set, whatever its md5 sum.
    put_digits(home / ".cache" / "paddle" / "dataset" / "mnist", n=4)
    assert len(MNIST()) == 4 and len(MNIST(mode="test")) == 10000
    assert MNIST.TRAIN_IMAGE_MD5 and MNIST.TRAIN_IMAGE_URL.endswith("train-images-idx3-ubyte.gz")
    put_digits(home / ".cache" / "paddle" / "dataset" / "fashion-mnist", "t10k", n=3)
    assert len(FashionMNIST(mode="test")) == 3
    with pytest.raises(FileNotFoundError, match="image_path='nowhere' does not exist"):
        MNIST("nowhere", "nowhere")
    paths[0].write_bytes(gzip.compress(idx(images)[:-1]))
    with pytest.raises(ValueError, match="not an idx file.*train-images"):
        MNIST(str(paths[0]), str(paths[1]))
    changed = MNIST(backend="cv2")
    changed.images, changed.labels = changed.images[:2], changed.labels[:2]
    assert len(changed) == 2 and [b[0].shape for b in DataLoader(changed, batch_size=4)] == [[2, 28, 28]]


def test_without_files_and_network():
    for cls in (FashionMNIST, Cifar10, Flowers, VOC2012):
        with pytest.raises(ValueError, match=f"{cls.__name__}: .* is not set and download=False"):
            cls(download=False)


class Halves:
    """Half of every value, channels first."""

    __module__ = "tests"

    def __call__(self, image):
        values = np.array(image, "float32") / 2
        return values[None] if values.ndim == 2 else values.transpose(2, 0, 1)


def pointwise(name="Normalize", base=Halves):
    """The same transform, taken for one of the package."""
    return type(name, (base,), {"__module__": "sampan.vision.transforms.transforms"})()


def batches(data, **more):
    sampan.seed(5)
    return [[field.numpy() for field in b] for b in DataLoader(data, batch_size=7, shuffle=True, **more)]


def same(a, b):
    pairs = [(x, y) for xs, ys in zip(a, b, strict=True) for x, y in zip(xs, ys, strict=True)]
    return all(x.dtype == y.dtype and np.array_equal(x, y) for x, y in pairs)


def cifar(path, classes=10):
    rows = np.arange(6 * 3072).reshape(6, 3072) % 251
    label = b"labels" if classes == 10 else b"fine_labels"
    batch = pickle.dumps({b"data": rows.astype("uint8"), label: [3, 1, 4, 1, 5, 9]}, protocol=2)
    names = ["c/data_batch_1", "c/test_batch"] if classes == 10 else ["c/train", "c/test"]
    return str(archive(path, dict.fromkeys(names, batch)))


def sets(tmp_path, transform, backend):
    paths = map(str, put_digits(tmp_path, n=9))
    yield MNIST(*paths, transform=transform, backend=backend)
    yield Cifar10(cifar(tmp_path / "c.tgz"), transform=transform, backend=backend)


@pytest.mark.parametrize("backend", ["pil", "cv2"])
def test_batches_of_the_core_are_those_of_python(tmp_path, backend):
    slow = [batches(d) for d in sets(tmp_path, Halves(), backend)]
    for workers in (0, 2):
        fast = [batches(d, num_workers=workers) for d in sets(tmp_path, pointwise(), backend)]
        assert all(map(same, fast, slow))
    assert [s[0][0].shape for s in slow] == [(7, 1, 28, 28), (6, 3, 32, 32)]
    data = next(sets(tmp_path, pointwise(), backend))
    assert type(DataLoader(data, batch_size=2)._fast_pass()._batches).__name__ == "RustPass"


CHAINS = {
    "to_tensor": [T.ToTensor()],
    "normalize": [T.Normalize(127.5, 127.5)],
    "both": [T.ToTensor(), T.Normalize(0.5, 0.5)],
    "geometry": [T.Resize(20), T.CenterCrop(16), T.ToTensor()],
    "random": [T.RandomHorizontalFlip(), T.RandomCrop(24, padding=2), T.ToTensor(), T.Normalize(0.1, 0.3)],
}


@pytest.mark.parametrize("backend", ["pil", "cv2"])
@pytest.mark.parametrize("chain", CHAINS)
def test_transforms_of_the_package_run_in_the_core(tmp_path, chain, backend):
    transform = T.Compose(CHAINS[chain])
    slow, fast = sets(tmp_path, lambda x: transform(x), backend), sets(tmp_path, transform, backend)
    for by_python, by_core in zip(slow, fast):
        # Without ToTensor the channels of a colour picture are not where Normalize looks for them.
        if chain != "normalize" or isinstance(by_core, MNIST):
            assert DataLoader(by_core, batch_size=2)._fast_pass() is not None
            expected = batches(by_python)
            assert same(batches(by_core), expected) and same(batches(by_core, num_workers=2), expected)
            part = [batches(Subset(data, [5, 0, 3])) for data in (by_core, by_python)]
            assert chain == "random" or same(*part)


def test_what_is_not_pointwise_is_left_to_python(tmp_path):
    class Turned(Halves):
        def __call__(self, image):
            return super().__call__(image)[::-1].copy()

    _, swapped = sets(tmp_path, pointwise(base=Turned), "cv2")
    assert DataLoader(swapped, batch_size=2)._fast_pass() is None
    lasts = Cifar10(cifar(tmp_path / "c.tgz"), backend="cv2")
    assert same(batches(lasts), batches(Subset(lasts, range(6)), collate_fn=sampan.io.collate.default_collate_fn))


@pytest.mark.parametrize(("cls", "classes"), [(Cifar10, 10), (Cifar100, 100)])
def test_cifar(tmp_path, cls, classes):
    path = cifar(tmp_path / "c.tgz", classes)
    data = cls(path, mode="test", backend="cv2")
    image, label = data[2]
    assert len(data) == 6 and image.shape == (32, 32, 3) and image.dtype == np.float32
    assert label.dtype == np.int64 and label.shape == () and label == 4
    assert image[1, 2].tolist() == [(2 * 3072 + c * 1024 + 34) % 251 for c in range(3)]
    assert data.data[2][0].tolist() == [v % 251 for v in range(2 * 3072, 3 * 3072)] and data.data[2][1] == 4
    assert cls(path)[0][0].mode == "RGB"


def test_folders(tmp_path):
    for name in ("b/1.png", "a/2.PNG", "a/deep/3.jpg", "a/note.txt"):
        path = tmp_path / "root" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"text" if name.endswith("txt") else picture((9, 0, 0)))
    root = str(tmp_path / "root")
    data = DatasetFolder(root)
    assert data.classes == ["a", "b"] and data.class_to_idx == {"a": 0, "b": 1} and data.targets == [0, 0, 1]
    assert [p.removeprefix(root) for p, _ in data.samples] == ["/a/2.PNG", "/a/deep/3.jpg", "/b/1.png"]
    image, target = data[2]
    assert image.mode == "RGB" and image.size == (4, 3) and target == 1
    texts = ImageFolder(root, loader=lambda p: open(p).read(), extensions=[".txt"], transform=str.upper)
    assert len(texts) == 1 and texts[0] == ["TEXT"]
    assert len(ImageFolder(root)) == 3 and len(ImageFolder(root, is_valid_file=lambda p: "deep" in p)) == 1
    with pytest.raises(RuntimeError, match="found 0 files.*Supported extensions are: .gif"):
        DatasetFolder(root, extensions=[".gif"])
    with pytest.raises(ValueError, match="not both"):
        ImageFolder(root, extensions=[".gif"], is_valid_file=len)
    with pytest.raises(FileNotFoundError, match="there is no folder 'nowhere'"):
        DatasetFolder("nowhere")


def test_voc(tmp_path):
    base = "VOCdevkit/VOC2012/"
    files = {base + f"ImageSets/Segmentation/{part}.txt": b"x\ny\n" for part in ("train", "trainval", "val")}
    for name, color in (("x", (200, 0, 0)), ("y", (0, 0, 200))):
        files[base + f"JPEGImages/{name}.jpg"] = picture(color, form="jpeg")
        files[base + f"SegmentationClass/{name}.png"] = picture(color)
    path = str(archive(tmp_path / "voc.tar", files))
    image, label = VOC2012(path)[0]
    assert image.size == (4, 3) and isinstance(label, Image.Image)
    data = VOC2012(path, mode="valid", backend="cv2", transform=lambda a: a / 2)
    assert len(data) == 2 and data[1][0].dtype == np.float32 and data[1][1][0, 0].tolist() == [0, 0, 200]
    # Each process reads the archive through a file of its own.
    labels = [b[1][0, 0, 0].tolist() for b in DataLoader(data, num_workers=2)]
    assert labels == [[200.0, 0.0, 0.0], [0.0, 0.0, 200.0]]


def mat(**arrays):
    """A MATLAB file of row vectors."""

    def element(kind, data):
        return struct.pack("<II", kind, len(data)) + data + bytes(-len(data) % 8)

    out = b"MATLAB 5.0".ljust(124) + struct.pack("<H2s", 0x0100, b"IM")
    for name, values in arrays.items():
        body = element(6, struct.pack("<II", 6, 0)) + element(5, struct.pack("<ii", 1, len(values)))
        out += element(14, body + element(1, name.encode()) + element(9, np.array(values, "<f8").tobytes()))
    return out


def test_flowers(tmp_path):
    files = {f"jpg/image_{i:05}.jpg": picture((40 * i, 0, 0), form="jpeg") for i in (1, 2, 3)}
    paths = [archive(tmp_path / "102flowers.tgz", files), tmp_path / "imagelabels.mat", tmp_path / "setid.mat"]
    paths[1].write_bytes(mat(labels=[77, 3, 20]))
    paths[2].write_bytes(mat(tstid=[3, 1], trnid=[2], valid=[1]))
    train = Flowers(*map(str, paths))
    image, label = train[0]
    assert len(train) == 2 and image.size == (4, 3) and label.dtype == np.int64 and label.tolist() == [20]
    image, label = Flowers(*map(str, paths), mode="test", backend="cv2")[0]
    assert image.dtype == np.float32 and label.tolist() == [3]
