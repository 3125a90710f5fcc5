"""How long a training step takes from 1 to 1,024 GPUs: a simulation, and a check of it against two processes of this machine.

    python -m sampan.distributed.launch --nproc_per_node 2 scripts/scale.py measure measured.json
    python scripts/scale.py draw docs/scale.svg

A step computes forwards, then backwards, layer by layer; gradients fill buckets; a bucket that is full is reduced over all
processes, one bucket after the other, while the walk backwards goes on; the step ends when both have ended.
"""

import json
import math
import sys
import time
from dataclasses import dataclass


@dataclass
class Link:
    """A way between two processes: seconds before the first byte, and bytes a second."""

    latency: float
    bandwidth: float


@dataclass
class Cluster:
    """Nodes of several GPUs."""

    inside: Link
    between: Link
    gpus: int = 8

    def all_reduce(self, count: int, size: float, way: str) -> float:
        """Seconds to reduce `size` bytes over `count` processes. In a ring every process passes its share on 2 (n - 1) times.
        A tree goes up and down, in pieces that follow each other closely; a pair of trees uses both directions. Inside a node it is
        a ring, and the nodes reduce what each of their GPUs holds."""
        if count == 1:
            return 0.0
        local = min(count, self.gpus)
        nodes = math.ceil(count / self.gpus)
        steps = 2 * (local - 1)
        total = steps * (self.inside.latency + size / local / self.inside.bandwidth)
        if nodes == 1:
            return total
        # The GPUs of a node share its network.
        if way == "ring":
            steps = 2 * (nodes - 1)
            return total + steps * (self.between.latency + size / nodes / self.between.bandwidth)
        depth = math.ceil(math.log2(nodes))
        return total + 2 * depth * self.between.latency + 2 * size / self.between.bandwidth


def step(layers: list, bucket: float, reduce, overlap=True) -> float:
    """Seconds of one step: `layers` are (seconds forwards, seconds backwards, bytes of gradients) from first to last."""
    now = sum(forward for forward, _, _ in layers)
    ready, filled = [], 0.0
    for _, backward, size in reversed(layers):
        now += backward
        filled += size
        if filled >= bucket:
            ready.append((now, filled))
            filled = 0.0
    if filled:
        ready.append((now, filled))
    if not overlap:
        return now + sum(reduce(size) for _, size in ready)
    free = 0.0
    for at, size in ready:
        free = max(free, at) + reduce(size)
    return max(now, free)


def network(parameters: float, seconds: float, width: int, count=50, forward=1 / 3) -> list:
    """Layers alike, a third of whose time is the way forwards, if nothing else is said."""
    return [(seconds * forward / count, seconds * (1 - forward) / count, parameters * width / count)] * count


# ---- two processes of this machine


def measure(out: str) -> None:
    """Six layers of 4 MB each, whose computing is stood in for by waiting: on a machine with few cores two processes would
    else take each other's time, which GPUs do not. What is reduced is real."""
    import sampan
    import sampan.distributed as dist
    from sampan.autograd import PyLayer

    group = dist.init_parallel_env()
    rank, size = dist.get_rank(), dist.get_world_size()
    forwards, backwards, count = 0.01, 0.03, 6

    class Computing(PyLayer):
        @staticmethod
        def forward(ctx, x):
            time.sleep(forwards)
            return x.clone()

        @staticmethod
        def backward(ctx, grad):
            time.sleep(backwards)
            return grad.clone()

    class Net(sampan.nn.Layer):
        def __init__(self):
            super().__init__()
            self.layers = sampan.nn.LayerList([sampan.nn.Linear(1024, 1024, bias_attr=False) for _ in range(count)])

        def forward(self, x):
            for layer in self.layers:
                x = Computing.apply(layer(x))
            return x

    def best(act, times=10) -> float:
        found = []
        for _ in range(times):
            dist.barrier()
            start = time.perf_counter()
            act()
            found.append(time.perf_counter() - start)
        return min(found)

    tiny, large = sampan.ones([256]), sampan.ones([4 << 20])
    dist.all_reduce(large)
    latency, whole = best(lambda: dist.all_reduce(tiny)), best(lambda: dist.all_reduce(large))
    link = Link(latency, large.size * 4 / max(whole - latency, 1e-9))
    net, x = Net(), sampan.ones([1, 1024])

    def once(model):
        model(x).mean().backward()
        model.clear_gradients()

    once(net)
    alone = best(lambda: once(net))
    # Whatever a layer does besides waiting is shared out as the waiting is.
    layers = network(count * 2.0**20, alone, 4, count, forwards / (forwards + backwards))
    rows = []
    for megabytes in (4, 8, 24):
        model = sampan.DataParallel(net, comm_buffer_size=megabytes, last_comm_buffer_size=megabytes)
        once(model)
        measured = best(lambda model=model: once(model))
        model.__dict__["_reducer"] = None

        def reduce(size):
            return link.latency + size / link.bandwidth

        hidden, bare = (step(layers, megabytes * 2**20, reduce, overlap) for overlap in (True, False))
        rows.append({"bucket": megabytes, "measured": measured, "simulated": hidden, "not hidden": bare})
    if rank == 0:
        with open(out, "w") as file:
            json.dump(
                {"processes": size, "engine": group.backend, "alone": alone, "link": vars(link), "rows": rows},
                file,
                indent=1,
            )
        print(
            f"{group.backend}: alone {alone * 1e3:.1f} ms, {link.latency * 1e6:.0f} us and {link.bandwidth / 1e9:.2f} GB/s"
        )
        for row in rows:
            print(
                f"buckets of {row['bucket']} MB: measured {row['measured'] * 1e3:.1f} ms, simulated {row['simulated'] * 1e3:.1f} ms, "
                f"not hidden {row['not hidden'] * 1e3:.1f} ms"
            )


