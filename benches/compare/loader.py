"""The MNIST epoch through each library's data loader, with normalisation."""

import gzip
import os
import pathlib
import shutil
import tempfile

from workloads import workload

DATA = pathlib.Path(__file__).resolve().parent.parent.parent / "data/mnist"


def unpacked():
    """The training set's two files, unpacked into a folder of the form that torchvision wants."""
    root = pathlib.Path(tempfile.gettempdir()) / "sampan-bench-mnist"
    raw = root / "MNIST/raw"
    raw.mkdir(parents=True, exist_ok=True)
    for name in ("train-images-idx3-ubyte", "train-labels-idx1-ubyte", "t10k-images-idx3-ubyte", "t10k-labels-idx1-ubyte"):
        target = raw / name
        if not target.exists():
            with gzip.open(DATA / f"{name}.gz") as source, open(f"{target}.{os.getpid()}", "wb") as file:
                shutil.copyfileobj(source, file)
            os.replace(f"{target}.{os.getpid()}", target)
    return root


def epoch(loader):
    def step():
        count = 0
        for images, _ in loader:
            count += images.shape[0]
        assert count == 60000, count

    return step


@workload("mnist epoch b64", "loader", "paddle")
def _(P):
    T = P.vision.transforms
    paths = {"image_path": str(DATA / "train-images-idx3-ubyte.gz"), "label_path": str(DATA / "train-labels-idx1-ubyte.gz")}
    data = P.vision.datasets.MNIST(**paths, mode="train", transform=T.Compose([T.ToTensor(), T.Normalize([0.1307], [0.3081])]))
    return epoch(P.io.DataLoader(data, batch_size=64, shuffle=True))


@workload("mnist epoch b64", "loader", "torch")
def _(torch):
    import torchvision
    from torchvision import transforms as T

    data = torchvision.datasets.MNIST(str(unpacked()), True, T.Compose([T.ToTensor(), T.Normalize([0.1307], [0.3081])]))
    return epoch(torch.utils.data.DataLoader(data, batch_size=64, shuffle=True))
