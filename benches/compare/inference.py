"""One network at a time: ONNX Runtime and sampan's predictor in turns, the fastest of many runs of each.

    python benches/compare/inference.py [--only lenet,resnet50] [--seconds 10] [--json FILE] [--cpu] [--int8]

`--cpu` counts the time of the processor on one thread (with SAMPAN_NUM_THREADS=1), for machines that do other things as well.

`--int8` measures networks in eight bits instead: ONNX Runtime's own static quantisation (QDQ, one scale for each channel of the
weights) beside ours, calibrated with the same batch, and our float32 in the same run.

Needs torch, torchvision, onnx and onnxruntime beside sampan. The network is PyTorch's, written as ONNX for the one and built
from the same numbers for the other; what both give is compared before anything is measured.
"""

import argparse
import json
import os
import tempfile
import time

THREADS = int(os.environ.setdefault("SAMPAN_NUM_THREADS", "2"))
os.environ.setdefault("OMP_NUM_THREADS", str(THREADS))

import numpy as np  # noqa: E402
import onnxruntime as ort  # noqa: E402
import torch  # noqa: E402

import sampan  # noqa: E402
from sampan import inference, nn  # noqa: E402
from sampan.static import InputSpec  # noqa: E402


class Encoder(torch.nn.Module):
    """Two layers of a transformer's encoder."""

    def __init__(self):
        super().__init__()
        layer = torch.nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True, activation="gelu")
        self.layers = torch.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)

    def forward(self, x):
        return self.layers(x)


class Recurrent(torch.nn.Module):
    """Two layers of an LSTM."""

    def __init__(self):
        super().__init__()
        self.lstm = torch.nn.LSTM(128, 256, 2, batch_first=True)

    def forward(self, x):
        return self.lstm(x)[0]


def torch_lenet():
    n = torch.nn
    return n.Sequential(
        n.Conv2d(1, 6, 3, padding=1), n.ReLU(), n.MaxPool2d(2), n.Conv2d(6, 16, 5), n.ReLU(), n.MaxPool2d(2),
        n.Flatten(), n.Linear(400, 120), n.Linear(120, 84), n.Linear(84, 10),
    )  # fmt: skip


def torch_zoo(name):
    import torchvision

    return getattr(torchvision.models, name)(weights=None)


class Lstm(nn.Layer):
    """As Recurrent."""

    def __init__(self):
        super().__init__()
        self.lstm = nn.LSTM(128, 256, 2)

    def forward(self, x):
        return self.lstm(x)[0]


def encoder():
    layer = nn.TransformerEncoderLayer(256, 4, 1024, dropout=0.0, activation="gelu")
    return nn.TransformerEncoder(layer, 2)


CASES = {
    "lenet b1": (torch_lenet, lambda: sampan.vision.models.LeNet(), (1, 1, 28, 28)),
    "mobilenet_v3_small b1": (
        lambda: torch_zoo("mobilenet_v3_small"), lambda: sampan.vision.models.mobilenet_v3_small(), (1, 3, 224, 224),
    ),
    "resnet50 b1": (lambda: torch_zoo("resnet50"), lambda: sampan.vision.models.resnet50(), (1, 3, 224, 224)),
    "resnet18 b8": (lambda: torch_zoo("resnet18"), lambda: sampan.vision.models.resnet18(), (8, 3, 224, 224)),
    "encoder b8 s128": (Encoder, encoder, (8, 128, 256)),
    "lstm b32 s64": (Recurrent, Lstm, (32, 64, 128)),
}  # fmt: skip


def peer(make, shape, folder):
    """ONNX Runtime's session."""
    torch.manual_seed(0)
    net = make().eval()
    path = os.path.join(folder, "net.onnx")
    torch.onnx.export(net, (torch.zeros(shape),), path, input_names=["x"], dynamo=False)
    options = ort.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
    begin = time.perf_counter()
    session = ort.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    return session, time.perf_counter() - begin


def ours(make, shape, folder):
    """Sampan's predictor, and how long it took to make it ready."""
    net = make()
    net.eval()
    prefix = os.path.join(folder, "net")
    sampan.jit.save(net, prefix, input_spec=[InputSpec([None, *shape[1:]], "float32", "x")])
    graph = sampan._core.Graph.load(prefix)
    x = sampan.zeros(shape)
    begin = time.perf_counter()
    made = sampan._core.Predictor(graph)
    made.describe([x])
    ready = time.perf_counter() - begin
    return inference.create_predictor(inference.Config(prefix + ".json", prefix + ".pdiparams")), made, ready


def measure(name, seconds, clock):
    """Milliseconds of both, in turns."""
    torch_make, make, shape = CASES[name]
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)
    with tempfile.TemporaryDirectory() as folder:
        session, ort_ready = peer(torch_make, shape, folder)
        predictor, made, ready = ours(make, shape, folder)
    source = predictor.get_input_handle(predictor.get_input_names()[0])
    result = predictor.get_output_handle(predictor.get_output_names()[0])

    def run_ours():
        source.copy_from_cpu(x)
        predictor.run()
        return result.copy_to_cpu()

    tensor = [sampan.to_tensor(x)]
    runs = {
        "ort": lambda: session.run(None, {"x": x}),
        "sampan": run_ours,
        "bare": lambda: made.run(tensor),
    }
    best = fastest(runs, seconds, clock)
    return {k: v * 1e3 for k, v in best.items()} | {"ready": ready * 1e3, "ort_ready": ort_ready * 1e3}


