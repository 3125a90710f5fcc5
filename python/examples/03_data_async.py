"""03 · Data in the background: a `Dataset` of your own, and a `DataLoader` with workers.

A data set answers two questions: how many samples are there, and what is the i-th? The loader does the rest: order,
batches, workers that prepare the next batches while the network learns from this one.
"""

import time

import common

import sampan
from sampan import nn
from sampan.io import DataLoader, Dataset
from sampan.vision.transforms import Normalize


class BrightDigits(Dataset):
    """Digits, every second of them as a negative."""

    def __init__(self, count):
        self.digits = sampan.vision.datasets.MNIST(mode="train")
        self.count = min(count, len(self.digits))
        self.change = Normalize([127.5], [127.5], "CHW")

    def __len__(self):
        return self.count

    def __getitem__(self, index):
        image, label = self.digits[index]
        image = self.change(image)
        return (image if index % 2 == 0 else -image), label


def main():
    data = BrightDigits(common.limit() or 10_000)
    losses = []
    for workers in (0, 1, 2):
        sampan.seed(7)
        net = nn.Sequential(nn.Flatten(), nn.Linear(784, 100), nn.ReLU(), nn.Linear(100, 10))
        optimizer = sampan.optimizer.Adam(learning_rate=0.001, parameters=net.parameters())
        loader = DataLoader(data, batch_size=64, shuffle=True, drop_last=True, num_workers=workers)
        started = time.time()
        losses.append(common.train_epoch(net, optimizer, loader))
        print(f"{workers} workers: {time.time() - started:.2f} s for {len(loader)} batches, loss {losses[-1]:.6f}")
    assert len(set(losses)) == 1, f"the same data whoever reads it: {losses}"
    print("the same bits for any number of workers")


if __name__ == "__main__":
    main()
