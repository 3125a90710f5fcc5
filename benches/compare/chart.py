"""The picture: bars of how many times as fast as the best peer."""

import matplotlib

matplotlib.use("agg")
matplotlib.rcParams["svg.hashsalt"] = "sampan"
import matplotlib.pyplot as plt  # noqa: E402
from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter  # noqa: E402
from process import RUST  # noqa: E402

FASTER, SLOWER, RUST_COLOR, TEXT = "#2a9d8f", "#e76f51", "#1d3557", "#333333"


def chart(rows, facts, path):
    rows = rows[::-1]
    ratios = [row.ratios["sampan"] for row in rows]
    rust = [(row.ratios[RUST], y) for y, row in enumerate(rows) if RUST in row.ratios]
    figure, axes = plt.subplots(figsize=(9, 0.36 * len(rows) + 1.5))
    figure.patch.set_facecolor("white")
    # From 1, so that what is slower points the other way.
    axes.barh(range(len(rows)), [r - 1 for r in ratios], left=1, color=[FASTER if r >= 1 else SLOWER for r in ratios], height=0.66)
    if rust:
        axes.scatter(*zip(*rust), marker="D", s=24, color=RUST_COLOR, zorder=3, label="the same from Rust")
        axes.legend(loc="lower right", frameon=False, fontsize=9)
    everything = [*ratios, *(r for r, _ in rust), 1]
    axes.set_xscale("log")
    low, high = min(everything), max(everything)
    axes.set_xlim(low * 0.8 if low < 1 else 0.9, high * 2.2)
    for y, row in enumerate(rows):
        right = max(1, row.ratios["sampan"], row.ratios.get(RUST, 0))
        axes.text(right * 1.06, y, f"{row.ratios['sampan']:.2f}×  {row.peer_name}", va="center", fontsize=9, color=TEXT)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.axvline(1, color=TEXT, linewidth=1)
    axes.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}×"))
    axes.xaxis.set_minor_formatter(NullFormatter())
    axes.set_xlabel("times as fast as the faster of PyTorch and PaddlePaddle, whose name is beside the bar")
    axes.set_title(f"sampan from Python, float32, {facts['threads']} threads of {facts['cpu']}", fontsize=11, loc="left")
    axes.tick_params(left=False)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.grid(axis="x", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    figure.tight_layout()
    metadata = {"Date": None} if path.suffix == ".svg" else None
    figure.savefig(path, dpi=110, metadata=metadata)
    plt.close(figure)
