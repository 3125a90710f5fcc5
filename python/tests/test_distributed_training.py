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
    # In float32 the order of a sum turns some rectifiers on and others off: gradients of one process move by 2 % of their
    # largest when its batch is merely put in another order. In float64 what is left is what two processes do otherwise.
    sampan.set_default_dtype("float64")
    return nn.SyncBatchNorm.convert_sync_batchnorm(sampan.vision.models.resnet18(num_classes=10))

def train(name, out, bucket=25, steps=2):
    dist.init_parallel_env()
    rank, size = dist.get_rank(), dist.get_world_size()
    net = network(name)
    if size > 1:
        net = sampan.DataParallel(net, comm_buffer_size=float(bucket), last_comm_buffer_size=0.05)
    sgd = sampan.optimizer.Momentum(0.01, parameters=net.parameters())
    rng = np.random.RandomState(0)
    shape = (1, 28, 28) if name == "lenet" else (3, 32, 32)
    batch = 64 if name == "lenet" else 16
    share = batch // size
    for _ in range(steps):
        x, y = rng.rand(batch, *shape).astype(sampan.get_default_dtype()), rng.randint(0, 10, (batch, 1))
        x, y = x[rank * share : (rank + 1) * share], y[rank * share : (rank + 1) * share]
        nn.functional.cross_entropy(net(sampan.to_tensor(x)), sampan.to_tensor(y)).backward()
        sgd.step()
        sgd.clear_grad()
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


def test_corners_of_data_parallel(run):
    run(2, "corners")
