"""Every collective by NCCL, in a group of one process with one GPU, or of as many as `launch` starts with a GPU each.

    python scripts/nccl_group_of_one.py
    python -m sampan.distributed.launch --devices 0,1 scripts/nccl_group_of_one.py

Says what NCCL cannot do here, and how long an all-reduce of 64 MB takes.
"""

import time

import sampan
import sampan.distributed as dist


def main() -> None:
    dist.init_parallel_env()
    rank, size = dist.get_rank(), dist.get_world_size()
    group = dist.new_group(list(range(size)), backend="nccl")
    assert group.backend == "nccl", group.backend
    on_gpu = sampan.device.get_device().startswith("gpu")
    for dtype in ("float32", "float64", "float16", "bfloat16", "int32", "int64", "uint8"):
        for op, expected in (
            (dist.ReduceOp.SUM, sum(range(1, size + 1))),
            (dist.ReduceOp.MAX, size),
            (dist.ReduceOp.MIN, 1),
        ):
            x = sampan.full([1000], rank + 1).astype(dtype)
            dist.all_reduce(x, op, group=group)
            assert (x.astype("float32") == expected).all().item(), (dtype, op)
    x = sampan.full([3], float(rank))
    dist.broadcast(x, 0, group=group)
    assert (x == 0).all().item()
    found: list = []
    dist.all_gather(found, sampan.full([2], float(rank)), group=group)
    assert [t[0].item() for t in found] == list(range(size))
    x = sampan.zeros([2])
    dist.reduce_scatter(x, [sampan.full([2], float(i)) for i in range(size)], group=group)
    assert (x == rank * size).all().item()
    x = sampan.full([2], 1.0)
    dist.reduce(x, 0, group=group)
    assert (x == (size if rank == 0 else 1)).all().item()
    found = []
    dist.alltoall(found, [sampan.full([2], float(rank * 10 + i)) for i in range(size)], group=group)
    assert [t[0].item() for t in found] == [i * 10 + rank for i in range(size)]
    try:
        dist.all_reduce(sampan.zeros([2], dtype="complex64"), group=group)
        raise AssertionError("NCCL knows no complex numbers")
    except TypeError as error:
        assert "NCCL does not reduce" in str(error), error
    dist.barrier(group)
    big = sampan.ones([16 << 20])
    dist.all_reduce(big, group=group)
    start = time.perf_counter()
    for _ in range(5):
        dist.all_reduce(big, group=group)
    each = (time.perf_counter() - start) / 5
    if rank == 0:
        where = "tensors on the GPU" if on_gpu else "tensors on the host"
        print(f"nccl: {size} processes, every collective right; 64 MB all-reduce {each * 1e3:.1f} ms ({where})")


if __name__ == "__main__":
    main()
