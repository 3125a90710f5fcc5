"""ONNX's own tests on `sampan.onnx.backend`, and on ONNX Runtime beside it, counted by kind.

    python scripts/onnx/backend.py [--onnxruntime]

Needs `onnx` 1.17, whose wheel has the tests as files; of the node tests those are counted that lie within sampan's dtypes.
"""

import os
import sys

import numpy as np
import onnx
import onnx.backend.test.runner
from onnx import TensorProto as T
from onnx import numpy_helper

OURS = {T.FLOAT, T.UINT8, T.INT8, T.INT16, T.INT32, T.INT64, T.BOOL, T.FLOAT16, T.DOUBLE, T.BFLOAT16, T.COMPLEX64, T.COMPLEX128}


def within(model) -> bool:
    """Tensors of our dtypes, and ONNX's own operators."""
    for value in [*model.graph.input, *model.graph.output]:
        if value.type.WhichOneof("value") != "tensor_type" or value.type.tensor_type.elem_type not in OURS:
            return False
    return not {i.domain for i in model.opset_import} & {"ai.onnx.ml", "ai.onnx.preview.training"}


def read(path: str):
    tensor = onnx.TensorProto()
    with open(path, "rb") as f:
        tensor.ParseFromString(f.read())
    return numpy_helper.to_array(tensor)


def run_test(backend, folder: str) -> None:
    """As `onnx.backend.test` compares."""
    model = onnx.load(os.path.join(folder, "model.onnx"))
    prepared = backend.prepare(model, "CPU")
    for data in sorted(d for d in os.listdir(folder) if d.startswith("test_data_set")):
        data = os.path.join(folder, data)
        files = os.listdir(data)
        count = lambda kind: len([f for f in files if f.startswith(kind)])
        inputs = [read(os.path.join(data, f"input_{i}.pb")) for i in range(count("input"))]
        expected = [read(os.path.join(data, f"output_{i}.pb")) for i in range(count("output"))]
        found = list(prepared.run(inputs))
        onnx.backend.test.runner.Runner.assert_similar_outputs(expected, found, rtol=1e-3, atol=1e-7)


def main() -> None:
    if "--onnxruntime" in sys.argv:
        import onnxruntime.backend as backend
    else:
        import sampan.onnx.backend as backend
    root = os.path.join(os.path.dirname(onnx.__file__), "backend/test/data")
    np.seterr(all="ignore")
    for kind in ["node", "simple", "pytorch-converted", "pytorch-operator"]:
        failures, count = [], 0
        for name in sorted(os.listdir(os.path.join(root, kind))):
            folder = os.path.join(root, kind, name)
            if not within(onnx.load(os.path.join(folder, "model.onnx"), load_external_data=False)):
                continue
            count += 1
            try:
                run_test(backend, folder)
            except Exception as error:  # noqa: BLE001
                failures.append(f"  {name}: {str(error).strip().splitlines()[0][:150] if str(error).strip() else error!r}")
        if "-v" in sys.argv:
            print(*failures, sep="\n")
        print(f"{kind}: {count - len(failures)} of {count} ({100 - 100 * len(failures) / count:.1f} %)")


if __name__ == "__main__":
    main()
