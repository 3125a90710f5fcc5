"""The MNIST epoch through each library's loader: the same files, transforms and batch size, in the main process."""

import gzip
import os
import pathlib
import shutil
import tempfile

from work import Work, workload

DATA = pathlib.Path(__file__).resolve().parent.parent.parent / "data/mnist"
MEAN, STD = 0.1307, 0.3081


def unpacked():
    """A folder of the form that torchvision wants, with the training set's files unpacked."""
    root = pathlib.Path(tempfile.gettempdir()) / "sampan-bench-mnist"
    raw = root / "MNIST/raw"
    raw.mkdir(parents=True, exist_ok=True)
    for packed in DATA.glob("*.gz"):
        target = raw / packed.stem
        if not target.exists():
            # Several contenders may be at it.
            part = f"{target}.{os.getpid()}"
            with gzip.open(packed) as source, open(part, "wb") as file:
                shutil.copyfileobj(source, file)
            os.replace(part, target)
    return str(root)


def digits(api, transform):
    if api.module.__name__ == "torch":
        from torchvision.datasets import MNIST

        return MNIST(unpacked(), train=True, transform=transform)
    images, labels = (str(DATA / f"train-{kind}-ubyte.gz") for kind in ("images-idx3", "labels-idx1"))
    return api.module.vision.datasets.MNIST(images, labels, mode="train", transform=transform)


@workload("mnist epoch b64", "loader")
def _(api):
    T = api.transforms
    transform = T.Compose([T.ToTensor(), T.Normalize([MEAN], [STD])])
    loader = api.DataLoader(digits(api, transform), batch_size=64, shuffle=True)

    images, labels = next(iter(loader))
    assert list(images.shape) == [64, 1, 28, 28] and labels.shape[0] == 64
    for found, pixel in ((images.min(), 0), (images.max(), 1)):
        assert abs(float(found) - (pixel - MEAN) / STD) < 1e-5, "pixels are normalised"

    def step():
        count = 0
        for images, _ in loader:
            count += images.shape[0]
        assert count == 60000, count

    return Work(step)
