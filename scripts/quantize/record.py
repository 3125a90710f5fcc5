"""Records what others make of quantised networks: crates/sampan-graph/tests/quantised.

    python scripts/quantize/record.py onnxruntime    (needs torch, onnx and onnxruntime)
    python scripts/quantize/record.py paddle         (needs paddlepaddle 2.6.2; later ones save PTQ's networks wrongly)
"""

import os
import sys
import tempfile

import numpy as np

FOLDER = os.path.join(os.path.dirname(__file__), "../../crates/sampan-graph/tests/quantised")


def onnxruntime():
    """ONNX Runtime's quantiser, static and dynamic, and its answers without changes of its own to the graph."""
    import onnxruntime as ort
    import torch
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_dynamic, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    class Net(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b = torch.nn.Conv2d(3, 8, 3, padding=1), torch.nn.Conv2d(8, 16, 3, stride=2, groups=2)
            self.c, self.d = torch.nn.Conv2d(16, 16, 3, groups=16), torch.nn.Linear(16 * 4, 10)

        def forward(self, x):
            x = torch.relu(self.c(torch.relu(self.b(torch.relu(self.a(x))))))
            return self.d(torch.flatten(torch.nn.functional.max_pool2d(x, 2), 1))

    torch.manual_seed(0)
    x = np.random.default_rng(0).standard_normal((4, 3, 14, 14), dtype=np.float32)

    class Batch(CalibrationDataReader):
        def __init__(self):
            self.left = [{"x": x}]

        def get_next(self):
            return self.left.pop() if self.left else None

    answers = {"x": x}
    with tempfile.TemporaryDirectory() as folder:
        plain, ready = os.path.join(folder, "plain.onnx"), os.path.join(folder, "ready.onnx")
        torch.onnx.export(
            Net().eval(), (torch.from_numpy(x),), plain, input_names=["x"], dynamo=False, dynamic_axes={"x": {0: "n"}}
        )
        quant_pre_process(plain, ready)
        for name, options in {
            "qdq_u8": {"activation_type": QuantType.QUInt8},
            "qdq_s8": {"activation_type": QuantType.QInt8},
            "qdq_pc": {"activation_type": QuantType.QUInt8, "per_channel": True},
        }.items():
            path = os.path.join(FOLDER, name + ".onnx")
            quantize_static(ready, path, Batch(), quant_format=QuantFormat.QDQ, weight_type=QuantType.QInt8, **options)
        for name, options in {
            "dyn": {"weight_type": QuantType.QInt8},
            "dyn_u8": {"weight_type": QuantType.QUInt8},
            "dyn_pc": {"weight_type": QuantType.QInt8, "per_channel": True},
        }.items():
            quantize_dynamic(ready, os.path.join(FOLDER, name + ".onnx"), **options)
    for name in ("qdq_u8", "qdq_s8", "qdq_pc", "dyn", "dyn_u8", "dyn_pc"):
        options = ort.SessionOptions()
        options.graph_optimization_level = ort.GraphOptimizationLevel.ORT_DISABLE_ALL
        session = ort.InferenceSession(os.path.join(FOLDER, name + ".onnx"), options, providers=["CPUExecutionProvider"])
        answers[name] = session.run(None, {"x": x})[0]
    np.savez(os.path.join(FOLDER, "onnxruntime.npz"), **answers)


def paddle():
    """What Paddle's PTQ converted and saved."""
    import shutil

    import paddle
    from paddle import nn
    from paddle.quantization import PTQ, QuantConfig
    from paddle.quantization.observers import AbsmaxObserver

    class Net(nn.Layer):
        def __init__(self):
            super().__init__()
            self.c, self.r, self.l = nn.Conv2D(1, 4, 3), nn.ReLU(), nn.Linear(4 * 36, 3)

        def forward(self, x):
            return self.l(paddle.flatten(self.r(self.c(x)), 1))

    paddle.seed(0)
    net = Net()
    net.eval()
    ptq = PTQ(QuantConfig(activation=AbsmaxObserver(), weight=AbsmaxObserver()))
    watching = ptq.quantize(net)
    x = paddle.randn([4, 1, 8, 8])
    watching(x)
    small = ptq.convert(watching)
    target = os.path.join(FOLDER, "paddle-ptq")
    np.savez(target + ".npz", x=x.numpy(), y=small(x).numpy())
    with tempfile.TemporaryDirectory() as folder:
        raw = os.path.join(folder, "raw")
        paddle.jit.save(small, raw, [paddle.static.InputSpec([None, 1, 8, 8], "float32", "x")])
        paddle.enable_static()
        program, *_ = paddle.static.load_inference_model(raw, paddle.static.Executor(paddle.CPUPlace()))
        for op in program.global_block().ops:
            # Lines of files on the machine that recorded it.
            if op.desc.has_attr("op_callstack"):
                op.desc.remove_attr("op_callstack")
        with open(target + ".pdmodel", "wb") as file:
            file.write(program.desc.serialize_to_string())
        shutil.copy(raw + ".pdiparams", target + ".pdiparams")


if __name__ == "__main__":
    {"onnxruntime": onnxruntime, "paddle": paddle}[sys.argv[1]]()