# ---- 1 to 1,024 GPUs

COUNTS = [2**i for i in range(11)]
# NVLink inside, 400 Gbit/s for a node; a slower cluster has 100 Gbit/s.
FAST = Cluster(Link(3e-6, 300e9), Link(8e-6, 45e9))
SLOW = Cluster(Link(3e-6, 300e9), Link(20e-6, 11e9))
NETWORKS = {
    "ResNet50, float32, 60 ms": network(25.6e6, 0.060, 4, 96),
    "1.3 billion, bfloat16, 350 ms": network(1.3e9, 0.350, 2, 96),
}
LINES = [
    ("400 Gbit/s, tree, 25 MB", FAST, "tree", 25, True, "#0b6e4f", ""),
    ("400 Gbit/s, ring, 25 MB", FAST, "ring", 25, True, "#0b6e4f", "6 4"),
    ("400 Gbit/s, ring, 1 MB", FAST, "ring", 1, True, "#c05621", "6 4"),
    ("400 Gbit/s, tree, not hidden", FAST, "tree", 25, False, "#555555", "2 3"),
    ("100 Gbit/s, tree, 25 MB", SLOW, "tree", 25, True, "#2b6cb0", ""),
]


def efficiency(layers: list, line: tuple, count: int) -> float:
    """The share of its time that a GPU computes."""
    _, cluster, way, bucket, overlap, _, _ = line
    alone = sum(forward + backward for forward, backward, _ in layers)
    return alone / step(layers, bucket * 2**20, lambda size: cluster.all_reduce(count, size, way), overlap)


def table() -> str:
    rows = []
    for name, layers in NETWORKS.items():
        rows.append(f"| {name} | " + " | ".join(str(n) for n in (8, 64, 256, 1024)) + " |")
        rows.append("|---|" + "---|" * 4)
        for line in LINES:
            shares = (f"{efficiency(layers, line, n) * 100:.0f} %" for n in (8, 64, 256, 1024))
            rows.append(f"| {line[0]} | " + " | ".join(shares) + " |")
        rows.append("")
    return "\n".join(rows)


def draw(out: str) -> None:
    width, height, left, top = 420, 260, 50, 40
    text = [
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 960 420" font-family="sans-serif" font-size="12">',
        '<rect width="960" height="420" fill="white"/>',
    ]
    for at, (name, layers) in enumerate(NETWORKS.items()):
        x0 = left + at * (width + 40)
        text.append(f'<text x="{x0}" y="24" font-size="14">{name}</text>')
        for share in range(0, 101, 20):
            y = top + height * (1 - share / 100)
            text.append(f'<line x1="{x0}" x2="{x0 + width}" y1="{y}" y2="{y}" stroke="#dddddd"/>')
            text.append(f'<text x="{x0 - 8}" y="{y + 4}" text-anchor="end">{share}{" %" if at == 0 else ""}</text>')
        for i, count in enumerate(COUNTS):
            text.append(f'<text x="{x0 + i * width / 10}" y="{top + height + 18}" text-anchor="middle">{count}</text>')
        for line in LINES:
            points = (
                f"{x0 + i * width / 10:.1f},{top + height * (1 - efficiency(layers, line, count)):.1f}"
                for i, count in enumerate(COUNTS)
            )
            dash = f' stroke-dasharray="{line[6]}"' if line[6] else ""
            text.append(
                f'<polyline points="{" ".join(points)}" fill="none" stroke="{line[5]}" stroke-width="2"{dash}/>'
            )
    for i, line in enumerate(LINES):
        x, y = left + (i % 3) * 300, top + height + 50 + (i // 3) * 22
        dash = f' stroke-dasharray="{line[6]}"' if line[6] else ""
        text.append(f'<line x1="{x}" x2="{x + 30}" y1="{y}" y2="{y}" stroke="{line[5]}" stroke-width="2"{dash}/>')
        text.append(f'<text x="{x + 38}" y="{y + 4}">{line[0]}</text>')
    text.append(
        f'<text x="{left}" y="{top + height + 100}">GPUs, and the share of their time that they compute</text></svg>'
    )
    with open(out, "w") as file:
        file.write("\n".join(text) + "\n")


if __name__ == "__main__":
    command, *rest = sys.argv[1:]
    if command == "measure":
        measure(rest[0])
    else:
        draw(rest[0])
        print(table())
