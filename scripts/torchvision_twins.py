"""Every torchvision model with a twin in `sampan.vision.models`: random weights and statistics, converted, outputs compared.

    PYTHONPATH=python python scripts/torchvision_twins.py            # a table in Markdown
    PYTHONPATH=python python scripts/torchvision_twins.py resnet50   # some of them
"""

from __future__ import annotations

import collections
import pathlib
import sys
import tempfile

import numpy as np
import torch
import torchvision

import sampan
from sampan.align import convert_weights

# What torchvision calls otherwise, or has an argument for.
RENAMED = {f"vgg{n}_bn": (f"vgg{n}", {"batch_norm": True}) for n in (11, 13, 16, 19)}
TORCH = {"inception_v3": {"aux_logits": True, "transform_input": False, "init_weights": False}}
# Keys that the twin has no layers for.
MAPPING = {"inception_v3": "AuxLogits = -"}
# The same name for another network.
OTHERS = {
    "googlenet": "another network: Paddle's convolutions have no batch normalisation",
    "shufflenet_v2_x2_0": "another network: Paddle's first stage has 224 channels, torchvision's 244",
}


def scaling_dropout(net) -> None:
    for layer in net.sublayers():
        if isinstance(layer, sampan.nn.Dropout):
            layer.mode = "upscale_in_train"


def ceil_mode(net) -> None:
    for layer in net.sublayers():
        if isinstance(layer, sampan.nn.MaxPool2D):
            layer.ceil_mode = True


def epsilon(net) -> None:
    for layer in net.sublayers():
        if isinstance(layer, sampan.nn.BatchNorm2D):
            layer._epsilon = 1e-3


def unpadded(net) -> None:
    net._conv._padding = 0


# Settings in which Paddle's definition differs from torchvision's; weights cannot tell them.
SETTINGS = {
    "alexnet": {"Dropout.mode": scaling_dropout},
    "squeezenet1_0": {"Dropout.mode": scaling_dropout, "MaxPool2D.ceil_mode": ceil_mode},
    "squeezenet1_1": {
        "Dropout.mode": scaling_dropout,
        "MaxPool2D.ceil_mode": ceil_mode,
        "padding of the first convolution": unpadded,
    },
    "inception_v3": {"Dropout.mode": scaling_dropout, "BatchNorm2D epsilon": epsilon},
}


def twins() -> list[tuple[str, str, dict]]:
    ours = {name for name in dir(sampan.vision.models) if name[0].islower()}
    found = []
    for name in torchvision.models.list_models(module=torchvision.models):
        twin, arguments = RENAMED.get(name, (name, {}))
        if twin in ours:
            found.append((name, twin, arguments))
    return found


def randomise(net: torch.nn.Module, seed: int) -> None:
    """Weights that keep the scale of activations, and statistics that differ from one and zero."""
    g = torch.Generator().manual_seed(seed)
    for module in net.modules():
        if isinstance(module, torch.nn.modules.batchnorm._BatchNorm):
            n = module.num_features
            module.running_mean.copy_(torch.randn(n, generator=g) * 0.1)
            module.running_var.copy_(torch.rand(n, generator=g) + 0.5)
            module.weight.data.copy_(torch.rand(n, generator=g) + 0.5)
            module.bias.data.copy_(torch.randn(n, generator=g) * 0.1)
        elif isinstance(module, (torch.nn.Linear, torch.nn.Conv2d)):
            fan_in = module.weight[0].numel()
            module.weight.data.copy_(torch.randn(module.weight.shape, generator=g) * (1.5 / fan_in) ** 0.5)
            if module.bias is not None:
                module.bias.data.copy_(torch.randn(module.bias.shape, generator=g) * 0.1)


def compare(name: str, twin: str, arguments: dict, folder: pathlib.Path) -> dict:
    torch.manual_seed(1)
    theirs = getattr(torchvision.models, name)(weights=None, **TORCH.get(name, {}))
    randomise(theirs, 2)
    theirs.eval()
    path = folder / "net.pth"
    torch.save(theirs.state_dict(), path)
    ours = getattr(sampan.vision.models, twin)(**arguments)
    done = convert_weights(str(path), ours, mapping=MAPPING.get(name))
    for change in SETTINGS.get(name, {}).values():
        change(ours)
    ours.eval()
    size = 299 if name == "inception_v3" else 224
    x = np.random.default_rng(3).standard_normal((1, 3, size, size)).astype("float32")
    with torch.no_grad():
        want = theirs(torch.from_numpy(x)).numpy()
    with sampan.no_grad():
        got = ours(sampan.to_tensor(x))
    got = (got[0] if isinstance(got, (list, tuple)) else got).numpy()
    reasons = collections.Counter(row["reason"] for row in done.rows)
    return {
        "keys": len(done.rows),
        "pairs": ", ".join(f"{n} by {reason}" for reason, n in reasons.items()),
        "transposed": sum("transposed" in row["how"] for row in done.rows),
        "apart": float(np.abs(got - want).max() / max(1.0, np.abs(want).max())),
    }


def main() -> int:
    chosen = sys.argv[1:]
    wrong = 0
    print("| torchvision | keys | pairs | transposed | largest difference | settings that differ |")
    print("|---|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        for name, twin, arguments in twins():
            if chosen and name not in chosen:
                continue
            settings = ", ".join(SETTINGS.get(name, {}))
            if name in OTHERS:
                print(f"| `{name}` | | | | | {OTHERS[name]} |", flush=True)
                continue
            try:
                found = compare(name, twin, arguments, pathlib.Path(folder))
            except Exception as e:  # the table says what went wrong
                wrong += 1
                print(f"| `{name}` | | | | {str(e).splitlines()[0]} | {settings} |", flush=True)
                continue
            wrong += found["apart"] > 1e-5
            row = [f"`{name}`", found["keys"], found["pairs"], found["transposed"], f"{found['apart']:.0e}", settings]
            print("| " + " | ".join(str(cell) for cell in row) + " |", flush=True)
    return wrong


if __name__ == "__main__":
    sys.exit(main())
