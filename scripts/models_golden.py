#!/usr/bin/env python3
"""Records the state names, shapes and outputs of the real paddle.vision.models.

    python scripts/models_golden.py                write crates/sampan-data/tests/models.json
    python scripts/models_golden.py --check        compare a live run with the committed file
    python scripts/models_golden.py --list NAME    what is hashed for the rows of one model

A row is {"name", "args", "members"}: the hash of one line for every layer (its path and full name) and every tensor of the state
(its name, shape and tensor name), sorted. A row with an "input" shape also has some of the numbers that come out in evaluation, all
outputs in order, when input and state are filled by scripts/formula.py.
"""
import argparse
import json
import pathlib
import sys
import warnings

import formula

warnings.filterwarnings("ignore")
GOLDEN = pathlib.Path(__file__).resolve().parent.parent / "crates/sampan-data/tests/models.json"

# Each family's smallest member computes as well; AlexNet and GoogLeNet take no smaller images.
COMPUTED = {
    "lenet": [2, 1, 28, 28],
    "alexnet": [1, 3, 224, 224],
    "vgg11": [1, 3, 64, 64],
    "resnet18": [2, 3, 64, 64],
    "resnet50": [1, 3, 32, 32],
    "resnext50_32x4d": [1, 3, 32, 32],
    "mobilenet_v1": [1, 3, 64, 64],
    "mobilenet_v2": [1, 3, 64, 64],
    "mobilenet_v3_small": [1, 3, 64, 64],
    "mobilenet_v3_large": [1, 3, 64, 64],
    "squeezenet1_0": [1, 3, 64, 64],
    "squeezenet1_1": [1, 3, 64, 64],
    "shufflenet_v2_x0_25": [1, 3, 64, 64],
    "shufflenet_v2_swish": [1, 3, 64, 64],
    "densenet121": [1, 3, 64, 64],
    "googlenet": [1, 3, 224, 224],
    "inception_v3": [1, 3, 96, 96],
}
# VGG's head alone is larger than all the others together.
CLASSES = {"vgg11": 0}
# Arguments that change what there is.
FURTHER = [
    ("lenet", {"num_classes": 0}),
    ("alexnet", {"num_classes": 0}),
    *((name, {"batch_norm": True}) for name in ("vgg11", "vgg13", "vgg16", "vgg19")),
    ("vgg11", {"num_classes": 0, "with_pool": False}),
    ("resnet18", {"num_classes": 0, "with_pool": False}),
    *(("mobilenet_v1", {"scale": s}) for s in (0.25, 0.35, 0.5, 0.75)),
    *(("mobilenet_v2", {"scale": s}) for s in (0.25, 0.35, 0.5, 0.75, 1.4)),
    *(("mobilenet_v3_small", {"scale": s}) for s in (0.35, 0.5, 0.75, 1.25)),
    *(("mobilenet_v3_large", {"scale": s}) for s in (0.35, 0.5, 0.75, 1.25)),
    ("squeezenet1_0", {"with_pool": False}),
    ("densenet121", {"dropout": 0.1, "bn_size": 2}),
    ("googlenet", {"num_classes": 0, "with_pool": False}),
    ("inception_v3", {"num_classes": 0, "with_pool": False}),
]


def rows():
    import paddle.vision.models as models

    names = ["lenet"] + [n for n in models.__all__ if n.islower()]
    plain = [{"name": n, "args": {}} for n in names]
    computed = [{"name": n, "args": {"num_classes": CLASSES.get(n, 10)}, "input": s} for n, s in COMPUTED.items()]
    return plain + computed + [{"name": n, "args": args} for n, args in FURTHER]


def build(row):
    import paddle
    import paddle.vision.models as models

    with paddle.utils.unique_name.guard():
        make = models.LeNet if row["name"] == "lenet" else getattr(models, row["name"])
        return make(**row["args"])


def members(net):
    layers = [f"{path} {layer.full_name()}" for path, layer in net.named_sublayers(include_self=True)]
    state = [f"{name} {list(t.shape)} {t.name}" for name, t in net.state_dict().items()]
    return sorted(layers + state)


def some(values):
    """At most 16 numbers from all parts of an output."""
    return [float(v) for v in values[:: max(1, len(values) // 16)][:16]]


def record(row):
    import paddle

    net = build(row)
    row["members"] = f"{formula.fnv(chr(10).join(members(net))):016x}"
    if "input" in row:
        formula.fill(net)
        net.eval()
        out = net(paddle.to_tensor(formula.uniform("input", row["input"]).astype("float32")))
        row["output"] = [v for t in (out if isinstance(out, tuple) else [out]) for v in some(t.numpy().ravel())]
    return row


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--list", metavar="NAME")
    options = parser.parse_args()
    if options.list:
        for row in (r for r in rows() if r["name"] == options.list):
            print(row["args"], *members(build(row)), sep="\n")
        return 0
    live = [record(row) for row in rows()]
    if not options.check:
        GOLDEN.write_text("[\n" + ",\n".join(json.dumps(row) for row in live) + "\n]\n")
        return 0
    wrong = 0
    for old, new in zip(json.loads(GOLDEN.read_text()), live, strict=True):
        size = max(map(abs, new.get("output", [0])))
        close = all(abs(a - b) <= 1e-5 * size for a, b in zip(old.pop("output", []), new.pop("output", []), strict=True))
        if old != new or not close:
            wrong += 1
            print(f"{new['name']} {new['args']}: differs from the committed row")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
