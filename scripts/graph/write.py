"""Saves networks and single calls with sampan, for `check.py` to read in environments with Paddle.

    python scripts/graph/write.py target/graphs
"""

import os
import sys

import numpy as np
import sampan

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import calls
import networks


def keep(path: str, arrays, results) -> None:
    """Inputs and outputs beside the files."""
    results = list(results) if isinstance(results, (list, tuple)) else [results]
    named = {f"x{i}": a for i, a in enumerate(arrays)} | {f"y{i}": r.numpy() for i, r in enumerate(results)}
    np.savez(path + ".npz", **named)


def fixed(arrays) -> list:
    return [sampan.static.InputSpec(list(a.shape), str(a.dtype), f"x{i}") for i, a in enumerate(arrays)]


def main(folder: str) -> None:
    left_out = []
    for name in networks.ALL:
        sampan.seed(1)
        net, specs, arrays = networks.make(sampan, name)
        net.eval()
        path = os.path.join(folder, name)
        sampan.jit.save(net, path, input_spec=specs)
        keep(path, arrays, net(*map(sampan.to_tensor, arrays)))
    for name, (function, arrays, _) in calls.CASES.items():
        path = os.path.join(folder, "calls", name)

        def program(*tensors, function=function):
            return function(sampan, *tensors)

        try:
            try:
                sampan.jit.save(program, path, input_spec=calls.specs(sampan, name))
            except ValueError:
                # Extents that belong together, of which one is free and the other is not.
                sampan.jit.save(program, path, input_spec=fixed(arrays))
            keep(path, arrays, program(*map(sampan.to_tensor, arrays)))
        except (NotImplementedError, ValueError) as error:
            left_out.append(f"{name}: {error}")
    print(f"{folder}: {len(networks.ALL)} networks, {len(calls.CASES) - len(left_out)} calls; left out:", *left_out, sep="\n  ")


if __name__ == "__main__":
    main(sys.argv[1])
