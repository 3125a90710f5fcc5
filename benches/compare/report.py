"""The table and the picture of a comparison."""

import json
import pathlib
import platform
import statistics

OURS = ("sampan", "sampan (Rust)")


def median(entry):
    return statistics.median(entry["seconds"])


def best_peer(contenders):
    """The fastest peer: label and seconds."""
    peers = {k: median(v) for k, v in contenders.items() if k not in OURS}
    if not peers:
        return None, float("nan")
    label = min(peers, key=peers.get)
    return label, peers[label]


def duration(seconds):
    for unit, factor in (("s", 1), ("ms", 1e3), ("µs", 1e6)):
        if seconds * factor >= 1:
            return f"{seconds * factor:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def row(name, result):
    contenders = result["contenders"]
    label, peer = best_peer(contenders)
    cells = [name]
    for ours in OURS:
        if ours in contenders:
            own = median(contenders[ours])
            cells += [duration(own), f"**{peer / own:.2f}×**" if label else ""]
        else:
            cells += ["", ""]
    cells.append(f"{duration(peer)} ({label.removesuffix(' passive')})" if label else "")
    memory = [contenders[c].get("memory") for c in (OURS[0], label) if c in contenders]
    if len(memory) == 2 and all(memory):
        cells.append(f"{memory[0]:,.0f} / {memory[1]:,.0f} MiB = {memory[0] / memory[1]:.2f}")
    else:
        cells.append("")
    return "| " + " | ".join(cells) + " |"


def table(results):
    groups = {}
    for name, result in results.items():
        if result["contenders"]:
            groups.setdefault(result["group"], []).append(row(name, result))
    head = "| workload | Python | ratio | Rust | ratio | best peer | peak memory, ours / peer |\n|---|---:|---:|---:|---:|---|---|"
    return "\n\n".join(f"### {group}\n\n{head}\n" + "\n".join(rows) for group, rows in groups.items())


def chart(results, path):
    """Bars of the ratio to the best peer."""
    import matplotlib

    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    bars = []
    for name, result in results.items():
        if result["group"] in ("train", "infer", "loader", "startup") and "sampan" in result["contenders"]:
            label, peer = best_peer(result["contenders"])
            if label:
                bars.append((name, peer / median(result["contenders"]["sampan"]), label.removesuffix(" passive")))
    if not bars:
        return
    fig, ax = plt.subplots(figsize=(8, 0.34 * len(bars) + 1))
    names = [b[0] for b in bars][::-1]
    values = [b[1] for b in bars][::-1]
    colors = ["#2a9d8f" if v >= 1 else "#e76f51" for v in values]
    ax.barh(names, values, color=colors, height=0.7)
    ax.axvline(1, color="#444", linewidth=1)
    ax.set_xscale("log")
    ax.set_xlabel("times as fast as the faster of PyTorch and PaddlePaddle (CPU, Python)")
    for y, (v, b) in enumerate(zip(values, bars[::-1])):
        ax.text(v * 1.04, y, f"{v:.2f}× {b[2]}", va="center", fontsize=8)
    ax.set_xlim(min(0.5, min(values) * 0.9), max(values) * 2)
    ax.spines[["top", "right"]].set_visible(False)
    fig.tight_layout()
    fig.savefig(path.with_suffix(".svg"))
    fig.savefig(path.with_suffix(".png"), dpi=150)


def write(results, options):
    out = pathlib.Path(options.out)
    out.parent.mkdir(parents=True, exist_ok=True)
    heading = f"{options.threads} threads, {options.rounds} rounds of {options.seconds} s, {platform.processor() or platform.machine()}, Python {platform.python_version()}"
    out.with_suffix(".json").write_text(json.dumps({"settings": heading, "results": results}, indent=1))
    text = f"{heading}\n\n{table(results)}\n"
    out.with_name(out.name + "-table.md").write_text(text)
    print(text)
    chart(results, out)
