"""What programs use beside training: streams of random numbers, cut sequences, metrics, files, text for parameter servers."""

import errno
import io
import os
import pathlib
import shutil
import sys

import pytest

import sampan
from sampan.distributed import fleet
from sampan.distributed.fleet import utils

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_distributed_auto import run  # noqa: E402

PARTS = """
import numpy as np
import sampan
import sampan.distributed as dist
from sampan import nn
from sampan.distributed import fleet
from sampan.distributed.fleet import metrics
from sampan.distributed.fleet.meta_parallel import get_rng_state_tracker, model_parallel_random_seed
from sampan.distributed.fleet.utils import sequence_parallel_utils as sp

strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = {"dp_degree": 1, "mp_degree": 2}
fleet.init(is_collective=True, strategy=strategy)
rank = dist.get_rank()

# One stream is the same in both processes, the other is not.
model_parallel_random_seed(100)
def drawn():
    found = []
    dist.all_gather_object(found, sampan.rand([3]).tolist())
    return found
same = drawn()
with get_rng_state_tracker().rng_state():
    own = drawn()
again = drawn()
assert same[0] == same[1] and again[0] == again[1] and own[0] != own[1]
sampan.seed(101 + rank)
assert sampan.rand([3]).tolist() == own[rank]

# Layers on parts of sequences are the layers of one process.
sampan.set_default_dtype("float64")
class Net(nn.Layer):
    def __init__(self, whole):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.up = nn.Linear(8, 16) if whole else sp.ColumnSequenceParallelLinear(8, 16, has_bias=True, gather_output=False)
        self.down = nn.Linear(16, 8) if whole else sp.RowSequenceParallelLinear(16, 8, input_is_parallel=True)
        self.whole = whole
    def forward(self, x):
        x = x if self.whole else sp.ScatterOp.apply(x)
        x = x + self.down(nn.functional.gelu(self.up(self.norm(x))))
        return x if self.whole else sp.GatherOp.apply(x)

x = sampan.to_tensor(np.random.RandomState(0).rand(6, 2, 8), stop_gradient=False)
sampan.seed(1)
one = Net(True)
sampan.seed(1)
two = Net(False)
for p in two.norm.parameters():
    sp.mark_as_sequence_parallel_parameter(p)
sp.register_sequence_parallel_allreduce_hooks(two)
weight = sampan.to_tensor(np.random.RandomState(1).rand(6, 2, 8))
a, b = one(x), two(x)
np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-12)
(a * weight).sum().backward()
expected, x.grad = x.grad.numpy(), None
(b * weight).sum().backward()
np.testing.assert_allclose(x.grad.numpy(), expected, 1e-10)
for (name, p), q in zip(one.named_parameters(), two.parameters()):
    grad = p.grad.numpy()
    axis = getattr(q, "split_axis", None)
    if axis is not None:
        grad = np.split(grad, 2, axis)[rank]
    np.testing.assert_allclose(q.grad.numpy(), grad, 1e-10, err_msg=name)
box = two.sharded_state_dict()["up.weight"]
assert (box.global_shape, box.global_offset) == ((8, 16), (0, 8 * rank))
found = dist.build_sharded_state_dict({"w": two.down.weight}, {"w": 0}, "p.")["p.w"]
assert (found.global_shape, found.global_offset) == ((16, 8), (8 * rank, 0))

# What is counted in one process counts for all.
util = fleet.util
assert util.all_reduce([1.0, rank]).tolist() == [2.0, 1.0] and int(util.all_reduce(rank + 1, "max")) == 2
assert util.all_gather(rank * 3) == [0, 3]
assert util.get_file_shard(["a", "b", "c"]) == [["a", "b"], ["c"]][rank]
util.barrier()
assert metrics.acc(np.array([3.0 + rank]), np.array([4.0])) == 7 / 8
assert metrics.rmse(np.array([9.0]), np.array([1.0])) == 3.0 and metrics.mae(np.array([3.0]), np.array([2.0])) == 1.5
assert metrics.max(np.array([rank, 5])).tolist() == [1, 5] and metrics.min(np.array([rank, 5])).tolist() == [0, 5]
halves = (np.array([[0.0, 1, 0]]), np.array([[2.0, 1, 0]])) if rank == 0 else (np.array([[0.0, 0, 3]]), np.zeros((1, 3)))
assert abs(metrics.auc(*halves) - 0.9583333333333334) < 1e-12
"""


def test_in_two_processes(tmp_path):
    run(tmp_path, PARTS, 2)


