"""What the programs of the course share: a cut of the data for a quick look, the digits, one pass of training, one of
judging, and a folder for results."""

import os
import pathlib
import sys

import sampan
from sampan.io import DataLoader, Subset
from sampan.metric import Accuracy
from sampan.vision.datasets import MNIST
from sampan.vision.transforms import Normalize


def limit():
    """How many samples to use, where `--limit N` or the variable `SAMPAN_EXAMPLE_LIMIT` says so; otherwise all."""
    if "--limit" in sys.argv:
        return int(sys.argv[sys.argv.index("--limit") + 1])
    text = os.environ.get("SAMPAN_EXAMPLE_LIMIT")
    return int(text) if text else None


def full_or_quick(full, quick):
    """`full`, or `quick` where the data is limited."""
    return full if limit() is None else quick


def digits(mode):
    """Handwritten digits as float32 `[1, 28, 28]` from -1 to 1, with labels `[1]`."""
    data = MNIST(mode=mode, transform=Normalize([127.5], [127.5], "CHW"))
    return data if limit() is None else Subset(data, range(limit()))


def batches(mode, batch_size):
    """The digits in batches; those to train on in a new order each time."""
    return DataLoader(digits(mode), batch_size=batch_size, shuffle=mode == "train")


def square_error(answers, labels):
    """The mean of the squared distances between answers and digits."""
    return sampan.nn.functional.square_error_cost(answers, labels.astype("float32")).mean()


def train_epoch(net, optimizer, data, loss_of=sampan.nn.functional.cross_entropy):
    """One pass over the data with a step of the optimizer for each batch: the mean loss."""
    net.train()
    losses = []
    for images, labels in data:
        loss = loss_of(net(images), labels)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(loss.item())
    return sum(losses) / max(len(losses), 1)


@sampan.no_grad()
def accuracy(net, data):
    """The share of samples whose label has the highest score."""
    net.eval()
    metric = Accuracy()
    for images, labels in data:
        metric.update(metric.compute(net(images), labels))
    return metric.accumulate()


@sampan.no_grad()
def rounded_accuracy(net, data):
    """The share of samples for which a network with one output comes nearer to the right digit than to any other."""
    net.eval()
    right = count = 0
    for images, labels in data:
        right += (net(images).round() == labels.astype("float32")).astype("float32").sum().item()
        count += len(labels)
    return right / max(count, 1)


def folder(name):
    """A folder for what a program leaves behind: `runs/NAME`."""
    path = pathlib.Path("runs") / name
    path.mkdir(parents=True, exist_ok=True)
    return path
