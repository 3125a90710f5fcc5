"""A training step of ResNet18 on 32 pictures in each of two processes with one thread, beside PyTorch's DistributedDataParallel.

    python scripts/parallel_step.py [rounds]            two processes of this machine
    python scripts/parallel_step.py [rounds] --wire     two machines: network namespaces joined by 1 Gbit/s (needs root)

They run in turns; of all steps the best and the median are printed, in milliseconds. `alone` is one process with as many
pictures and one thread while another one does the same, without a word between them: the difference is what being parallel costs.
How much of the reduction is hidden: the time that reducing all gradients takes when nothing else is done, and the part of it by which a
step becomes longer. That is asked of the wire, where a reduction waits and computes little; on one machine it costs a few
milliseconds of the cores that compute, and those cannot be hidden where every core has work.
"""

import os
import pathlib
import statistics
import subprocess
import sys
import tempfile

import wire_speed

KINDS = ("torch alone", "torch parallel", "sampan alone", "sampan parallel")

WORKER = """
import os, sys, time
which, steps = sys.argv[1], int(sys.argv[2])
library, mode = which.split()
rank = int(os.environ["RANK"])
pictures, classes, size = 32, 1000, 224
if library == "torch":
    import torch, torch.distributed as dist, torchvision
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    net = torchvision.models.resnet18()
    if mode == "parallel":
        net = torch.nn.parallel.DistributedDataParallel(net)
    sgd = torch.optim.SGD(net.parameters(), 0.01, momentum=0.9)
    x, y = torch.randn(pictures, 3, size, size), torch.randint(0, classes, (pictures,))
    loss_of = torch.nn.functional.cross_entropy
    def step():
        loss_of(net(x), y).backward()
        sgd.step()
        sgd.zero_grad()
else:
    import sampan, sampan.distributed as dist
    dist.init_parallel_env()
    sampan.seed(0)
    net = sampan.vision.models.resnet18()
    if mode == "parallel":
        net = sampan.DataParallel(net)
    sgd = sampan.optimizer.Momentum(0.01, 0.9, parameters=net.parameters())
    x, y = sampan.randn([pictures, 3, size, size]), sampan.randint(0, classes, [pictures])
    loss_of = sampan.nn.functional.cross_entropy
    def step():
        loss_of(net(x), y).backward()
        sgd.step()
        sgd.clear_grad()
for _ in range(2):
    step()
for _ in range(steps):
    dist.barrier()
    since = time.perf_counter()
    step()
    if rank == 0:
        print("TOOK", (time.perf_counter() - since) * 1e3, flush=True)
if rank >= 0 and mode == "parallel":
    # Everything reduced, with nothing else to do.
    count = sum(int(p.numel()) for p in net.parameters())
    flat = torch.zeros(count) if library == "torch" else sampan.zeros([count])
    best = 1e9
    for _ in range(5):
        dist.barrier()
        since = time.perf_counter()
        dist.all_reduce(flat)
        best = min(best, (time.perf_counter() - since) * 1e3)
    if rank == 0:
        print("REDUCED", best, flush=True)
"""


def run(folder: str, machines: list[str], which: str, steps: int, port: int) -> tuple[list[float], float]:
    path = pathlib.Path(folder, "worker.py")
    path.write_text(WORKER)
    workers = []
    for rank in range(2):
        env = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": 2, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
        env |= {"OMP_NUM_THREADS": 1, "SAMPAN_NUM_THREADS": 1}
        command = [sys.executable, path, which, str(steps)]
        if machines:
            env |= {"LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "MASTER_ADDR": wire_speed.HOSTS[0]}
            # One kernel runs both, so processes could share memory, and would.
            env |= {"SAMPAN_BACKEND": "tcp", "GLOO_SOCKET_IFNAME": ("va", "vb")[rank]}
            command = ["ip", "netns", "exec", machines[rank], *command]
        env = os.environ | {name: str(value) for name, value in env.items()}
        workers.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
    text = [worker.communicate()[0] for worker in workers][0]
    told = [line.split() for line in text.splitlines()]
    took = [float(words[1]) for words in told if words[0] == "TOOK"]
    return took, min((float(words[1]) for words in told if words[0] == "REDUCED"), default=0.0)


def measure(rounds: int, machines: list[str]) -> None:
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    reduced: dict[str, float] = {kind: float("inf") for kind in KINDS}
    with tempfile.TemporaryDirectory() as folder:
        for turn in range(rounds):
            for i, kind in enumerate(KINDS):
                took, bare = run(folder, machines, kind, 5, 29600 + 10 * turn + i)
                found[kind] += took
                reduced[kind] = min(bare, reduced[kind])
    for kind, took in found.items():
        print(f"{kind:>16}: best {min(took):8.1f} median {statistics.median(took):8.1f}")
    for library in ("torch", "sampan"):
        longer = min(found[f"{library} parallel"]) - min(found[f"{library} alone"])
        bare = reduced[f"{library} parallel"]
        print(f"{library}: reducing alone {bare:.1f} ms, a step longer by {longer:.1f} ms, hidden {1 - longer / bare:.0%}")
    best, middle = min, statistics.median
    ratios = (of(found["torch parallel"]) / of(found["sampan parallel"]) for of in (best, middle))
    print("torch / sampan: {:.2f} by the best, {:.2f} by the median".format(*ratios))


def main() -> None:
    wire = "--wire" in sys.argv
    numbers = [int(word) for word in sys.argv[1:] if word != "--wire"]
    machines = [f"sampan{os.getpid()}{side}" for side in "ab"] if wire else []
    try:
        if machines:
            wire_speed.lay(machines)
        measure(numbers[0] if numbers else 2, machines)
    finally:
        for name in machines:
            subprocess.run(["ip", "netns", "del", name])


if __name__ == "__main__":
    main()
