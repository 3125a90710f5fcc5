"""What Paddle saves is read by sampan, runs, and has the gradients of Paddle's own network.

    python scripts/graph/theirs.py save target/theirs      # in an environment with Paddle
    python scripts/graph/theirs.py check target/theirs     # with sampan; fails if something differs
"""

import glob
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import networks


def loss_of(results):
    """A number that all results take part in."""
    floats = [r for r in results if "float" in str(r.dtype)]
    return sum((r * r).mean() for r in floats)


def listed(results) -> list:
    return list(results) if isinstance(results, (list, tuple)) else [results]


def save(folder: str) -> None:
    import paddle

    os.makedirs(folder, exist_ok=True)
    for name in networks.ALL:
        paddle.seed(1)
        net, specs, arrays = networks.make(paddle, name)
        net.eval()
        if name in ("lstm", "gru", "rnn"):
            # Paddle's kernel keeps nothing for gradients otherwise, and these networks drop nothing.
            net.train()
        results = listed(net(*map(paddle.to_tensor, arrays)))
        loss_of(results).backward()
        kept = {f"x{i}": a for i, a in enumerate(arrays)} | {f"y{i}": r.numpy() for i, r in enumerate(results)}
        kept |= {f"g/{p.name}": p.grad.numpy() for p in net.parameters() if p.grad is not None}
        np.savez(os.path.join(folder, name + ".npz"), **kept)
        net.eval()
        paddle.jit.save(net, os.path.join(folder, name), input_spec=specs)
    print(f"{folder}: {len(networks.ALL)} networks of Paddle {paddle.__version__}")


def check(folder: str) -> int:
    import sampan

    failed, read = [], 0
    for file in sorted(glob.glob(os.path.join(folder, "*.npz"))):
        name, kept = os.path.basename(file)[:-4], np.load(file)
        try:
            layer = sampan.jit.load(file[:-4])
            layer.eval()
            arrays = [kept[f"x{i}"] for i in range(len(kept.files)) if f"x{i}" in kept]
            results = listed(layer(*map(sampan.to_tensor, arrays)))
            for i, result in enumerate(results):
                expected = kept[f"y{i}"]
                scale = max(1.0, float(np.abs(expected).max()))
                np.testing.assert_allclose(result.numpy(), expected, rtol=1e-4, atol=1e-5 * scale)
            loss_of(results).backward()
            found = {p.name: p.grad.numpy() for p in layer.parameters() if p.grad is not None}
            grads = {key[2:]: kept[key] for key in kept.files if key.startswith("g/")}
            assert set(grads) <= set(found), f"without a gradient: {sorted(set(grads) - set(found))[:5]}"
            # Some are zero but for rounding, such as those of a bias that attention takes away again.
            least = 1e-3 * max(float(np.linalg.norm(g)) for g in grads.values())
            worst = (0.0, "")
            for key, expected in grads.items():
                # As a whole: in a deep network with new weights the last digits decide which units bend.
                off = np.linalg.norm(found[key] - expected) / max(least, float(np.linalg.norm(expected)))
                worst = max(worst, (off, key))
            assert worst[0] < 2e-2, f"the gradient of {worst[1]} is off by {worst[0]:.1e} of its length"
            read += 1
        except Exception as error:
            failed.append(f"{name}: {type(error).__name__}: {str(error)[:300]}")
    print(f"{folder}: {read} networks run and have Paddle's gradients", *failed, sep="\n  ")
    return bool(failed) or not read


if __name__ == "__main__":
    sys.exit({"save": save, "check": check}[sys.argv[1]](sys.argv[2]))
