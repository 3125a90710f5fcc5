"""Reads with Paddle what `write.py` saved, and compares the results. Fails if one differs.

    python scripts/graph/check.py target/graphs                          # jit.load
    FLAGS_enable_pir_api=0 python scripts/graph/check.py target/graphs   # the same by the .pdmodel, in Paddle 3
    python scripts/graph/check.py target/graphs .pdmodel                 # paddle.inference, networks only
    python scripts/graph/check.py target/graphs .json
"""

import glob
import os
import sys

import numpy as np
import paddle


def by_load(path: str, arrays) -> list:
    layer = paddle.jit.load(path)
    layer.eval()
    found = layer(*map(paddle.to_tensor, arrays))
    return [r.numpy() for r in (found if isinstance(found, (list, tuple)) else [found])]


def by_predictor(path: str, arrays, end: str) -> list:
    config = paddle.inference.Config(path + end, path + ".pdiparams")
    config.disable_gpu()
    config.disable_glog_info()
    predictor = paddle.inference.create_predictor(config)
    for name, array in zip(predictor.get_input_names(), arrays):
        predictor.get_input_handle(name).copy_from_cpu(array)
    predictor.run()
    return [predictor.get_output_handle(name).copy_to_cpu() for name in predictor.get_output_names()]


def main(folder: str, end: str | None) -> int:
    files = glob.glob(f"{folder}/*.npz") + ([] if end else glob.glob(f"{folder}/calls/*.npz"))
    failed = []
    for file in sorted(files):
        path, kept = file[:-4], np.load(file)
        arrays = [kept[f"x{i}"] for i in range(len(kept.files)) if f"x{i}" in kept]
        expected = [kept[f"y{i}"] for i in range(len(kept.files)) if f"y{i}" in kept]
        try:
            found = by_predictor(path, arrays, end) if end else by_load(path, arrays)
            assert len(found) == len(expected), (len(found), len(expected))
            for a, b in zip(found, expected):
                assert a.shape == b.shape and a.dtype == b.dtype, (a.shape, b.shape, a.dtype, b.dtype)
                scale = max(1.0, float(np.abs(b).max())) if b.size and b.dtype.kind == "f" else 1.0
                np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5 * scale)
        except Exception as error:
            failed.append(f"{os.path.basename(path)}: {type(error).__name__}: {str(error)[-200:]}")
    how = f"paddle.inference of {end}" if end else "jit.load"
    print(f"Paddle {paddle.__version__}, {how}: {len(files) - len(failed)} of {len(files)}", *failed, sep="\n  ")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else None))
