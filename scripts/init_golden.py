#!/usr/bin/env python3
"""Records what the real PaddlePaddle's initializers give: exact values where they are fixed, statistics where random.

    python scripts/init_golden.py     write crates/sampan-nn/tests/initializers.json

A row has the class, its arguments, a shape and either "values" or "mean", "std", "low" and "high" of many draws.
"""
import json
import pathlib
import warnings

import numpy as np

warnings.filterwarnings("ignore")
OUT = pathlib.Path(__file__).resolve().parent.parent / "crates/sampan-nn/tests/initializers.json"

MATRIX, KERNEL, VECTOR = [300, 200], [80, 50, 3, 3], [40000]
ROWS = [
    ("Constant", {"value": 0.7}, [2, 3]),
    ("Assign", {"value": [0.5, -1.0, 2.0]}, [3]),
    ("Dirac", {}, [3, 2, 3]),
    ("Dirac", {"groups": 2}, [4, 3, 2, 3]),
    ("Dirac", {"groups": 2}, [4, 1, 3, 2, 2]),
    ("Normal", {"mean": 0.3, "std": 0.2}, MATRIX),
    ("Uniform", {"low": -0.2, "high": 0.5}, MATRIX),
    ("TruncatedNormal", {}, MATRIX),
    ("TruncatedNormal", {"mean": 0.5, "std": 2.0, "a": -1.0, "b": 1.5}, MATRIX),
    *[(f"Xavier{kind}", args, shape) for kind in ("Uniform", "Normal") for args, shape in (
        ({}, MATRIX), ({}, KERNEL), ({}, VECTOR), ({"fan_in": 10.0, "gain": 0.5}, MATRIX), ({"fan_out": 7.0}, KERNEL))],
    *[(f"Kaiming{kind}", args, shape) for kind in ("Uniform", "Normal") for args, shape in (
        ({}, MATRIX), ({}, KERNEL), ({"fan_in": 10.0}, MATRIX), ({"mode": "fan_out", "nonlinearity": "tanh"}, KERNEL),
        ({"negative_slope": 0.5, "nonlinearity": "leaky_relu"}, KERNEL), ({"nonlinearity": "selu"}, VECTOR))],
    ("Orthogonal", {"gain": 1.5}, MATRIX),
]
GAINS = ["sigmoid", "linear", "conv1d", "conv2d", "conv3d", "conv1d_transpose", "conv_transpose1d", "conv2d_transpose",
         "conv_transpose2d", "conv3d_transpose", "conv_transpose3d", "tanh", "relu", "leaky_relu", "selu"]


def main():
    import paddle

    paddle.seed(1)
    rows = []
    for name, args, shape in ROWS:
        initializer = getattr(paddle.nn.initializer, name)(**args)
        v = paddle.create_parameter(shape, "float64" if name != "Dirac" else "float32", default_initializer=initializer)
        v = v.numpy().astype("float64")
        row = {"class": name, "args": args, "shape": shape}
        if v.size <= 100:
            row["values"] = v.ravel().tolist()
        else:
            row |= {k: float(f"{x:.6g}") for k, x in zip(("mean", "std", "low", "high"), (v.mean(), v.std(), v.min(), v.max()))}
        rows.append(row)
    gain = paddle.nn.initializer.calculate_gain
    gains = {n: gain(n) for n in GAINS} | {"leaky_relu/0.3": gain("leaky_relu", 0.3)}
    lines = ",\n  ".join(json.dumps(r) for r in rows)
    OUT.write_text(f'{{\n "gains": {json.dumps(gains)},\n "rows": [\n  {lines}\n ]\n}}\n')
    print(f"{len(rows)} rows, {OUT.stat().st_size} bytes")


if __name__ == "__main__":
    main()
