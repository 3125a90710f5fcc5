"""What a Paddle of some version saves, with inputs and outputs, as one file for the tests of sampan-graph.

    python scripts/graph/record.py crates/sampan-graph/tests/paddle-2.6.npz               # in an environment with that Paddle
    python scripts/graph/record.py crates/sampan-graph/tests/paddle-3.0.npz --networks    # without the single calls
    python scripts/graph/record.py crates/sampan-graph/tests/paddle-2.6-flows.npz --flows  # programs that branch and loop
    python scripts/graph/record.py crates/sampan-graph/tests/paddle-2.6-lists.npz --lists  # those that fill lists
    python scripts/graph/record.py crates/sampan-graph/tests/paddle-3.3-beyond.npz --beyond  # those that read what is not there
"""

import importlib.util
import inspect
import multiprocessing
import os
import sys
import tempfile

import numpy as np
import paddle

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import calls
import flows
import networks

SMALL = ["mlp", "lstm", "gru", "rnn", "transformer", "embedding"]


def saved(path: str) -> dict:
    """The program and the parameters of a save, as arrays of bytes."""
    found = {}
    for key, ends in (("program", (".pdmodel", ".json")), ("params", (".pdiparams",))):
        for end in ends:
            if os.path.exists(path + end):
                with open(path + end, "rb") as file:
                    found[key] = np.frombuffer(file.read(), "uint8")
    return found


def function(name: str, count: int, folder: str):
    """A function in a file of its own, whose source Paddle reads."""
    letters = ", ".join("abcde"[:count])
    path = os.path.join(folder, f"case_{name}.py")
    with open(path, "w") as file:
        file.write(f"import paddle\nFN = None\n\n\ndef forward_{name}({letters}):\n    return FN(paddle, {letters})\n")
    spec = importlib.util.spec_from_file_location(f"case_{name}", path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    module.FN = calls.CASES[name][0]
    return getattr(module, f"forward_{name}")


def answers(program: str, array, may_fail: bool) -> list:
    """What a saved program gives; where it may fail it has a process of its own, which some errors end."""

    def run():
        results = paddle.jit.load(program)(paddle.to_tensor(array))
        return [r.numpy() for r in (results if isinstance(results, (list, tuple)) else [results])]

    if not may_fail:
        return run()
    with tempfile.NamedTemporaryFile(suffix=".npz") as file:
        process = multiprocessing.get_context("fork").Process(target=lambda: np.savez(file.name, *run()))
        process.start()
        process.join()
        return [] if process.exitcode else list(np.load(file.name).values())


def record_flows(target: str, programs: dict) -> None:
    """Each program with several inputs, which take different ways through it."""
    entries, left_out = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for name, function in programs.items():
            # Paddle rewrites the source of a function, and asks its module for `paddle`.
            path = os.path.join(folder, f"flow_{name}.py")
            with open(path, "w") as file:
                file.write("import paddle\n\n\n" + inspect.getsource(function).replace("(paddle, x)", "(x)", 1))
            spec = importlib.util.spec_from_file_location(f"flow_{name}", path)
            module = importlib.util.module_from_spec(spec)
            sys.modules[spec.name] = module
            spec.loader.exec_module(module)
            x = paddle.static.InputSpec([None, 3], "float32", "x")
            try:
                marked = paddle.jit.to_static(getattr(module, name), input_spec=[x], full_graph=True)
                paddle.jit.save(marked, os.path.join(folder, name))
            except Exception as error:
                left_out.append(f"{name}: {type(error).__name__}")
                continue
            entries |= {f"{name}/{key}": value for key, value in saved(os.path.join(folder, name)).items()}
            for k, array in enumerate(flows.ARRAYS):
                # A loop may write the inputs: each is of its own.
                results = answers(os.path.join(folder, name), array.copy(), programs is flows.BEYOND)
                entries |= {f"{name}/x{k}": array} | {f"{name}/y{k}_{i}": r for i, r in enumerate(results)}
    np.savez_compressed(target, **entries)
    print(f"{target}: Paddle {paddle.__version__}; left out: {left_out}")


def main(target: str, networks_only: bool) -> None:
    entries, left_out = {}, []
    with tempfile.TemporaryDirectory() as folder:
        for name in [*SMALL, *(() if networks_only else (c for c in calls.CASES if c not in SMALL))]:
            path = os.path.join(folder, name)
            try:
                paddle.seed(1)
                if name in SMALL:
                    net, specs, arrays = networks.make(paddle, name)
                    net.eval()
                    results = net(*[paddle.to_tensor(a) for a in arrays])
                    paddle.jit.save(net, path, input_spec=specs)
                else:
                    arrays = calls.CASES[name][1]
                    forward = function(name, len(arrays), folder)
                    results = forward(*[paddle.to_tensor(a) for a in arrays])
                    marked = paddle.jit.to_static(forward, input_spec=calls.specs(paddle, name), full_graph=True)
                    paddle.jit.save(marked, path)
            except Exception as error:
                left_out.append(f"{name}: {type(error).__name__}")
                continue
            results = list(results) if isinstance(results, (list, tuple)) else [results]
            arrays = {f"x{i}": a for i, a in enumerate(arrays)} | {f"y{i}": r.numpy() for i, r in enumerate(results)}
            entries |= {f"{name}/{key}": value for key, value in (arrays | saved(path)).items()}
    np.savez_compressed(target, **entries)
    print(f"{target}: Paddle {paddle.__version__}; left out: {left_out}")


if __name__ == "__main__":
    kinds = {"--flows": flows.CASES, "--lists": flows.LISTS, "--beyond": flows.BEYOND}
    if kind := next((kind for kind in kinds if kind in sys.argv), None):
        record_flows(sys.argv[1], kinds[kind])
    else:
        main(sys.argv[1], "--networks" in sys.argv)
