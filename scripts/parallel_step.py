"""A training step of ResNet18 on 32 pictures in each of two processes with one thread, beside PyTorch's DistributedDataParallel.

    python scripts/parallel_step.py [rounds]            two processes of this machine
    python scripts/parallel_step.py [rounds] --wire     two machines: network namespaces joined by 1 Gbit/s (needs root)

The libraries run in turns; of all steps the best and the median are printed, in milliseconds. A step is over when both processes
are done with it. Every other step is `alone`: gradients stay each process's own (`no_sync`), while the other process does the
same. How much longer the `parallel` step beside it takes is what being parallel costs, and the median of that is printed.
Neighbours are compared since the machine's own speed changes by more than that from minute to minute.
How much of the reduction is hidden: the time that reducing all gradients takes when nothing else is done, and the part of it by which a
step becomes longer. That is asked of the wire, where a reduction waits and computes little; on one machine it costs a few
milliseconds of the cores that compute, and those cannot be hidden where every core has work.

A machine on the wire has one core, for its process and for the packets that reach it. Without that the system may let both
machines' packets, and the threads they wake, run on one core, whose process the other machine then waits for.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import wire_speed

LIBRARIES = ("torch", "sampan")
CORES = sorted(os.sched_getaffinity(0))[:2]

WORKER = """
import contextlib, os, sys, time
library, pairs = sys.argv[1], int(sys.argv[2])
rank = int(os.environ["RANK"])
pictures, classes, size = 32, 1000, 224
if library == "torch":
    import torch, torch.distributed as dist, torchvision
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = torch.nn.parallel.DistributedDataParallel(torchvision.models.resnet18())
    sgd = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    x, y = torch.randn(pictures, 3, size, size), torch.randint(0, classes, (pictures,))
    loss_of = torch.nn.functional.cross_entropy
else:
    import sampan, sampan.distributed as dist
    dist.init_parallel_env()
    sampan.seed(0)
    net = sampan.DataParallel(sampan.vision.models.resnet18())
    sgd = sampan.optimizer.Momentum(0.01, 0.9, parameters=net.parameters())
    x, y = sampan.randn([pictures, 3, size, size]), sampan.randint(0, classes, [pictures])
    loss_of = sampan.nn.functional.cross_entropy
def step(alone):
    with net.no_sync() if alone else contextlib.nullcontext():
        loss_of(net(x), y).backward()
    sgd.step()
    sgd.zero_grad() if library == "torch" else sgd.clear_grad()
def told(what, act):
    dist.barrier()
    since = time.perf_counter()
    act()
    print(what, (time.perf_counter() - since) * 1e3, flush=True)
step(True)
step(False)
for _ in range(pairs):
    told("alone", lambda: step(True))
    told("parallel", lambda: step(False))
# Everything reduced, with nothing else to do.
count = sum(int(p.numel()) for p in net.parameters())
flat = torch.zeros(count) if library == "torch" else sampan.zeros([count])
for _ in range(5):
    told("reduced", lambda: dist.all_reduce(flat))
"""


def run(folder: str, machines: list[str], library: str, pairs: int, port: int) -> dict[str, list[float]]:
    path = pathlib.Path(folder, "worker.py")
    path.write_text(WORKER)
    workers = []
    for rank in range(2):
        env = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        env |= {"OMP_NUM_THREADS": 1, "SAMPAN_NUM_THREADS": 1}
        command = [sys.executable, path, library, str(pairs)]
        if machines:
            env |= {"LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": wire_speed.HOSTS[0]}
            # One kernel runs both, so processes could share memory, and would.
            env |= {"SAMPAN_BACKEND": "tcp", "GLOO_SOCKET_IFNAME": ("va", "vb")[rank]}
            command = ["ip", "netns", "exec", machines[rank], "taskset", "-c", str(CORES[rank]), *command]
        env = os.environ | {name: str(value) for name, value in env.items()}
        workers.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
    both = [[line.split() for line in worker.communicate()[0].splitlines()] for worker in workers]
    found: dict[str, list[float]] = {"alone": [], "parallel": [], "reduced": []}
    for (what, mine), (_, theirs) in zip(*both, strict=True):
        found[what].append(max(float(mine), float(theirs)))
    return found


def give_cores(machines: list[str]) -> None:
    """Lets the packets that reach a machine be handled by its core."""
    for core, name, link in zip(CORES, machines, ("va", "vb")):
        mask = f"echo {1 << core:x} > /sys/class/net/{link}/queues/rx-0/rps_cpus"
        subprocess.run(["ip", "netns", "exec", name, "sh", "-c", mask], check=True)


def measure(rounds: int, machines: list[str]) -> None:
    found: dict[str, dict[str, list[float]]] = {library: {} for library in LIBRARIES}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds):
            for i, library in enumerate(LIBRARIES):
                for what, took in run(folder, machines, library, 5, 29600 + 10 * turn + i).items():
                    found[library].setdefault(what, []).extend(took)
    for library, took in found.items():
        for what in ("alone", "parallel"):
            print(f"{library:>8} {what:>8}: best {min(took[what]):8.1f} median {statistics.median(took[what]):8.1f}")
    for library, took in found.items():
        longer = statistics.median(p - a for a, p in zip(took["alone"], took["parallel"]))
        bare = min(took["reduced"])
        print(f"{library}: reducing alone {bare:.1f} ms, a step longer by {longer:.1f} ms, hidden {1 - longer / bare:.0%}")
    best, middle = min, statistics.median
    ratios = (of(found["torch"]["parallel"]) / of(found["sampan"]["parallel"]) for of in (best, middle))
    print("torch / sampan: {:.2f} by the best, {:.2f} by the median".format(*ratios))


def main() -> None:
    wire = "--wire" in sys.argv
    numbers = [int(word) for word in sys.argv[1:] if word != "--wire"]
    machines = [f"sampan{os.getpid()}{side}" for side in "ab"] if wire else []
    try:
        if machines:
            wire_speed.lay(machines)
            give_cores(machines)
        measure(numbers[0] if numbers else 2, machines)
    finally:
        for name in machines:
            subprocess.run(["ip", "netns", "del", name])


if __name__ == "__main__":
    main()
