"""Groups over MPI: the same bits as with the other engines. Needs an MPI library and its mpiexec (`pip install mpich`)."""

import os
import pathlib
import shutil
import subprocess
import sys

import pytest

import sampan
import sampan.distributed as dist

HOME = str(pathlib.Path(sampan.__file__).parents[1])
PREFIX = os.environ.get("SAMPAN_MPI_PREFIX", sys.prefix)
MPIEXEC = shutil.which("mpiexec", path=os.path.join(PREFIX, "bin")) or shutil.which("mpiexec")

# Open MPI starts neither as root, which containers are, nor more processes than there are cores, unless it is told to.
OPEN_MPI = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "PRTE_ALLOW_RUN_AS_ROOT": "1",
    "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
}

PROGRAM = """
import sampan
import sampan.distributed as dist

first = dist.init_parallel_env()
rank, size = dist.get_rank(), dist.get_world_size()
group = dist.new_group(list(range(size)), backend="mpi")
assert (group.backend, first.backend) == ("mpi", "shared_memory") and group.backend_reason == "it was asked for"
for dtype in ("float32", "float64", "bfloat16", "float16", "int64", "uint8", "complex64", "bool"):
    for count in (3, 100_001):
        x = (sampan.arange(count).astype("float32") * 0.1 + rank).astype(dtype)
        y = x.clone()
        dist.all_reduce(x, group=first)
        dist.all_reduce(y, group=group)
        assert (x == y).all().item(), dtype
# Longer than the pieces that go at once.
x = sampan.arange(3_000_000).astype("float32") + rank
dist.all_reduce(x, group=group)
assert (x == 2 * sampan.arange(3_000_000).astype("float32") + 1).all().item()
found = []
dist.all_gather(found, sampan.to_tensor([float(rank)]), group=group)
assert [t.item() for t in found] == list(range(size))
x = sampan.full([4], float(rank))
dist.broadcast(x, 1, group=group)
assert (x == 1).all().item()
x = sampan.full([4], 1.0 + rank)
dist.reduce(x, 1, group=group)
assert (x == (3.0 if rank == 1 else 1.0)).all().item()
found = []
dist.alltoall(found, [sampan.full([2], float(rank * 10 + i)) for i in range(size)], group=group)
assert [t[0].item() for t in found] == [i * 10 + rank for i in range(size)]
x = sampan.zeros([2])
dist.reduce_scatter(x, [sampan.full([2], float(i)) for i in range(size)], group=group)
assert (x == rank * size).all().item()
message = sampan.full([300_000], 7.0)
if rank == 0:
    dist.send(message, 1, group=group)
else:
    place = sampan.zeros([300_000])
    dist.recv(place, 0, group=group)
    assert (place == 7).all().item()
found = []
dist.gather(sampan.to_tensor([rank]), found, 0, group=group)
assert rank or [t.item() for t in found] == list(range(size))
x = sampan.zeros([1])
dist.scatter(x, [sampan.to_tensor([float(i)]) for i in range(size)] if rank == 0 else None, 0, group=group)
assert x.item() == rank
try:
    dist.all_reduce(sampan.zeros([3 + rank]), group=group)
    raise SystemExit("two lengths went unnoticed")
except RuntimeError as error:
    assert "all must do the same" in str(error), error
dist.barrier(group)
print(f"rank {rank} of {size} is done", flush=True)
"""


@pytest.mark.skipif(MPIEXEC is None, reason="there is no mpiexec; pip install mpich brings one")
def test_every_collective_by_mpi(tmp_path):
    (tmp_path / "job.py").write_text(PROGRAM)
    env = os.environ | {"PYTHONPATH": HOME, "SAMPAN_MPI_PREFIX": PREFIX} | OPEN_MPI
    command = [MPIEXEC, "-n", "2", sys.executable, "job.py"]
    done = subprocess.run(command, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rank 0 of 2 is done" in done.stdout and "rank 1 of 2 is done" in done.stdout


def test_engines_that_are_not_here_are_told(monkeypatch):
    dist.init_parallel_env()
    with pytest.raises(ValueError, match="auto, shared_memory, tcp, gloo, nccl or mpi"):
        dist.new_group([0], backend="smoke_signals")
    if not sampan.device.is_compiled_with_cuda() or not sampan.device.cuda.device_count():
        with pytest.raises(RuntimeError, match="NCCL cannot be used: "):
            dist.new_group([0], backend="nccl")
