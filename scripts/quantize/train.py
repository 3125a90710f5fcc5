"""Networks that read the bundled digits, trained for a minute or two each, saved for `sampan quantize`.

    PYTHONPATH=python python scripts/quantize/train.py FOLDER [lenet resnet18 mobilenet_v3_small]

Writes FOLDER/<network>.pdmodel and its parameters, FOLDER/calibration.npy (256 training images as each network takes them)
and FOLDER/test.npz. LeNet reads images of 28 by 28, the others of 32 by 32 with three channels.
"""

import os
import sys

import numpy as np

import sampan
from sampan import nn
from sampan.static import InputSpec
from sampan.vision.datasets import MNIST
from sampan.vision.models import LeNet, mobilenet_v3_small, resnet18

NETS = {
    "lenet": (LeNet, 6, 0.002, 20000),
    "resnet18": (lambda: resnet18(num_classes=10), 2, 0.001, 8000),
    "mobilenet_v3_small": (lambda: mobilenet_v3_small(num_classes=10), 6, 0.003, 12000),
}


def images(mode):
    """All images of a part as float32 in [-1, 1], and their labels."""
    data = MNIST(mode=mode)
    x = np.stack([np.asarray(data[i][0], np.float32).reshape(28, 28) for i in range(len(data))])
    y = np.array([int(np.asarray(data[i][1]).reshape(-1)[0]) for i in range(len(data))], np.int64)
    return (x / 127.5 - 1.0)[:, None], y


def fitted(x, name):
    """Images as a network takes them."""
    if name == "lenet":
        return x
    wide = np.full((len(x), 1, 32, 32), -1.0, np.float32)
    wide[:, :, 2:30, 2:30] = x
    return np.repeat(wide, 3, axis=1)


def main():
    folder, *wanted = sys.argv[1:]
    os.makedirs(folder, exist_ok=True)
    (x, y), (tx, ty) = images("train"), images("test")
    np.savez(os.path.join(folder, "test.npz"), x=tx, y=ty)
    for name, (make, epochs, rate, count) in NETS.items():
        if wanted and name not in wanted:
            continue
        sampan.seed(1)
        net, loss = make(), nn.CrossEntropyLoss()
        order = np.random.default_rng(0).permutation(len(x))[:count]
        steps = epochs * (len(order) // 64)
        schedule = sampan.optimizer.lr.CosineAnnealingDecay(rate, steps)
        optimizer = sampan.optimizer.Adam(schedule, parameters=net.parameters())
        for epoch in range(epochs):
            np.random.default_rng(epoch).shuffle(order)
            net.train()
            for k in range(0, len(order) - 63, 64):
                part = order[k : k + 64]
                value = loss(net(sampan.to_tensor(fitted(x[part], name))), sampan.to_tensor(y[part]))
                value.backward()
                optimizer.step()
                optimizer.clear_grad()
                schedule.step()
            print(name, epoch, float(value), flush=True)
        net.eval()
        shape = list(fitted(x[:1], name).shape)
        sampan.jit.save(net, os.path.join(folder, name), input_spec=[InputSpec([None, *shape[1:]], "float32", "image")])
        np.save(os.path.join(folder, f"{name}-calibration.npy"), fitted(x[order[:256]], name))


if __name__ == "__main__":
    main()
