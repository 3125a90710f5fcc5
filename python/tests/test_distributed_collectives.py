"""Every collective with Paddle's names and arguments."""

import os
import pathlib
import subprocess
import sys

import pytest

import sampan
import sampan.distributed as dist

HOME = str(pathlib.Path(sampan.__file__).parents[1])

PROGRAM = """
import datetime
import numpy as np
import sampan
import sampan.distributed as dist

group = dist.init_parallel_env()
rank, size = dist.get_rank(), dist.get_world_size()
T = sampan.to_tensor

def check(tensor, expected):
    assert np.asarray(tensor.numpy()).tolist() == expected, (rank, tensor, expected)

assert dist.get_backend() == "SHARED_MEMORY" and "one machine" in group.backend_reason
for dtype in ("float16", "bfloat16", "float32", "float64", "int8", "uint8", "int16", "int32", "int64"):
    x = T([rank + 1, 3]).astype(dtype)
    dist.all_reduce(x)
    assert x.astype("float32").tolist() == [3.0, 6.0] and dtype in str(x.dtype)
flag = T([rank == 0, False])
dist.all_reduce(flag, op=dist.ReduceOp.MAX)
check(flag, [True, False])
z = T(np.array([1 + 1j * rank], "complex64"))
dist.all_reduce(z, dist.ReduceOp.SUM)
check(z, [2 + 1j])
x = T([1.0, 2.0]) * (rank + 1)
task = dist.all_reduce(x, op=dist.ReduceOp.AVG, sync_op=False)
assert task.wait() and task.is_completed()
check(x, [1.5, 3.0])
dist.all_reduce(x, sync_op=False)
dist.wait(x)
check(x, [3.0, 6.0])
x = T([float(rank + 1)])
dist.reduce(x, dst=1, op=dist.ReduceOp.PROD)
check(x, [1.0] if rank == 0 else [2.0])
x = T([rank])
dist.broadcast(x, 1)
check(x, [1])
found = []
dist.all_gather(found, T([[rank, 5]]))
assert [t.tolist() for t in found] == [[[0, 5]], [[1, 5]]]
found = []
dist.gather(T([rank]), found, dst=1)
assert [t.tolist() for t in found] == ([[0], [1]] if rank == 1 else [])
x = sampan.zeros([2])
dist.scatter(x, [T([1.0, 2.0]), T([3.0, 4.0])] if rank == 1 else None, src=1)
check(x, [[1.0, 2.0], [3.0, 4.0]][rank])
dist.reduce_scatter(x, [T([1.0, 2.0]), T([3.0, 4.0 + rank])])
check(x, [[2.0, 4.0], [6.0, 9.0]][rank])
out = []
dist.alltoall(out, [T([10 * rank]), T([10 * rank + 1])])
assert [t.item() for t in out] == [rank, 10 + rank]
out = sampan.zeros([4], dtype="int64")
dist.alltoall_single(out, T([0, 1, 2, 3]) + 10 * rank)
check(out, [0, 1, 10, 11] if rank == 0 else [2, 3, 12, 13])
# Uneven: one row to the first, two to the second, or the other way round.
give = [1, 2] if rank == 0 else [2, 1]
take = [1, 2] if rank == 0 else [2, 1]
out = sampan.zeros([3, 2])
dist.alltoall_single(out, T(np.full((3, 2), rank, "float32")), give, take)
check(out, [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0]] if rank == 0 else [[0.0, 0.0], [0.0, 0.0], [1.0, 1.0]])
x = T([7.0]) if rank == 0 else sampan.zeros([1])
dist.send(x, dst=1) if rank == 0 else dist.recv(x, src=0)
check(x, [7.0])
# Both receive before they send: nobody waits for ever.
there, here = T([float(rank)]), sampan.zeros([1])
tasks = dist.batch_isend_irecv([dist.P2POp(dist.irecv, here, 1 - rank), dist.P2POp(dist.isend, there, 1 - rank)])
[task.wait() for task in tasks]
check(here, [1.0 - rank])
# One tensor in place of a list.
whole = sampan.zeros([4])
dist.stream.all_gather(whole, T([float(rank), 9.0]))
check(whole, [0.0, 9.0, 1.0, 9.0])
part = sampan.zeros([2])
dist.stream.reduce_scatter(part, whole)
check(part, [0.0, 18.0] if rank == 0 else [2.0, 18.0])
# Values of Python.
found = []
dist.all_gather_object(found, {"rank": rank, "text": "x" * (1 + rank), "list": [1, 2.5, None, True]})
assert [v["rank"] for v in found] == [0, 1] and found[1]["text"] == "xx" and found[0]["list"][1:] == [2.5, None, True]
values = ["from", 1] if rank == 1 else [None, None]
dist.broadcast_object_list(values, src=1)
assert values == ["from", 1]
values = []
dist.scatter_object_list(values, [{"a": 1}, [2, 3]] if rank == 0 else None, src=0)
assert values == ([{"a": 1}] if rank == 0 else [[2, 3]])
values = []
dist.send_object_list(["hello", 5], dst=1) if rank == 0 else dist.recv_object_list(values, src=0)
assert rank == 0 or values == ["hello", 5]
# Groups.
alone = dist.new_group([1], timeout=datetime.timedelta(seconds=20))
both = dist.new_group([1, 0], backend="tcp")
assert alone.rank == (0 if rank == 1 else -1) and both.ranks == [0, 1] and both.backend == "tcp"
assert dist.get_group(both.id) is both and both.get_group_rank(1) == 1 and both.is_member() and not alone.is_member()
x = T([1.0])
dist.all_reduce(x, group=both)
check(x, [2.0])
assert dist.all_reduce(x, group=alone) is None or rank == 1
check(x, [2.0])
dist.barrier(both)
try:
    dist.all_reduce(x, op=9)
    raise AssertionError
except ValueError as error:
    assert "there is no ReduceOp 9" in str(error)
dist.barrier()
# Whoever leaves can meet again.
dist.destroy_process_group()
assert not dist.is_initialized()
dist.init_parallel_env()
x = T([1])
dist.all_reduce(x)
check(x, [2])
print("all is well", rank)
"""


