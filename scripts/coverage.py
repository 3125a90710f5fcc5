#!/usr/bin/env python3
"""Writes docs/coverage.md: which public functions of PaddlePaddle the registries have.

Names are counted in paddle.tensor's list of Tensor methods, paddle.nn.functional and paddle.linalg.
"""
import subprocess

from paddle_names import ROOT, recorded

# Present in the core, but as methods or functions outside the registry: they compute nothing.
ELSEWHERE = {
    "is_floating_point", "is_integer", "is_tensor", "is_complex", "is_empty", "numel", "shape", "rank", "set_",
    "set_printoptions", "reshape_", "squeeze_", "unsqueeze_", "flatten_", "transpose_", "t_", "resize_",
    "where_", "triplet_margin_with_distance_loss",
}


def main():
    paddle = recorded()
    out = subprocess.run(
        ["cargo", "run", "-q", "-p", "sampan-core", "--example", "list_ops"], cwd=ROOT, check=True, capture_output=True, text=True
    ).stdout.split()
    ours = {name.rsplit(".", 1)[-1] for name in out}
    sources = (ROOT / "crates/sampan-core/src").rglob("*.rs")
    text = "\n".join(p.read_text() for p in sources)
    elsewhere = {n for n in ELSEWHERE if f"pub fn {n}(" in text or f"pub fn {n}<" in text}
    lists = {
        "paddle.Tensor methods": paddle["tensor_methods"],
        "paddle.nn.functional": list(paddle["namespaces"]["paddle.nn.functional"]),
        "paddle.linalg": list(paddle["namespaces"]["paddle.linalg"]),
    }
    lines = [
        "# Coverage of PaddlePaddle's functions",
        "",
        f"Made by `scripts/coverage.py` against PaddlePaddle {paddle['version']}. The registries hold "
        f"{len(set(out))} public names.",
        "",
        "| list | names | present | share |",
        "|---|---:|---:|---:|",
    ]
    missing = {}
    for title, names in lists.items():
        have = [n for n in names if n in ours or n in elsewhere]
        missing[title] = [n for n in names if n not in have]
        lines.append(f"| {title} | {len(names)} | {len(have)} | {100 * len(have) / len(names):.0f} % |")
    for title, names in missing.items():
        lines += ["", f"## Absent from {title}", "", ", ".join(f"`{n}`" for n in names) or "none"]
    (ROOT / "docs/coverage.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines[4:9]))
    for title, names in missing.items():
        print(title, "lacks", len(names), ":", " ".join(names))


if __name__ == "__main__":
    main()
