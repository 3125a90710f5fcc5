"""Networks that several processes train: the same as one process, and the same bits each time."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import sampan

HOME = str(pathlib.Path(sampan.__file__).parents[1])

PROGRAM = """
import sys
import numpy as np
import sampan
import sampan.distributed as dist
from sampan import nn

def network(name):
    sampan.seed(7)
    if name == "lenet":
        return sampan.vision.models.LeNet()
    # After the first step of float32 weights differ in their last bits, which turns some rectifiers on and others off: from then
    # on gradients move by a percent. In float64 what is left is what two processes do otherwise, for any number of steps.
    if name == "resnet18":
        sampan.set_default_dtype("float64")
    return nn.SyncBatchNorm.convert_sync_batchnorm(sampan.vision.models.resnet18(num_classes=10))

def train(name, out, bucket=25, steps=2):
    steps = int(steps)
    dist.init_parallel_env()
    rank, size = dist.get_rank(), dist.get_world_size()
    net = network(name)
    outputs = {}
    if name == "resnet18 in float32":
        for key, layer in net.named_sublayers():
            keep = lambda _, inputs, made, key=key: outputs.__setitem__(f"out {key}", made.numpy())
            layer.register_forward_post_hook(keep)
    if size > 1:
        net = sampan.DataParallel(net, comm_buffer_size=float(bucket), last_comm_buffer_size=0.05)
    sgd = sampan.optimizer.Momentum(0.01, parameters=net.parameters())
    rng = np.random.RandomState(0)
    shape = (1, 28, 28) if name == "lenet" else (3, 32, 32)
    batch = 16 if name == "resnet18" else 64
    share = batch // size
    for _ in range(steps):
        x, y = rng.rand(batch, *shape).astype(sampan.get_default_dtype()), rng.randint(0, 10, (batch, 1))
        x, y = x[rank * share : (rank + 1) * share], y[rank * share : (rank + 1) * share]
        nn.functional.cross_entropy(net(sampan.to_tensor(x)), sampan.to_tensor(y)).backward()
        grads = {f"grad {k}": p.grad.numpy() for k, p in net.named_parameters() if p.grad is not None}
        sgd.step()
        sgd.clear_grad()
    if name == "resnet18 in float32":
        np.savez(f"{rank} {out}", **{k.replace("_layers.", ""): v for k, v in grads.items()}, **outputs)
    if rank == 0:
        np.savez(out, **{k: v.numpy() for k, v in net.state_dict().items()})
    if size > 1 and name == "lenet":
        assert len(net._reducer.buckets()) > 1, net._reducer.buckets()

