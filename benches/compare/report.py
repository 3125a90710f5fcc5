"""The table and the picture of a comparison, from the numbers that run.py has saved.

    python benches/compare/report.py docs/performance.json
"""

import json
import pathlib
import sys

from process import RUST
from work import GROUPS, WHOLE

OURS = ("sampan", RUST)
MADE_BY = "<!-- Made by benches/compare/report.py from the numbers beside it; do not edit. -->"

# How many times as fast as the best peer a workload is to be, from Python and, where that differs, from Rust.
TARGETS = {
    "linear b16": (5, 15),
    "mlp b100": (4,),
    "seeds' cnn b100": (2,),
    "lenet b64": (3,),
    "lenet b1024": (2,),
    "resnet18 32px b32": (1.3,),
    "mobilenetv3-small 224px b8": (1.5,),
    "transformer encoder b8": (1.15,),
    "lstm 256 s64 b32": (1.1,),
    "linear b16, captured": (25,),
    "mlp b100, captured": (9,),
    "seeds' cnn b100, captured": (3,),
    "lenet b64, captured": (4.5,),
    "transformer encoder b8, captured": (1.4,),
    "lstm 256 s64 b32, captured": (1.3,),
    "lenet b1": (8,),
    "mobilenetv3-small b1": (2,),
    "resnet50 b1": (1.2,),
    "mnist epoch b64": (5,),
    "import and first step": (10,),
}
MEMORY_TARGET = 0.5
"""Peak memory beside the most economical peer's, at most, of what trains or infers."""


