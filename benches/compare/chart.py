"""The picture: bars of how many times as fast as the best peer, by group, with a diamond for Rust."""

import matplotlib

matplotlib.use("agg")
matplotlib.rcParams["svg.hashsalt"] = "sampan"
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402
from process import RUST  # noqa: E402
from work import GROUPS  # noqa: E402

FASTER, SLOWER, RUST_COLOR, TEXT, PALE = "#2a9d8f", "#e76f51", "#1d3557", "#333333", "#777777"
LINE_INCHES = 0.3


def layout(rows):
    """`(y, row)` from the top down, with a line for each group's title: `(y, title)`."""
    bars, titles, y = [], [], 0
    for group, title in GROUPS.items():
        if found := [row for row in rows if row.group == group]:
            titles.append((y, title))
            bars += [(y + 1 + i, row) for i, row in enumerate(found)]
            y += len(found) + 1.4
    return bars, titles


def chart(rows, facts, path):
    bars, titles = layout(rows)
    ratios = [row.ratios["sampan"] for _, row in bars]
    # Starting a program without an interpreter is another matter.
    rust = [(row.ratios[RUST], y) for y, row in bars if RUST in row.ratios and row.group != "startup"]
    height = LINE_INCHES * bars[-1][0]
    figure, axes = plt.subplots(figsize=(9, height + 1.6))
    figure.patch.set_facecolor("white")
    # From 1, so that what is slower points the other way.
    colors = [FASTER if ratio >= 1 else SLOWER for ratio in ratios]
    axes.barh([y for y, _ in bars], [ratio - 1 for ratio in ratios], left=1, color=colors, height=0.7)
    if rust:
        look = dict(marker="D", s=22, color=RUST_COLOR, edgecolor="white", linewidth=0.6, zorder=3)
        axes.scatter(*zip(*rust), **look, label="from Rust")
        axes.legend(loc="lower right", bbox_to_anchor=(1, 1), borderpad=0, frameon=False, fontsize=9)
    shown = [*ratios, *(ratio for ratio, _ in rust)]
    axes.set_xscale("log")
    axes.set_xlim(min(0.9, min(shown) * 0.85), max(2, *shown) * 1.2)
    axes.set_ylim(bars[-1][0] + 0.7, -0.6)

    def write(x, y, text, **look):
        usual = {"transform": axes.get_yaxis_transform(), "va": "center", "fontsize": 9, "color": TEXT}
        axes.text(x, y, text, **usual | look)

    for y, row in bars:
        write(1.02, y, f"{row.ratios['sampan']:.2f}×", weight="bold")
        write(1.11, y, row.peer_name, color=PALE)
    for y, title in titles:
        write(-0.02, y, title, ha="right", fontsize=9.5, weight="bold")
    write(1.11, 0, "the peer", fontsize=8, color=PALE, style="italic")
    axes.set_yticks([y for y, _ in bars], [row.name for _, row in bars], fontsize=9.5)
    axes.axvline(1, color=TEXT, linewidth=1)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("times as fast as the faster of PyTorch and PaddlePaddle")
    title = f"sampan from Python on {facts['threads']} threads of {facts['cpu']}, float32"
    axes.set_title(title, fontsize=11, loc="left")
    axes.tick_params(left=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", color="#e2e2e2", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.savefig(path, dpi=110, bbox_inches="tight", metadata={"Date": None} if path.suffix == ".svg" else None)
    plt.close(figure)
