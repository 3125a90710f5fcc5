#!/usr/bin/env python3
"""Records how training goes with the real PaddlePaddle: the losses of 50 steps from the same weights on the same batches.

    python scripts/parity.py             write crates/sampan-data/tests/parity.json
    python scripts/parity.py --check     compare a live run with the committed file
    python scripts/parity.py --only TEXT show how the cases whose name has TEXT fare, and how far float64 is from float32

Weights and batches come from scripts/formula.py, so that the file holds nothing but the cases and their losses, which
tests/suite/parity.rs replays. A loss may differ by 1e-4 of itself. So that rounding alone does not use that up, learning
rates are such that the losses fall and that Paddle in float64 stays within 2e-5 of Paddle in float32 (`--only` tells). Dropout is
off: its numbers are not Paddle's. `mode` says whether batch norms take their statistics from the batch (train) or from the
state (eval).
"""
import argparse
import json
import pathlib
import sys
import warnings

import formula

warnings.filterwarnings("ignore")
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "crates/sampan-data/tests/parity.json"
STEPS = 50
# As many different batches, which come round again and again.
BATCHES = 5

# Network: input shape, classes, gain of the weights, modes.
NETS = {
    "lenet": ([4, 1, 28, 28], 10, 4.0, ["eval"]),
    "resnet18": ([8, 3, 32, 32], 10, 2.0, ["eval", "train"]),
    "mobilenet_v3_small": ([4, 3, 64, 64], 10, 5.0, ["eval", "train"]),
    "lstm": ([4, 6, 8], 5, 4.0, ["eval"]),
    "transformer": ([4, 6, 16], 5, 3.0, ["eval"]),
}
# Learning rates of each network and mode.
RATES = {
    "SGD": {"resnet18": 0.001, "resnet18 train": 1e-6, "mobilenet_v3_small": 0.005, "mobilenet_v3_small train": 0.0005,
            "lstm": 0.1, "": 0.02},
    # LeNet at 0.005 brings an input of a ReLU within 1e-8 of zero, where rounding decides which way it goes.
    "Momentum": {"lenet": 0.002, "resnet18": 0.0005, "resnet18 train": 1e-7, "mobilenet_v3_small train": 0.0001,
                 "lstm": 0.02, "": 0.005},
    "Adam": {"resnet18": 2e-6, "resnet18 train": 2e-7, "mobilenet_v3_small": 2e-5, "lstm": 0.005, "": 0.001},
    "AdamW": {"resnet18": 2e-6, "resnet18 train": 2e-7, "mobilenet_v3_small": 2e-5, "lstm": 0.005, "": 0.001},
}
# Networks with two modes take long: the quick test replays one optimizer in each mode, an ignored one the others.
QUICK = {"resnet18": {"eval": "SGD", "train": "Adam"}, "mobilenet_v3_small": {"eval": "AdamW", "train": "Momentum"}}


def cases():
    for net, (shape, classes, gain, modes) in NETS.items():
        for mode in modes:
            for optimizer, rates in RATES.items():
                rate = rates.get(f"{net} {mode}", rates.get(net, rates[""]))
                quick = net not in QUICK or QUICK[net][mode] == optimizer
                yield {"net": net, "mode": mode, "optimizer": optimizer, "rate": rate, "input": shape, "classes": classes,
                       "gain": gain, "quick": quick}


def build(case):
    import paddle
    from paddle import nn
    from paddle.vision import models

    features, classes = case["input"][-1], case["classes"]

    class Lstm(nn.Layer):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(features, 16, num_layers=2)
            self.fc = nn.Linear(16, classes)

        def forward(self, x):
            return self.fc(self.lstm(x)[0][:, -1])

    class Transformer(nn.Layer):
        def __init__(self):
            super().__init__()
            self.encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(features, 2, 32, dropout=0.0), 2)
            self.fc = nn.Linear(features, classes)

        def forward(self, x):
            return self.fc(self.encoder(x).mean(1))

    own = {"lstm": Lstm, "transformer": Transformer, "lenet": models.LeNet}
    if case["net"] in ("lstm", "transformer"):
        net = own[case["net"]]()
    else:
        net = own.get(case["net"], getattr(models, case["net"], None))(num_classes=classes)
    for layer in net.sublayers():
        if isinstance(layer, nn.Dropout) or isinstance(layer, nn.BatchNorm2D) and case["mode"] == "eval":
            layer.eval()
    return net


def losses(case, dtype="float32"):
    import paddle

    paddle.set_default_dtype(dtype)
    net = build(case)
    paddle.set_default_dtype("float32")
    formula.fill(net, case["gain"])
    make = getattr(paddle.optimizer, case["optimizer"])
    optimizer = make(learning_rate=case["rate"], parameters=net.parameters())
    found = []
    for step in range(STEPS):
        k = step % BATCHES
        x = paddle.to_tensor(formula.uniform(f"x{k}", case["input"]).astype(dtype))
        y = paddle.to_tensor(formula.integers(f"y{k}", case["input"][:1], case["classes"]))
        loss = paddle.nn.functional.cross_entropy(net(x), y)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        found.append(float(loss))
    return found


def difference(old, new):
    return max(abs(a - b) / abs(b) for a, b in zip(old, new, strict=True))


def name(case):
    return f"{case['net']} {case['mode']} {case['optimizer']}"


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--only", metavar="TEXT")
    options = parser.parse_args()
    if options.only is not None:
        for case in (c for c in cases() if options.only in name(c)):
            single, double = losses(case), losses(case, "float64")
            ends = f"{sum(single[:5]) / 5:.4f} -> {sum(single[-5:]) / 5:.4f}"
            print(f"{name(case):36} {case['rate']:8} {ends}, float64 within {difference(single, double):.1e}", flush=True)
        return 0
    live = [{**case, "losses": [float(f"{v:.8g}") for v in losses(case)]} for case in cases()]
    if not options.check:
        GOLDEN.write_text("[\n" + ",\n".join(json.dumps(case) for case in live) + "\n]\n")
        return 0
    wrong = 0
    for old, new in zip(json.loads(GOLDEN.read_text()), live, strict=True):
        apart = difference(old.pop("losses"), new.pop("losses"))
        if old != new or apart > 2e-5:
            wrong += 1
            print(f"{name(new)}: differs from the committed case, losses by {apart:.1e}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
