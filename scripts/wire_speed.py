"""How long an all-reduce takes between two machines, beside the wire and PyTorch's Gloo: `python scripts/wire_speed.py [rounds]`.

Two network namespaces joined by 1 Gbit/s stand for the machines; that needs root, `ip` and `tc`. Of two processes that reduce
each sends as many bytes as there are and receives as many, so the wire needs the time of that many bytes in packets of 1,514, of
which 1,448 are data. Plain Python sockets that do nothing but send and receive as many, both ways at the same time, are measured too.
`of cores` is the time that all cores of the machine worked meanwhile, both processes and the kernel together.
"""

import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

HOSTS = ("10.77.21.1", "10.77.21.2")
SIZES = ((4 << 20, 10), (64 << 20, 3))
KINDS = ("plain sockets", "PyTorch's Gloo", "tcp", "gloo")

WORKER = """
import os, socket, sys, threading, time
which, sizes, rank = sys.argv[1], eval(sys.argv[2]), int(os.environ["RANK"])

def sockets():
    address = os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"])
    if rank == 0:
        link = socket.create_server(address).accept()[0]
    else:
        while True:
            try:
                link = socket.create_connection(address)
                break
            except OSError:
                time.sleep(0.05)
    link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    def receive(n):
        place = memoryview(bytearray(n))
        while len(place):
            place = place[link.recv_into(place):]
    def barrier():
        link.sendall(b".")
        receive(1)
    def both_ways(data):
        sending = threading.Thread(target=link.sendall, args=(data,))
        sending.start()
        receive(len(data))
        sending.join()
        # The last byte has gone when the other side says so.
        barrier()
    return barrier, both_ways, bytes

if which == "plain sockets":
    barrier, act, make = sockets()
elif which == "PyTorch's Gloo":
    import torch, torch.distributed as dist
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    barrier, act, make = dist.barrier, dist.all_reduce, lambda n: torch.zeros(n // 4)
else:
    import sampan, sampan.distributed as dist
    assert dist.init_parallel_env().backend == which, "another engine was chosen"
    barrier, act, make = dist.barrier, dist.all_reduce, lambda n: sampan.zeros([n // 4])
def busy():
    # The time that all cores of the machine have worked, in milliseconds.
    with open("/proc/stat") as counts:
        spent = [int(word) for word in counts.readline().split()[1:9]]
    return (sum(spent) - spent[3] - spent[4]) * 1e3 / os.sysconf("SC_CLK_TCK")

for size, times in sizes:
    x = make(size)
    barrier()
    before = busy()
    for _ in range(times):
        barrier()
        since = time.perf_counter()
        act(x)
        if rank == 0:
            print("TOOK", size, (time.perf_counter() - since) * 1e3, flush=True)
    barrier()
    if rank == 0:
        print("CORES", size, (busy() - before) / times, flush=True)
"""


def ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True)


def lay(names: list[str]) -> None:
    for name in names:
        ip("netns", "add", name)
    ip("link", "add", "va", "netns", names[0], "type", "veth", "peer", "name", "vb", "netns", names[1])
    for name, link, host in zip(names, ("va", "vb"), HOSTS):
        ip("-n", name, "addr", "add", f"{host}/24", "dev", link)
        for device in (link, "lo"):
            ip("-n", name, "link", "set", device, "up")
        limit = ["tc", "qdisc", "add", "dev", link, "root", "tbf", "rate", "1gbit", "burst", "256kb", "latency", "50ms"]
        subprocess.run(["ip", "netns", "exec", name, *limit], check=True)


def run(folder: str, names: list[str], which: str, port: int) -> dict[int, tuple[float, float]]:
    path = pathlib.Path(folder, "worker.py")
    path.write_text(WORKER)
    workers = []
    for rank, (name, link) in enumerate(zip(names, ("va", "vb"))):
        env = {"RANK": rank, "LOCAL_RANK": 0, "LOCAL_WORLD_SIZE": 1, "WORLD_SIZE": 2, "MASTER_ADDR": HOSTS[0]}
        env |= {"MASTER_PORT": port, "SAMPAN_BACKEND": which, "GLOO_SOCKET_IFNAME": link}
        command = ["ip", "netns", "exec", name, sys.executable, path, which, repr(SIZES)]
        env = os.environ | {name: str(value) for name, value in env.items()}
        workers.append(subprocess.Popen(command, env=env, stdout=subprocess.PIPE, text=True))
    text = [worker.communicate()[0] for worker in workers][0]
    told = [line.split() for line in text.splitlines()]

    def best(what: str, size: int) -> float:
        return min((float(words[2]) for words in told if words[:2] == [what, str(size)]), default=float("inf"))

    return {size: (best("TOOK", size), best("CORES", size)) for size, _ in SIZES}


def main() -> int:
    if os.geteuid() != 0 or not shutil.which("ip") or not shutil.which("tc"):
        print("network namespaces need root and the commands ip and tc", file=sys.stderr)
        return 1
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 2
    names = [f"sampan{os.getpid()}{side}" for side in "ab"]
    never = (float("inf"), float("inf"))
    best: dict[str, dict[int, tuple[float, float]]] = {kind: {} for kind in KINDS}
    try:
        lay(names)
        with tempfile.TemporaryDirectory() as folder:
            for turn in range(rounds):
                for i, kind in enumerate(KINDS):
                    for size, found in run(folder, names, kind, 29500 + 10 * turn + i).items():
                        before = best[kind].get(size, never)
                        best[kind][size] = (min(found[0], before[0]), min(found[1], before[1]))
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "del", name])
    print("| MB | the wire, ms | " + " | ".join(f"{kind}, ms" for kind in KINDS) + " |\n|---|---|" + "---|" * len(KINDS))
    for size, _ in SIZES:
        wire = size * 8 / 1e6 * 1514 / 1448
        cells = []
        for kind in KINDS:
            took, cores = best[kind].get(size, never)
            cells.append(f"{took:.1f} ({wire / took:.3f}), {cores:.0f} of cores" if took < never[0] else "not here")
        print(f"| {size >> 20} | {wire:.1f} | " + " | ".join(cells) + " |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
