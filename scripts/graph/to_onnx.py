"""Converts with paddle2onnx what `write.py` saved, and compares what ONNX Runtime computes. Fails if one differs.

    pip install paddlepaddle==3.0.0 paddle2onnx onnxruntime
    python scripts/graph/to_onnx.py target/graphs .json        # or .pdmodel
"""

import glob
import multiprocessing
import os
import sys
import tempfile

import numpy as np
import onnxruntime
import paddle2onnx


def compare(file: str, end: str, said) -> None:
    path, kept = file[:-4], np.load(file)
    try:
        with tempfile.TemporaryDirectory() as temporary:
            target = os.path.join(temporary, "model.onnx")
            paddle2onnx.export(path + end, path + ".pdiparams", target, verbose=False)
            session = onnxruntime.InferenceSession(target, providers=["CPUExecutionProvider"])
        arrays = [kept[f"x{i}"] for i in range(len(kept.files)) if f"x{i}" in kept]
        found = session.run(None, {i.name: a for i, a in zip(session.get_inputs(), arrays)})
        for i, a in enumerate(found):
            b = kept[f"y{i}"]
            scale = max(1.0, float(np.abs(b).max())) if b.size else 1.0
            np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5 * scale)
        said.put("")
    except Exception as error:
        said.put(f"{type(error).__name__}: {str(error)[-200:]}")


def main(folder: str, end: str) -> int:
    failed, files = [], sorted(glob.glob(f"{folder}/*.npz"))
    for file in files:
        # In a process of its own: the converter may take its process with it.
        said = multiprocessing.SimpleQueue()
        process = multiprocessing.Process(target=compare, args=(file, end, said))
        process.start()
        process.join()
        why = "the process has died" if said.empty() else said.get()
        if why:
            failed.append(f"{os.path.basename(file)[:-4]}: {why}")
    print(f"paddle2onnx {paddle2onnx.__version__} of {end}: {len(files) - len(failed)} of {len(files)}", *failed, sep="\n  ")
    return bool(failed)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2]))