def quantised(name, seconds, clock):
    """Milliseconds of ONNX Runtime in eight bits, ours in eight bits and in float32, in turns."""
    from onnxruntime.quantization import CalibrationDataReader, QuantFormat, QuantType, quantize_static
    from onnxruntime.quantization.shape_inference import quant_pre_process

    torch_make, make, shape = CASES[name]
    x = np.random.default_rng(0).standard_normal(shape, dtype=np.float32)

    class Batch(CalibrationDataReader):
        left = [{"x": x}]

        def get_next(self):
            return self.left.pop() if self.left else None

    with tempfile.TemporaryDirectory() as folder:
        peer(torch_make, shape, folder)
        path = os.path.join(folder, "net.onnx")
        quant_pre_process(path, path + ".ready", skip_symbolic_shape=True)
        quantize_static(
            path + ".ready", path + ".int8", Batch(), quant_format=QuantFormat.QDQ, per_channel=True,
            activation_type=QuantType.QUInt8, weight_type=QuantType.QInt8,
        )  # fmt: skip
        options = ort.SessionOptions()
        options.intra_op_num_threads, options.inter_op_num_threads = THREADS, 1
        session = ort.InferenceSession(path + ".int8", options, providers=["CPUExecutionProvider"])
        _, plain, _ = ours(make, shape, folder)
        prefix = os.path.join(folder, "net")
        tensor = [sampan.to_tensor(x)]
        made = {}
        for mode, data in {"int8": tensor, "dynamic": None}.items():
            sampan.quantization.quantize_network(prefix, prefix + mode, mode="static" if data else mode, data=data)
            made[mode] = sampan._core.Predictor(sampan._core.Graph.load(prefix + mode))
        theirs = sampan._core.Predictor(sampan._core.OnnxModel.load(path + ".int8").graph())
    runs = {
        "ort": lambda: session.run(None, {"x": x}),
        "sampan": lambda: made["int8"].run(tensor),
        "theirs": lambda: theirs.run(tensor),
        "dynamic": lambda: made["dynamic"].run(tensor),
        "float32": lambda: plain.run(tensor),
    }
    return {k: v * 1e3 for k, v in fastest(runs, seconds, clock).items()}


def fastest(runs, seconds, clock):
    """Seconds of the fastest of many runs of each, in turns."""
    best = dict.fromkeys(runs, float("inf"))
    for run in runs.values():
        for _ in range(3):
            run()
    end = time.perf_counter() + seconds
    while time.perf_counter() < end:
        for kind, run in runs.items():
            run()
            # The clock of the processor ticks seldom.
            times = 1 if clock is time.perf_counter else max(1, int(0.3 / min(max(best[kind], 1e-5), 0.3)))
            for _ in range(max(3, min(200, int(0.02 / max(best[kind], 1e-5)))) if times == 1 else 1):
                begin = clock()
                for _ in range(times):
                    run()
                best[kind] = min(best[kind], max(clock() - begin, 1e-9) / times)
    return best


def table_of_int8(wanted, seconds, clock):
    """A table of networks in eight bits."""
    rows = {}
    print("| network | ONNX Runtime int8, ms | sampan int8, ms | ratio | its file here, ms | dynamic, ms | float32, ms | gain |")
    print("|---|---|---|---|---|---|---|---|")
    for name in CASES:
        if (wanted and not any(w in name for w in wanted)) or "lstm" in name:
            continue
        rows[name] = r = quantised(name, seconds, clock)
        print(
            f"| {name} | {r['ort']:.3f} | {r['sampan']:.3f} | {r['ort'] / r['sampan']:.2f} | {r['theirs']:.3f} | "
            f"{r['dynamic']:.3f} | {r['float32']:.3f} | {r['float32'] / r['sampan']:.2f} |",
            flush=True,
        )
    return rows


def main():
    """A table, or a file."""
    args = argparse.ArgumentParser()
    args.add_argument("--only", default="")
    args.add_argument("--seconds", type=float, default=10)
    args.add_argument("--json")
    args.add_argument("--cpu", action="store_true")
    args.add_argument("--int8", action="store_true")
    args = args.parse_args()
    wanted = [w for w in args.only.split(",") if w]
    clock = time.thread_time if args.cpu else time.perf_counter
    if args.int8:
        rows = table_of_int8(wanted, args.seconds, clock)
        if args.json:
            with open(args.json, "w") as f:
                json.dump(rows, f, indent=1)
        return
    rows = {}
    print("| network | ONNX Runtime, ms | sampan, ms | without handles, ms | ratio | made ready, ms (ONNX Runtime) |")
    print("|---|---|---|---|---|---|")
    for name in CASES:
        if wanted and not any(w in name for w in wanted):
            continue
        rows[name] = r = measure(name, args.seconds, clock)
        ready = f"{r['ready']:.0f} ({r['ort_ready']:.0f})"
        print(
            f"| {name} | {r['ort']:.3f} | {r['sampan']:.3f} | {r['bare']:.3f} | {r['ort'] / r['sampan']:.2f} | {ready} |",
            flush=True,
        )
    if args.json:
        with open(args.json, "w") as f:
            json.dump(rows, f, indent=1)


if __name__ == "__main__":
    main()