def corners():
    dist.init_parallel_env()
    rank = dist.get_rank()
    net = sampan.DataParallel(nn.Linear(2, 1))
    x = sampan.to_tensor([[1.0 + rank, 2.0]])
    # Gradients of one's own are taken along by the next reduction.
    with net.no_sync():
        net(x).sum().backward()
    w = net.parameters()[0]
    assert w.grad.numpy().ravel().tolist() == [1.0 + rank, 2.0]
    net(x).sum().backward()
    assert w.grad.numpy().ravel().tolist() == [3.0, 4.0], w.grad
    # A hook of one's own sees the process's own gradient; the mean comes after it.
    w.clear_grad()
    hook = w.register_hook(lambda g: g * 2)
    net(x).sum().backward()
    assert w.grad.numpy().ravel().tolist() == [3.0, 4.0], w.grad
    hook.remove()

    # Paddle's programs also reduce by hand, and give the engine's group.
    from sampan.distributed.fleet.utils.hybrid_parallel_util import fused_allreduce_gradients
    by_hand = sampan.DataParallel(nn.Linear(2, 1), group=dist.get_group().process_group)
    with by_hand.no_sync():
        by_hand(x).sum().backward()
    fused_allreduce_gradients(list(by_hand.parameters()))
    assert by_hand.parameters()[0].grad.numpy().ravel().tolist() == [1.5, 2.0], by_hand.parameters()[0].grad

    class Branches(nn.Layer):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.never = nn.Linear(1, 1), nn.Linear(1, 1), nn.Linear(1, 1)
        def forward(self, x, which):
            return getattr(self, which)(x)

    one = sampan.ones([1, 1])
    branches = sampan.DataParallel(Branches(), find_unused_parameters=True)
    branches(one, "a" if rank == 0 else "b").sum().backward()
    inner = branches._layers
    assert inner.a.weight.grad.item() == 0.5 and inner.b.weight.grad.item() == 0.5
    assert inner.never.weight.grad is None
    strict = sampan.DataParallel(Branches())
    try:
        strict(one, "a").sum().backward()
        raise AssertionError("an unused parameter went unnoticed")
    except RuntimeError as error:
        assert "no gradient came for b.weight" in str(error) and "find_unused_parameters" in str(error), error
    # Everybody begins with what rank 0 has, buffers too.
    sampan.seed(rank)
    norm = nn.BatchNorm1D(2)
    norm._mean.set_value(sampan.full([2], float(rank)))
    parallel = sampan.DataParallel(nn.Sequential(nn.Linear(2, 2), norm))
    assert norm._mean.numpy().tolist() == [0.0, 0.0]
    found = []
    dist.all_gather(found, parallel.parameters()[0])
    assert (found[0].numpy() == found[1].numpy()).all()
    # Then each counts its own statistics, as Paddle's do.
    parallel(sampan.full([4, 2], 1.0 + rank)).sum().backward()
    found = []
    dist.all_gather(found, norm._mean)
    assert (found[0].numpy() != found[1].numpy()).any()

if __name__ == "__main__":
    name, *rest = sys.argv[1:]
    globals()[name](*rest)
"""


@pytest.fixture
def run(tmp_path):
    (tmp_path / "job.py").write_text(PROGRAM)

    def start(processes, *arguments):
        launch = ["-m", "sampan.distributed.launch", "--nproc_per_node", str(processes)] if processes > 1 else []
        env = os.environ | {"PYTHONPATH": HOME}
        command = [sys.executable, *launch, "job.py", *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=200)
        assert done.returncode == 0, done.stdout + done.stderr
        return tmp_path

    return start


@pytest.mark.parametrize("name", ["lenet", "resnet18"])
def test_two_processes_with_half_the_batch_are_one_with_all_of_it(run, name):
    folder = run(1, "train", name, "one.npz")
    run(2, "train", name, "two.npz", "0.1")
    run(2, "train", name, "again.npz", "0.1")
    one, two, again = (dict(np.load(folder / f"{name}.npz")) for name in ("one", "two", "again"))
    assert list(one) == list(two) == list(again)
    for key in one:
        limit = (1e-6 if name == "lenet" else 1e-11) * max(1, abs(one[key]).max())
        np.testing.assert_allclose(two[key], one[key], rtol=0, atol=limit, err_msg=key)
        assert (two[key] == again[key]).all(), key


def test_a_first_step_in_float32_sees_what_one_process_sees(run):
    """Every layer gives the same bits for 2 x 32 samples as for 64, so that no rectifier differs; gradients differ by the order in
    which samples are summed, and so do the weights after the step."""
    name = "resnet18 in float32"
    folder = run(1, "train", name, "one.npz", "25", "1")
    run(2, "train", name, "two.npz", "25", "1")
    one, *two = (dict(np.load(folder / file)) for file in ("0 one.npz", "0 two.npz", "1 two.npz"))
    for key in one:
        if key.startswith("out "):
            assert (np.concatenate([part[key] for part in two]) == one[key]).all(), key
        else:
            far = np.linalg.norm(two[0][key].astype("float64") - one[key]) / np.linalg.norm(one[key])
            assert far < 5e-6, (key, far)
    before, after = (dict(np.load(folder / file)) for file in ("one.npz", "two.npz"))
    for key in before:
        far = np.linalg.norm(after[key].astype("float64") - before[key]) / max(np.linalg.norm(before[key]), 1e-30)
        assert far < 1e-6, (key, far)


def test_corners_of_data_parallel(run):
    run(2, "corners")
