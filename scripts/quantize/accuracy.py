"""How many digits networks read right, in float32 and in eight bits, and how large their files are.

    PYTHONPATH=python python scripts/quantize/accuracy.py FOLDER [--ort PYTHON] [--images N]

FOLDER is what train.py wrote. Every network is quantised by the command, in each of its modes, to FOLDER/<network>-<mode>.
"""

import argparse
import os
import subprocess
import sys

import numpy as np
from train import NETS, fitted

from sampan import inference

MODES = {
    "float32": None,
    "static": ["--data", "{data}"],
    "percentile": ["--data", "{data}", "--range", "percentile"],
    "entropy": ["--data", "{data}", "--range", "entropy"],
    "dynamic": ["--mode", "dynamic"],
    "int8": ["--mode", "int8"],
    "fp16": ["--mode", "fp16"],
    "bf16": ["--mode", "bf16"],
}


def answers(prefix, x):
    """The class of each image."""
    predictor = inference.create_predictor(inference.Config(prefix + ".pdmodel", prefix + ".pdiparams"))
    source = predictor.get_input_handle(predictor.get_input_names()[0])
    result = predictor.get_output_handle(predictor.get_output_names()[0])
    found = []
    for k in range(0, len(x), 100):
        source.copy_from_cpu(np.ascontiguousarray(x[k : k + 100]))
        predictor.run()
        found.append(result.copy_to_cpu().argmax(-1))
    return np.concatenate(found)


def main():
    args = argparse.ArgumentParser()
    args.add_argument("folder")
    args.add_argument("--only", default="")
    args.add_argument("--images", type=int, default=10000)
    args = args.parse_args()
    test = np.load(os.path.join(args.folder, "test.npz"))
    x, y = test["x"][: args.images], test["y"][: args.images]
    print("| network | mode | right, % | file, kB |")
    print("|---|---|---|---|")
    for name in NETS:
        prefix = os.path.join(args.folder, name)
        if not os.path.exists(prefix + ".pdmodel") or args.only not in name:
            continue
        for mode, words in MODES.items():
            target = prefix if words is None else f"{prefix}-{mode}"
            if words is not None:
                words = [w.format(data=f"{prefix}-calibration.npy") for w in words]
                command = [sys.executable, "-m", "sampan", "quantize", prefix, "--to", target + ".pdmodel", *words]
                subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
            right = 100 * (answers(target, fitted(x, name)) == y).mean()
            size = os.path.getsize(target + ".pdiparams") / 1024
            print(f"| {name} | {mode} | {right:.2f} | {size:.0f} |", flush=True)


if __name__ == "__main__":
    main()
