"""How long an all-reduce takes, beside PyTorch's Gloo: `python scripts/all_reduce_speed.py [rounds]`.

The two run in turns, so that a busy machine is as hard on both; the best and the median of all rounds are printed.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

SIZES = ((4 << 20, 20), (64 << 20, 5))

WORKER = """
import sys, time
which, sizes = sys.argv[1], eval(sys.argv[2])
if which == "gloo":
    import torch, torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    make = lambda n: torch.zeros(n // 4)
else:
    import sampan, sampan.distributed as dist
    dist.init_parallel_env()
    make = lambda n: sampan.zeros([n // 4])
for size, times in sizes:
    x = make(size)
    for _ in range(times):
        dist.barrier()
        since = time.perf_counter()
        dist.all_reduce(x)
        took = (time.perf_counter() - since) * 1e3
        if dist.get_rank() == 0:
            print("TOOK", size, took, flush=True)
"""


def run(which: str, ranks: int, port: int) -> dict[int, list[float]]:
    with tempfile.TemporaryDirectory() as folder:
        path = pathlib.Path(folder, "worker.py")
        path.write_text(WORKER)
        workers = []
        for rank in range(ranks):
            env = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
            env |= {"SAMPAN_BACKEND": "tcp" if which == "tcp" else "auto"}
            command = [sys.executable, path, which, repr(SIZES)]
            env = os.environ | {name: str(value) for name, value in env.items()}
            workers.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
        text = [worker.communicate()[0] for worker in workers][0]
    took: dict[int, list[float]] = {size: [] for size, _ in SIZES}
    for line in text.splitlines():
        if line.startswith("TOOK"):
            took[int(line.split()[1])].append(float(line.split()[2]))
    return took


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    kinds = ("gloo", "sampan", "tcp")
    print(f"{'ranks':>5} {'MB':>3} " + " ".join(f"{kind:>10} best median" for kind in kinds))
    for ranks in (2, 4):
        found = {kind: {size: [] for size, _ in SIZES} for kind in kinds}
        for turn in range(rounds):
            for i, kind in enumerate(kinds):
                for size, took in run(kind, ranks, 29400 + 10 * turn + i).items():
                    found[kind][size] += took
        for size, _ in SIZES:
            row = [found[kind][size] for kind in kinds]
            cells = " ".join(f"{min(took):>15.2f} {statistics.median(took):>6.2f}" for took in row)
            ratio = f"{min(row[0]) / min(row[1]):.1f} / {statistics.median(row[0]) / statistics.median(row[1]):.1f}"
            print(f"{ranks:>5} {size >> 20:>3} {cells}   gloo / sampan: {ratio}")


if __name__ == "__main__":
    main()
