"""How long an all-reduce takes on one machine, beside PyTorch's Gloo and Open MPI's shared memory.

    python scripts/all_reduce_speed.py [rounds]

They run in turns, so that a busy machine is as hard on all; the best and the median of all rounds are printed, in
milliseconds. PyTorch must be installed where this runs; Open MPI is measured by a C program where `mpicc` and `mpirun` are found.
"""

import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile

SIZES = ((4 << 20, 20), (64 << 20, 5))
MPI = "Open MPI"
KINDS = ("PyTorch's Gloo", MPI, "shared_memory", "tcp", "gloo")

WORKER = """
import sys, time
which, sizes = sys.argv[1], eval(sys.argv[2])
if which == "PyTorch's Gloo":
    import torch, torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    make = lambda n: torch.zeros(n // 4)
else:
    import sampan, sampan.distributed as dist
    assert dist.init_parallel_env().backend == which, "another engine was chosen"
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

C_PROGRAM = """
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(int argc, char** argv) {
  int rank;
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  for (int i = 1; i + 1 < argc; i += 2) {
    long bytes = atol(argv[i]), times = atol(argv[i + 1]);
    float* x = malloc(bytes);
    memset(x, 0, bytes);
    for (long t = 0; t < times; t++) {
      MPI_Barrier(MPI_COMM_WORLD);
      double since = MPI_Wtime();
      MPI_Allreduce(MPI_IN_PLACE, x, bytes / 4, MPI_FLOAT, MPI_SUM, MPI_COMM_WORLD);
      double took = (MPI_Wtime() - since) * 1e3;
      if (rank == 0) printf("TOOK %ld %.4f\\n", bytes, took);
    }
    free(x);
  }
  MPI_Finalize();
}
"""


def times(text: str) -> dict[int, list[float]]:
    took: dict[int, list[float]] = {size: [] for size, _ in SIZES}
    for line in text.splitlines():
        if line.startswith("TOOK"):
            took[int(line.split()[1])].append(float(line.split()[2]))
    return took


def run_mpi(folder: str, ranks: int) -> dict[int, list[float]]:
    program = f"{folder}/reduce"
    if not os.path.exists(program):
        pathlib.Path(f"{program}.c").write_text(C_PROGRAM)
        subprocess.run(["mpicc", "-O2", f"{program}.c", "-o", program], check=True)
    sizes = [str(number) for pair in SIZES for number in pair]
    # Root may, as in a container; more ranks than cores may; nothing but shared memory carries bytes.
    command = ["mpirun", "--allow-run-as-root", "--oversubscribe", "-n", str(ranks), "--mca", "btl", "self,vader"]
    done = subprocess.run([*command, program, *sizes], capture_output=True, text=True, check=True)
    return times(done.stdout)


def run(folder: str, which: str, ranks: int, port: int) -> dict[int, list[float]]:
    if which == MPI:
        return run_mpi(folder, ranks)
    path = pathlib.Path(folder, "worker.py")
    path.write_text(WORKER)
    workers = []
    for rank in range(ranks):
        env = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": ranks, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        env |= {"SAMPAN_BACKEND": which}
        command = [sys.executable, path, which, repr(SIZES)]
        env = os.environ | {name: str(value) for name, value in env.items()}
        workers.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
    text = [worker.communicate()[0] for worker in workers][0]
    return times(text)


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    kinds = [k for k in KINDS if k != MPI or (shutil.which("mpicc") and shutil.which("mpirun"))]
    print("| ranks | MB | " + " | ".join(kinds) + " |\n|---|---|" + "---|" * len(kinds))
    with tempfile.TemporaryDirectory() as folder:
        for ranks in (2, 4):
            found = {kind: {size: [] for size, _ in SIZES} for kind in kinds}
            for turn in range(rounds):
                for i, kind in enumerate(kinds):
                    for size, took in run(folder, kind, ranks, 29400 + 10 * turn + i).items():
                        found[kind][size] += took
            for size, _ in SIZES:
                cells = []
                for kind in kinds:
                    took = found[kind][size]
                    cells.append(f"{min(took):.2f} ({statistics.median(took):.2f})" if took else "not here")
                print(f"| {ranks} | {size >> 20} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
