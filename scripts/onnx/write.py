"""What `onnx.export` writes, accepted by ONNX's checker and computed by ONNX Runtime: networks, the model zoo, single calls.

    python scripts/onnx/write.py target/onnx [zoo|networks|calls …]

Needs `onnx` and `onnxruntime`.
"""

import inspect
import os
import re
import sys

import numpy as np
import onnx
import onnxruntime
import sampan

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "graph"))
import calls
import networks

BOUND = 1e-5
# The largest image that a network of the zoo is asked about; some want no other.
SIZES = {"inception_v3": 299, "googlenet": 224, "alexnet": 224, "LeNet": 28}
# Calls without a form in ONNX: the op that has none, and the version from which on it has one.
NO_FORM = {
    "scatter": ("setitem", None),
    "tril": ("tril", 14),
    "triu": ("triu", 14),
    "grid_sample": ("grid_sample", 16),
    "unfold": ("unfold", None),
    "bitwise": ("bitwise_and", 18),
    "cumprod": ("cumprod", None),
    "put_along_axis": ("put_along", None),
    "nonzero": ("argwhere", None),
    "masked_select": ("argwhere", None),
}


def without_form(call: str, opset: int, error: Exception) -> bool:
    """Is this the error of a call that is known to have no form in that version?"""
    op, since = NO_FORM.get(call, ("", 0))
    told = rf"onnx\.export: {op} (\(.*\) )?has no form in ONNX|{op}: the result's shape depends on the values"
    return (since is None or opset < since) and re.search(told, str(error)) is not None


def zoo() -> dict:
    """The model zoo: names and what makes them."""
    models = sampan.vision.models
    made = {n: getattr(models, n) for n in dir(models) if n[0].islower()}
    return {"LeNet": models.LeNet} | {n: f for n, f in made.items() if callable(f) and not inspect.isclass(f)}


def largest_error(path: str, arrays, expected, opset: int) -> float:
    """Checks the file, runs it, and says how far the results are from ours."""
    model = onnx.load(path)
    onnx.checker.check_model(model, full_check=True)
    assert model.opset_import[0].version == opset, model.opset_import
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    names = [i.name for i in session.get_inputs()]
    found = session.run(None, dict(zip(names, arrays, strict=True)))
    worst = 0.0
    for ours, theirs in zip(expected, found, strict=True):
        assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, (ours.shape, ours.dtype, theirs.shape, theirs.dtype)
        if ours.size:
            # Relative to the largest number, as sums in float32 are exact.
            ours, theirs = ours.astype("float64"), theirs.astype("float64")
            worst = max(worst, float(np.nanmax(np.abs(ours - theirs), initial=0.0) / max(1, np.nanmax(np.abs(ours)))))
    return worst


def check(name: str, program, specs, arrays, opsets, folder: str, failures: list, left_out: list, call: str = "") -> None:
    """One program at several versions of ONNX's operators; a call that is known to have no form there is left out."""
    with sampan.no_grad():
        results = program(*map(sampan.to_tensor, arrays))
    results = results if isinstance(results, (list, tuple)) else [results]
    expected = [r.numpy() for r in results]
    for opset in opsets:
        path = os.path.join(folder, f"{name}-{opset}")
        try:
            try:
                sampan.onnx.export(program, path, input_spec=specs, opset_version=opset)
            except ValueError as error:
                # Extents that belong together, of inputs or of one and a constant, of which one is free and the other is not.
                if len(arrays) < 2 and "cannot be broadcast" not in str(error):
                    raise
                fixed = [sampan.static.InputSpec(list(a.shape), str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]
                sampan.onnx.export(program, path, input_spec=fixed, opset_version=opset)
        except (NotImplementedError, ValueError) as error:
            known = without_form(call, opset, error)
            (left_out if known else failures).append(f"{name} opset {opset}: {str(error)[:300]}")
            continue
        try:
            error = largest_error(path + ".onnx", arrays, expected, opset)
            if not error <= BOUND:
                failures.append(f"{name} opset {opset}: off by {error:.2g}")
            again = sampan.onnx.load(path + ".onnx")(*map(sampan.to_tensor, arrays))
            again = again if isinstance(again, (list, tuple)) else [again]
            for a, b in zip(again, expected, strict=True):
                np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5)
        except Exception as error:  # noqa: BLE001
            failures.append(f"{name} opset {opset}: {type(error).__name__}: {str(error)[:300]}")


def main(folder: str, parts: list[str]) -> int:
    os.makedirs(folder, exist_ok=True)
    failures: list[str] = []
    left_out: list[str] = []
    count = 0
    if "zoo" in parts:
        for name, make in zoo().items():
            sampan.seed(1)
            net = make()
            net.eval()
            n, c = SIZES.get(name, 64 if "vgg" not in name else 224), 1 if name == "LeNet" else 3
            x = np.random.RandomState(0).randn(2, c, n, n).astype("float32")
            spec = [sampan.static.InputSpec([None, c, n, n], "float32", "image")]
            check(name, net, spec, [x], [13] if n > 64 else [13, 17, 21], folder, failures, left_out)
            count += 1
    if "networks" in parts:
        for name in networks.ALL:
            sampan.seed(1)
            net, specs, arrays = networks.make(sampan, name)
            net.eval()
            check(name, net, specs, arrays, [13, 15, 17, 18, 21], folder, failures, left_out)
            count += 1
    if "calls" in parts:
        for name, (function, arrays, _) in calls.CASES.items():

            def program(*tensors, function=function):
                return function(sampan, *tensors)

            check("call-" + name, program, calls.specs(sampan, name), arrays, [13, 18, 21], folder, failures, left_out, name)
            count += 1
    print(f"{len(left_out)} calls are left out:", *left_out, sep="\n  ")
    print(*failures, sep="\n")
    print(f"{count} programs, {len(failures)} failures")
    return len(failures)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:] or ["networks", "calls", "zoo"]) > 0)
