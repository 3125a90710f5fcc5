"""Records how PaddlePaddle prints tensors, for crates/sampan-core/tests/suite/display.rs.

The parts of complex numbers stand one after the other.
"""

import json
import pathlib

import numpy as np
import paddle

OUT = pathlib.Path(__file__).parent.parent / "crates/sampan-core/tests/data/display.json"
DEFAULT = dict(precision=8, threshold=1000, edgeitems=3, sci_mode=False, linewidth=80)
rng = np.random.default_rng(3)
nan, inf = np.nan, np.inf


def cases():
    f, i = "float32", "int64"
    yield [[1, 2, 3], [4, 5, 6]], f, {}
    yield [[1.5, -2, 3], [4, 5e-9, 6]], f, {}
    yield 3.25, f, {}
    yield -3.0, "float64", {}
    yield 7, i, {}
    yield True, "bool", {}
    yield [True, False, True], "bool", {}
    yield [[False], [False]], "bool", {}
    yield [1, -20, 300], i, {}
    yield [1, 20, 300], "int32", {}
    yield [0, 255, 7], "uint8", {}
    yield [-128, 127], "int8", {}
    yield [-32768, 1], "int16", {}
    yield [nan, inf, -inf, 1.0, -0.0], f, {}
    yield [nan, inf, 0.5], f, {}
    yield [nan, -0.0, 0.0], "float64", {}
    yield [-1.5, -0.0, 2], f, {}
    yield [1e20, 1e-20, 123456.789], f, {}
    yield [1e300, 1e-300, 0.1], "float64", {}
    yield [0.1, 0.5, 2, -65504], "float16", {}
    yield [0.1, 0.5, 2, -3.3e38], "bfloat16", {}
    yield np.zeros([0]), f, {}
    yield np.zeros([0, 2]), f, {}
    yield np.zeros([3, 0, 2]), f, {}
    yield np.zeros([2, 3, 0]), i, {}
    yield rng.standard_normal([2, 3, 4]), f, {}
    yield rng.standard_normal([2, 1, 2, 2]), f, {}
    yield rng.standard_normal([30]), f, {}
    yield rng.integers(-5, 5, [60]), i, {}
    yield [1, 2, 3, 100000, 1, 2, 3], i, {}
    yield np.arange(1000), i, {}
    yield np.arange(1001), i, {}
    yield rng.standard_normal([40, 30]), f, {}
    yield rng.standard_normal([9, 8, 20]), f, {}
    yield rng.standard_normal([2, 7, 3, 30]), f, {}
    yield rng.standard_normal([1001, 1]), f, {}
    yield [1.5, -2, 3e-5, 0, 1e100, nan, inf, -inf], "float64", dict(sci_mode=True)
    yield [1.5, -2, 3e-5], f, dict(sci_mode=True, precision=3)
    yield [0.25, 0.35, 0.125, 2.5, -0.75], "float64", dict(precision=1)
    yield [0.5, 1.5, 2.5, 3.5], "float64", dict(precision=0)
    yield rng.standard_normal([4, 5]), f, dict(precision=2, threshold=10, edgeitems=1)
    yield rng.standard_normal([20]), f, dict(precision=2, linewidth=30)
    yield rng.standard_normal([3, 9]), f, dict(precision=3, linewidth=5)
    yield rng.standard_normal([5, 9]), f, dict(threshold=5, edgeitems=2, sci_mode=True, linewidth=100)
    c = "complex64"
    yield 1 + 2j, c, {}
    yield [1 + 2j, 3.5 - 4.25j, -1e-3], c, {}
    yield [[1 + 2j, 3.5], [1e10, -1j]], "complex128", {}
    yield [complex(0, nan), complex(inf, -inf), complex(-2, -0.0)], c, {}
    yield np.arange(1001) * (1 - 2j), "complex128", {}
    yield [1.5 - 2j, 3e-5j], c, dict(sci_mode=True, precision=3)
    yield np.zeros([2, 0]), c, {}


def main():
    out = []
    for values, dtype, options in cases():
        values = np.asarray(values)
        if values.size > 30:  # a small file
            values = values.round(3)
        for stop in (True, False) if dtype == "float32" and not out else (True,):
            t = paddle.to_tensor(values, dtype=dtype, stop_gradient=stop)
            paddle.set_printoptions(**{**DEFAULT, **options})
            if "complex" in dtype:
                values = np.stack([values.real, values.imag], -1)
            flat = values.astype("float64").reshape(-1)
            out.append(
                dict(values=" ".join(f"{v:g}" if v == float(f"{v:g}") else repr(float(v)) for v in flat), dtype=dtype, shape=list(t.shape), stop=stop,
                     options={**DEFAULT, **options}, text=str(t))
            )
    OUT.write_text("[\n" + ",\n".join(json.dumps(c) for c in out) + "\n]\n")
    print(f"{len(out)} cases")


if __name__ == "__main__":
    main()