def test_every_collective(tmp_path):
    (tmp_path / "job.py").write_text(PROGRAM)
    command = [sys.executable, "-m", "sampan.distributed.launch", "--nproc_per_node", "2", "job.py"]
    env = os.environ | {"PYTHONPATH": HOME}
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "all is well 0" in done.stdout and "all is well 1" in (tmp_path / "log" / "workerlog.1").read_text()


def test_alone_every_call_is_the_identity():
    x = sampan.to_tensor([1.0, 2.0])
    for call in (
        lambda: dist.all_reduce(x),
        lambda: dist.broadcast(x, 0),
        lambda: dist.reduce(x, 0),
        lambda: dist.scatter(x, [x.clone()]),
        lambda: dist.reduce_scatter(x, [x.clone()]),
    ):
        call()
        assert x.tolist() == [1.0, 2.0]
    found = []
    dist.alltoall(found, [x])
    dist.all_gather_object(found, "text")
    assert found[0].tolist() == [1.0, 2.0] and found[1] == "text"
    with pytest.raises(ValueError, match="this process itself"):
        dist.send(x, 0)
    with pytest.raises(ValueError, match="rank 3"):
        dist.broadcast(x, 3)
    with pytest.raises(ValueError, match="there is no backend"):
        dist.new_group(backend="pigeons")
    with pytest.raises(RuntimeError, match="NCCL"):
        dist.new_group(backend="nccl")


def test_what_arrives_is_data_and_nothing_else():
    class Own:
        pass

    with pytest.raises(TypeError):
        dist.all_gather_object([], Own())