def duration(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def binary(size):
    return f"{size / 2**20:.0f} MiB" if size >= 2**20 else f"{size / 2**10:.0f} KiB"


def mark(met):
    return "✓" if met else "✗"


class Row:
    """What the table says about one workload."""

    def __init__(self, name, result, peak):
        self.name, self.group = name, result["group"]
        entries = result["contenders"]
        self.ours = {label: entries[label]["median"] for label in OURS if label in entries}
        peers = {label: entry for label, entry in entries.items() if label not in OURS}
        self.peer = min(peers, key=lambda label: peers[label]["median"], default=None)
        self.peer_seconds = peers[self.peer]["median"] if peers else None
        self.ratios = {label: self.peer_seconds / own for label, own in self.ours.items()} if peers else {}
        memory = [entry["memory"] for entry in peers.values() if "memory" in entry]
        own = entries.get("sampan", {}).get("memory")
        self.memory = (own, min(memory)) if own and memory else None
        self.floor, self.bound = floor(result["count"], peak)
        self.share = self.floor / min(self.ours.values()) if self.floor and self.ours else None

    @property
    def peer_name(self):
        return self.peer.removesuffix(" passive")

    def targets(self):
        """For each target: the front it is about, the ratio it asks for, and whether that is met."""
        for label, wanted in zip(OURS, TARGETS.get(self.name, ())):
            if label in self.ratios:
                yield label, wanted, self.ratios[label] >= wanted

    def memory_met(self):
        """None where there is no target."""
        if self.memory and self.group in ("train", "captured", "infer"):
            return self.memory[0] / self.memory[1] <= MEMORY_TARGET
        return None

    def cells(self):
        """Column → text."""
        cells = {"workload": self.name}
        for label, front in zip(OURS, ("Python", "Rust")):
            cells[front] = duration(self.ours[label]) if label in self.ours else ""
            cells[f"{front}: ratio"] = f"**{self.ratios[label]:.2f}×**" if label in self.ratios else ""
        wanted = list(self.targets())
        names = {"sampan": "", RUST: "Rust "}
        cells["target"] = ", ".join(f"{names[label]}≥ {ratio:g} {mark(met)}" for label, ratio, met in wanted)
        cells["best peer"] = f"{duration(self.peer_seconds)} {self.peer_name}" if self.peer else ""
        cells["floor"] = f"{duration(self.floor)} {self.bound}" if self.floor else ""
        cells["share of peak"] = f"{self.share:.0%}" if self.share else ""
        cells["peak memory, ours / peer"] = ""
        if self.memory and self.group in WHOLE:
            own, peer = self.memory
            met = "" if self.memory_met() is None else " " + mark(self.memory_met())
            cells["peak memory, ours / peer"] = f"{own:,.0f} / {peer:,.0f} MiB = {own / peer:.2f}{met}"
        return cells


def floor(count, peak):
    """The least seconds that the work can take on this machine, and which peak sets them."""
    if not count or not peak:
        return None, ""
    # At the speed of the cache it fits in. What is both read and written counts twice but takes room once.
    room = count["bytes"] / 2
    speeds = [speed for size, speed in peak["bandwidth"] if size <= room] or [peak["bandwidth"][0][1]]
    arithmetic, memory = count["flops"] / peak["flops"], count["bytes"] / speeds[-1]
    return (arithmetic, "arithmetic") if arithmetic >= memory else (memory, "memory")


def markdown(rows):
    """A table without the columns that would be empty."""
    cells = [row.cells() for row in rows]
    columns = [name for name in cells[0] if any(row[name] for row in cells)]
    lines = [columns, ["---" if c in ("workload", "best peer", "target") else "---:" for c in columns]]
    lines += [[row[name] for name in columns] for row in cells]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def about(facts):
    versions = ", ".join(f"{name} {version}" for name, version in facts["versions"].items())
    text = (
        f"{facts['cpu']}, {facts['threads']} threads; medians of {facts['rounds']} rounds of {facts['seconds']:g} s; "
        f"{versions}; commit {facts['commit']}, {facts['date']}."
    )
    if peak := facts["peak"]:
        caches = ", ".join(f"{speed / 1e9:.0f} at {binary(size)}" for size, speed in peak["bandwidth"])
        text += (
            f"\n\nPeak, measured in the same run: {peak['flops'] / 1e9:.0f} GFLOP/s in float32 "
            f"({peak['flops_one'] / 1e9:.0f} on one thread); GB/s by the size of what is touched: {caches}."
        )
    return text


def summary(rows):
    compared = [row.ratios["sampan"] for row in rows if "sampan" in row.ratios]
    targets = [met for row in rows for *_, met in row.targets()]
    memory = [met for row in rows if (met := row.memory_met()) is not None]
    return (
        f"Faster than the best peer from Python: {sum(r >= 1 for r in compared)} of {len(compared)} workloads. "
        f"Targets met: {sum(targets)} of {len(targets)} for speed, {sum(memory)} of {len(memory)} for memory."
    )


def gaps(rows):
    """Where there is most to gain: networks and ops that are farthest from their floor, and what a peer does faster."""

    def farthest(rows):
        # Below that the cost of calls rules, and bytes say little about sorting.
        telling = (row for row in rows if row.share and row.floor >= 1e-5 and row.group != "sort")
        for row in sorted(telling, key=lambda row: row.share)[:5]:
            own, floor = duration(min(row.ours.values())), duration(row.floor)
            yield f"* {row.name}: {own}, floor {floor} by {row.bound}, {row.share:.0%}"

    slower = sorted((row for row in rows if row.ratios.get("sampan", 1) < 1), key=lambda row: row.ratios["sampan"])
    lists = {
        "Networks farthest from their floor:": farthest(row for row in rows if row.group in WHOLE),
        "Single ops farthest from theirs:": farthest(row for row in rows if row.group not in WHOLE),
        "Slower from Python than the best peer:": (
            f"* {row.name}: {row.ratios['sampan']:.2f}× {row.peer_name}" for row in slower
        ),
    }
    texts = [f"{title}\n\n{lines}" for title, found in lists.items() if (lines := "\n".join(found))]
    return "\n\n".join(["## The largest gaps", *texts]) if texts else ""


def failures(results):
    lines = [f"* {name}, {label}: {why}" for name, result in results.items() for label, why in result["failed"].items()]
    return "## Not measured\n\n" + "\n".join(lines) if lines else ""


def write(out):
    """Writes the table and the picture beside the numbers in `out`.json; gives the table."""
    saved = json.loads(out.with_suffix(".json").read_text())
    facts, results = saved["facts"], saved["results"]
    rows = [Row(name, result, facts["peak"]) for name, result in results.items() if result["contenders"]]
    parts = [MADE_BY, "# Speed, measured", about(facts)]
    if rows:
        parts.append(summary(rows))
    for group, title in GROUPS.items():
        if found := [row for row in rows if row.group == group]:
            parts += [f"## {title}", markdown(found)]
    parts += [gaps(rows), failures(results)]
    text = "\n\n".join(part for part in parts if part) + "\n"
    out.with_name(out.name + "-table.md").write_text(text)
    if shown := [row for row in rows if row.group in WHOLE and "sampan" in row.ratios]:
        from chart import chart

        chart(shown, facts, out.with_suffix(".svg"))
    return text


if __name__ == "__main__":
    print(write(pathlib.Path(sys.argv[1]).with_suffix("")))
