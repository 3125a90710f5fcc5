"""Training and inference on a GPU, one library a process: `python benches/compare/gpu.py sampan`, then `… torch`.

Each step copies its data to the device and ends with a wait for it, as a loop that prints its loss does. One line of JSON for
each workload: milliseconds a step (the best of three runs), seconds of the first step, and for sampan the ops that the CPU
computed. PyTorch runs as it comes: eager, TF32 for convolutions and not for products.
"""

import json
import sys
import time
import traceback

import numpy as np

LIBRARY = sys.argv[1]
SAMPAN = LIBRARY == "sampan"
RANDOM = np.random.RandomState(0)

if SAMPAN:
    import sampan as paddle
    from sampan import nn

    paddle.set_device("gpu")
    wait = paddle.device.synchronize
else:
    import torch
    import torchvision
    from torch import nn

    wait = torch.cuda.synchronize


def measure(name, step, times):
    try:
        start = time.perf_counter()
        step()
        wait()
        first = time.perf_counter() - start
        for _ in range(8):
            step()
        wait()
        runs = []
        for _ in range(3):
            start = time.perf_counter()
            for _ in range(times):
                step()
                wait()
            runs.append((time.perf_counter() - start) / times * 1000)
        row = {"ms": round(min(runs), 4), "first_s": round(first, 3)}
        if SAMPAN:
            row["by_cpu"] = dict(paddle._core._gpu_stood_in())
    except Exception as error:
        traceback.print_exc()
        row = {"error": repr(error)[:300]}
    print(json.dumps({"library": LIBRARY, "name": name, **row}), flush=True)


def train(name, make, x, y, loss, adam=True, times=60):
    net = make()
    if SAMPAN:
        weights = net.parameters()
        optimizer = paddle.optimizer.Adam(1e-3, parameters=weights) if adam else paddle.optimizer.Momentum(0.01, parameters=weights)

        def step():
            error = loss(net(paddle.to_tensor(x)), paddle.to_tensor(y))
            error.backward()
            optimizer.step()
            optimizer.clear_grad()
    else:
        net = net.cuda()
        optimizer = torch.optim.Adam(net.parameters(), 1e-3) if adam else torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
        x, y = torch.from_numpy(x), torch.from_numpy(y)

        def step():
            error = loss(net(x.cuda()), y.cuda())
            optimizer.zero_grad()
            error.backward()
            optimizer.step()

    measure(name, step, times)


def infer(name, make, x, times=50):
    net = make()
    net.eval()
    if SAMPAN:
        x, off = paddle.to_tensor(x), paddle.no_grad
    else:
        net, x, off = net.cuda(), torch.from_numpy(x).cuda(), torch.no_grad

    def step():
        with off():
            net(x)

    measure(name, step, times)


def numbers(*shape):
    return RANDOM.randn(*shape).astype("float32")


def labels(count, classes):
    return RANDOM.randint(0, classes, (count,))


def lenet():
    conv, pool = (nn.Conv2D, nn.MaxPool2D) if SAMPAN else (nn.Conv2d, nn.MaxPool2d)
    first = [conv(1, 6, 3, padding=1), nn.ReLU(), pool(2, 2), conv(6, 16, 5), nn.ReLU(), pool(2, 2), nn.Flatten()]
    return nn.Sequential(*first, nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10))


def mlp():
    return nn.Sequential(nn.Flatten(), nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 64), nn.ReLU(), nn.Linear(64, 10))


def encoder():
    options = {} if SAMPAN else {"batch_first": True}
    return nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, **options), 4)


class Recurrent(nn.Layer if SAMPAN else nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(256, 256) if SAMPAN else nn.LSTM(256, 256, batch_first=True)
        self.out = nn.Linear(256, 10)

    def forward(self, x):
        return self.out(self.lstm(x)[0][:, -1])


def zoo(name, **options):
    return getattr(paddle.vision.models if SAMPAN else torchvision.models, name)(**options)


def main():
    entropy, square = nn.CrossEntropyLoss(), nn.MSELoss()
    train("linear b16", lambda: nn.Linear(13, 1), numbers(16, 13), numbers(16, 1), square)
    train("MLP b100", mlp, numbers(100, 1, 28, 28), labels(100, 10), entropy)
    train("LeNet b64", lenet, numbers(64, 1, 28, 28), labels(64, 10), entropy)
    train("LeNet b1024", lenet, numbers(1024, 1, 28, 28), labels(1024, 10), entropy)
    small = {"num_classes": 10}
    train("ResNet18 32 px b32", lambda: zoo("resnet18", **small), numbers(32, 3, 32, 32), labels(32, 10), entropy, False, 30)
    train("MobileNetV3-small b8", lambda: zoo("mobilenet_v3_small", **small), numbers(8, 3, 224, 224), labels(8, 10), entropy, False, 20)
    train("encoder b8 s128", encoder, numbers(8, 128, 256), numbers(8, 128, 256), square, True, 20)
    train("LSTM 256 s64 b32", Recurrent, numbers(32, 64, 256), labels(32, 10), entropy, True, 10)
    train("ResNet50 b64", lambda: zoo("resnet50"), numbers(64, 3, 224, 224), labels(64, 1000), entropy, False, 8)
    infer("MobileNetV3-small, one image", lambda: zoo("mobilenet_v3_small"), numbers(1, 3, 224, 224))
    infer("ResNet50, one image", lambda: zoo("resnet50"), numbers(1, 3, 224, 224))
    infer("LeNet, one image", lenet, numbers(1, 1, 28, 28))
    most = paddle.device.cuda.max_memory_allocated() if SAMPAN else torch.cuda.max_memory_allocated()
    print(json.dumps({"library": LIBRARY, "name": "most memory", "MiB": round(most / 2**20)}), flush=True)


if __name__ == "__main__":
    main()
