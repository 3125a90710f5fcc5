"""Training and inference on a GPU, one library a process: `python benches/compare/gpu.py sampan`, then `… torch`; `… sampan graph`
records each step and starts it as a whole, and `… torch graph` does so by hand, with fused optimizers.

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
GRAPH = "graph" in sys.argv[2:]
ONLY = [a for a in sys.argv[2:] if a != "graph"]
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


def recorded(step, *examples):
    """PyTorch's step as one graph, by hand: its inputs at fixed places."""
    places = [torch.from_numpy(e).cuda() for e in examples]
    stream = torch.cuda.Stream()
    stream.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(stream):
        for _ in range(3):
            step(*places)
    torch.cuda.current_stream().wait_stream(stream)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step(*places)

    def replay(*given):
        for place, value in zip(places, given):
            place.copy_(torch.from_numpy(value), non_blocking=True)
        graph.replay()

    return replay


def measure(name, step, times):
    if ONLY and not any(word in name for word in ONLY):
        return
    if SAMPAN:
        paddle.device.cuda.reset_max_memory_allocated()
    else:
        torch.cuda.reset_peak_memory_stats()
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
        most = paddle.device.cuda.max_memory_allocated() if SAMPAN else torch.cuda.max_memory_allocated()
        row["MiB"] = round(most / 2**20)
        if SAMPAN:
            row["by_cpu"] = dict(paddle._core._gpu_stood_in())
            if hasattr(step, "nodes"):
                row["nodes"] = step.nodes()
    except Exception as error:
        traceback.print_exc()
        row = {"error": repr(error)[:300]}
    print(json.dumps({"library": LIBRARY + (" graph" if GRAPH else ""), "name": name, **row}), flush=True)


def train(name, make, x, y, loss, adam=True, times=60, half=False):
    if ONLY and not any(word in name for word in ONLY):
        return
    net = make()
    if SAMPAN:
        weights = net.parameters()
        optimizer = paddle.optimizer.Adam(1e-3, parameters=weights) if adam else paddle.optimizer.Momentum(0.01, parameters=weights)

        def step(x, y):
            with paddle.amp.auto_cast(enable=half, dtype="bfloat16"):
                error = loss(net(x), y)
            error.backward()
            optimizer.step()
            optimizer.clear_grad()

        if GRAPH:
            step = paddle.device.cuda.cuda_graph(step)
            go = lambda: step(x, y)  # noqa: E731
            go.nodes = step.nodes
        else:
            go = lambda: step(paddle.to_tensor(x), paddle.to_tensor(y))  # noqa: E731
    else:
        net = net.cuda()
        fused = {"fused": True, "capturable": True} if GRAPH and adam else {"fused": True} if GRAPH else {}
        optimizer = torch.optim.Adam(net.parameters(), 1e-3, **fused) if adam else torch.optim.SGD(net.parameters(), 0.01, momentum=0.9, **fused)

        def step(x, y):
            optimizer.zero_grad(set_to_none=True)
            with torch.autocast("cuda", torch.bfloat16, enabled=half):
                error = loss(net(x), y)
            error.backward()
            optimizer.step()

        if GRAPH:
            replay = recorded(step, x, y)
            go = lambda: replay(x, y)  # noqa: E731
        else:
            go = lambda: step(torch.from_numpy(x).cuda(), torch.from_numpy(y).cuda())  # noqa: E731
    measure(name, go, times)


def infer(name, make, x, times=50):
    if ONLY and not any(word in name for word in ONLY):
        return
    net = make()
    net.eval()
    if SAMPAN:
        given, off = paddle.to_tensor(x), paddle.no_grad
    else:
        net, given, off = net.cuda(), torch.from_numpy(x).cuda(), torch.no_grad

    def step(x):
        with off():
            return net(x)

    go = lambda: step(given)  # noqa: E731
    if GRAPH and SAMPAN:
        step = paddle.device.cuda.cuda_graph(step)
        go.nodes = step.nodes
    elif GRAPH:
        replay = recorded(step, x)
        go = lambda: replay()  # noqa: E731
    measure(name, go, times)


def numbers(*shape):
    return RANDOM.randn(*shape).astype("float32")


def labels(count, classes):
    return RANDOM.randint(0, classes, (count,))


def lenet():
    conv, pool = (nn.Conv2D, nn.MaxPool2D) if SAMPAN else (nn.Conv2d, nn.MaxPool2d)
    first = [conv(1, 6, 3, padding=1), nn.ReLU(), pool(2, 2), conv(6, 16, 5), nn.ReLU(), pool(2, 2), nn.Flatten()]
    return nn.Sequential(*first, nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10))


def cnn():
    """The network of two convolutions that courses begin with."""
    conv, pool = (nn.Conv2D, nn.MaxPool2D) if SAMPAN else (nn.Conv2d, nn.MaxPool2d)
    first = [conv(1, 20, 5, padding=2), nn.ReLU(), pool(2, 2), conv(20, 20, 5, padding=2), nn.ReLU(), pool(2, 2)]
    return nn.Sequential(*first, nn.Flatten(), nn.Linear(980, 10))


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
    train("CNN b100", cnn, numbers(100, 1, 28, 28), labels(100, 10), entropy)
    train("LeNet b64", lenet, numbers(64, 1, 28, 28), labels(64, 10), entropy)
    train("LeNet b1024", lenet, numbers(1024, 1, 28, 28), labels(1024, 10), entropy)
    small = {"num_classes": 10}
    train("ResNet18 32 px b32", lambda: zoo("resnet18", **small), numbers(32, 3, 32, 32), labels(32, 10), entropy, False, 30)
    train("MobileNetV3-small b8", lambda: zoo("mobilenet_v3_small", **small), numbers(8, 3, 224, 224), labels(8, 10), entropy, False, 20)
    train("encoder b8 s128", encoder, numbers(8, 128, 256), numbers(8, 128, 256), square, True, 20)
    train("LSTM 256 s64 b32", Recurrent, numbers(32, 64, 256), labels(32, 10), entropy, True, 10)
    train("ResNet50 b64", lambda: zoo("resnet50"), numbers(64, 3, 224, 224), labels(64, 1000), entropy, False, 8)
    train("ResNet50 b64 bfloat16", lambda: zoo("resnet50"), numbers(64, 3, 224, 224), labels(64, 1000), entropy, False, 8, True)
    infer("MobileNetV3-small, one image", lambda: zoo("mobilenet_v3_small"), numbers(1, 3, 224, 224))
    infer("ResNet50, one image", lambda: zoo("resnet50"), numbers(1, 3, 224, 224))
    infer("LeNet, one image", lenet, numbers(1, 1, 28, 28))


if __name__ == "__main__":
    main()