def test_streams_of_random_numbers():
    tracker = fleet.meta_parallel.RNGStatesTracker()
    tracker.add("a", 5)
    with pytest.raises(ValueError, match="a stream 'a' already"):
        tracker.add("a", 6)
    with pytest.raises(ValueError, match="the seed 5 already"):
        tracker.add("b", 5)
    with pytest.raises(ValueError, match="no stream 'c'"), tracker.rng_state("c"):
        pass
    sampan.seed(3)
    expected = sampan.rand([4]).tolist()
    sampan.seed(3)
    kept = tracker.get_states_tracker()
    with tracker.rng_state("a"):
        first = sampan.rand([4]).tolist()
    with tracker.rng_state("a"):
        assert sampan.rand([4]).tolist() != first
    assert sampan.rand([4]).tolist() == expected
    tracker.set_states_tracker(kept)
    with tracker.rng_state("a"):
        assert sampan.rand([4]).tolist() == first


def test_files(tmp_path):
    fs, a, b = utils.LocalFS(), tmp_path / "a", tmp_path / "b"
    fs.mkdirs(tmp_path / "d/e")
    fs.touch(a)
    assert fs.ls_dir(tmp_path) == (["d"], ["a"]) and fs.list_dirs(tmp_path) == ["d"] and fs.ls_dir(b) == ([], [])
    assert fs.is_file(a) and fs.is_dir(tmp_path / "d") and not fs.is_exist(b) and not fs.need_upload_download()
    with pytest.raises(utils.fs.FSFileExistsError):
        fs.touch(a, exist_ok=False)
    fs.mv(a, b)
    with pytest.raises(utils.fs.FSFileNotExistsError):
        fs.mv(a, b)
    a.write_text("words")
    with pytest.raises(utils.fs.FSFileExistsError, match="overwrite=True"):
        fs.mv(a, b)
    fs.mv(a, b, overwrite=True)
    fs.upload(b, a)
    assert fs.cat(a) == "words"
    # One file under two names is left alone; folders take the place of folders that hold something.
    fs.mv(a, a, overwrite=True)
    fs.mv(a, tmp_path / "d" / ".." / "a", overwrite=True)
    assert fs.cat(a) == "words"
    fs.mkdirs(tmp_path / "new")
    fs.touch(tmp_path / "new" / "inside")
    fs.mv(tmp_path / "new", tmp_path / "d", overwrite=True)
    assert fs.ls_dir(tmp_path / "d") == ([], ["inside"]) and fs.list_dirs(tmp_path) == ["d"]
    fs.touch(tmp_path / "file")
    fs.mv(tmp_path / "d", tmp_path / "file", overwrite=True)
    fs.mv(tmp_path / "file", tmp_path / "d")
    assert fs.ls_dir(tmp_path / "d") == ([], ["inside"])
    fs.delete(tmp_path / "d")
    fs.delete(tmp_path / "never")
    assert fs.ls_dir(tmp_path) == ([], ["a", "b"])


def test_what_cannot_be_moved_harms_nothing(tmp_path, monkeypatch):
    a, b = tmp_path / "a", tmp_path / "b"
    a.write_text("new")
    b.write_text("old")

    def elsewhere(source, target):
        raise OSError(errno.EXDEV, "another file system")

    def full(source, target, **kwargs):
        pathlib.Path(target).write_text("n")
        raise OSError(errno.ENOSPC, "no space")

    # From one file system to another a move is a copy, here one that fails.
    monkeypatch.setattr(os, "rename", elsewhere)
    with monkeypatch.context() as patch:
        patch.setattr(shutil, "copy2", full)
        with pytest.raises(OSError, match="no space"):
            utils.LocalFS().mv(a, b, overwrite=True)
    assert (a.read_text(), b.read_text(), len(list(tmp_path.iterdir()))) == ("new", "old", 2)
    utils.LocalFS().mv(a, b, overwrite=True)
    assert b.read_text() == "new" and len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("kind", [fleet.MultiSlotDataGenerator, fleet.MultiSlotStringDataGenerator])
def test_lines_as_slots(monkeypatch, capsys, kind):
    class Words(kind):
        def generate_sample(self, line):
            def samples():
                yield [("words", [int(w) for w in line.split()]), ("label", [1])]

            return samples

    made = Words()
    made.set_batch(2)
    monkeypatch.setattr(sys, "stdin", io.StringIO("1 2 3\n4 5\n6\n"))
    made.run_from_stdin()
    # As Paddle writes them.
    assert capsys.readouterr().out == "3 1 2 3 1 1\n2 4 5 1 1\n1 6 1 1\n"
    with pytest.raises(ValueError, match="slot 'x' has no values"):
        made._gen_str([("x", [])])


def test_slots_stay_the_same():
    made = fleet.MultiSlotDataGenerator()
    assert made._gen_str([("a", [1.5])]) == "1 1.5\n"
    with pytest.raises(ValueError, match="those of the first sample"):
        made._gen_str([("b", [1])])
    with pytest.raises(ValueError, match="is no number"):
        made._gen_str([("a", ["x"])])
    with pytest.raises(NotImplementedError, match="generate_sample"):
        made.run_from_memory()
