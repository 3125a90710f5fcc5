"""Compiles every kernel of `crates/sampan-cuda` for every dtype with NVRTC: `pip install nvidia-cuda-nvrtc`, then
`python scripts/device_kernels.py`. Needs no GPU."""

import os
import re
import sys
import time

from device_text import compile_text, library

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crates")
FLOATS = ["f16", "bf16", "float", "double"]
ALL = [*FLOATS, "u8", "signed char", "short", "int", "i64"]
COMPLEX = ["c64", "c128"]


def wide(t):
    return {"float": "float", "double": "double", "f16": "float", "bf16": "float"}.get(t, "i64")


def instances():
    """Every instance that the crate asks for, by file."""
    sums = [("to_sum", "as_it_is", "unchanged"), ("to_sum", "as_it_is", "divided"), ("to_prod", "as_it_is", "unchanged")]
    norms = [("to_sum", "magnitude", "unchanged"), ("to_sum", "square", "rooted"), ("to_sum", "power", "rooted"), ("to_sum", "square", "unchanged"), ("to_sum", "square", "divided"), ("to_sum", "square", "divided_rooted")]
    reduce = []
    for t in ALL:
        acc = "double" if t in FLOATS else "i64"
        reduce += [f"reduce<{t}, {acc}, {t}, {', '.join(s)}>" for s in sums if t in FLOATS or s[2] == "unchanged"]
        reduce += [f"reduce<{t}, {wide(t)}, {t}, to_{m}, as_it_is, unchanged>" for m in ("max", "min")]
        reduce += [f"reduce<{t}, i64, u8, to_{m}, not_zero, unchanged>" for m in ("any", "all")]
        reduce += [f"reduce<{t}, i64, i64, to_sum, not_zero, unchanged>"]
        reduce += [f"arg_extreme<{t}, {s}>" for s in ("1", "-1")]
        if t in FLOATS:
            reduce += [f"reduce<{t}, double, {t}, {', '.join(n)}>" for n in norms]
    reduce += [f"reduce<float, double, {t}, {', '.join(n)}>" for t in FLOATS[:2] for n in norms[-2:]]
    index = [f"{k}<{t}>" for k in ("pick_rows", "pick_along") for t in ALL + COMPLEX]
    index += [f"{k}<{t}>" for k in ("add_rows", "one_hot") for t in ALL]
    index += [f"count_up<{t}, {'double' if t in FLOATS else 'i64'}>" for t in ALL]
    index += ["places_along", "checked", "count_rows", "run_starts", "place_positions", "sort_positions"]
    pool = [f"{k}<{t}>" for k in ("max_pool", "max_unpool_windows", "avg_pool", "avg_unpool", "max_places", "max_back", "max_back4") for t in FLOATS]
    pool += [f"max_small<{t}, {k}>" for t in FLOATS for k in (2, 3)]
    random = [f"uniform<{t}, {'double' if t == 'double' else 'float'}>" for t in FLOATS]
    random += [f"normal32<{t}>" for t in FLOATS[:3]] + ["normal64", "exponential64"]
    random += [f"exponential32<{t}>" for t in FLOATS[:3]] + [f"bernoulli_by<{t}>" for t in FLOATS]
    random += [f"{k}<{t}>" for k in ("bernoulli", "integers") for t in ALL]
    many = [f"{k}<{t}>" for k in ("squares", "unscale") for t in FLOATS] + ["factors"]
    direct = [f"{k}<{t}, {b}>" for k in ("direct_forward", "direct_to_data") for t in FLOATS for b in (1, 2, 4, 8)]
    direct += [f"direct_to_weight<{t}, {k}, {b}>" for t in FLOATS for k in (1, 3, 5, 7) for b in (1, 2, 4) if b * k * k <= 100]
    direct += [f"direct_joined<{t}>" for t in FLOATS]
    direct += [f"image_forward<{t}, {k}, {b}>" for t in FLOATS for k in (1, 3, 5) for b in (2, 4)]
    direct += [f"image_to_weight<{t}, {k}, {b}>" for t in FLOATS for k in (1, 3, 5) for b in (1, 2, 4)]
    direct += [f"depth_forward<{t}, {k}, {s}>" for t in FLOATS for k in (3, 5) for s in (1, 2)]
    direct += [f"depth_back2<{t}, {k}, {p}>" for t in FLOATS for k in (3, 5) for p in (0, 1)]
    turn = [f"turn<{t}>" for t in ("u8", "short", "int", "i64", "c128")]
    small = [f"small_product<{a}, {b}, {v}>" for a in (0, 1) for b in (0, 1) for v in (0, 1)]
    found = {"turn.cu": turn, "small.cu": small, "direct.cu": direct, "many.cu": many, "reduce.cu": reduce, "index.cu": index, "pool.cu": pool, "random.cu": random}
    for name in ("rows.cu", "recurrent.cu"):
        if os.path.exists(os.path.join(ROOT, "sampan-cuda", "src", "kernels", name)):
            text = open(os.path.join(ROOT, "sampan-cuda", "src", "kernels", name)).read()
            kernels = re.findall(r"template <typename T>\n__global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(", text)
            wide_ones = re.findall(r"template <typename T, int V>\n__global__ void (?:__launch_bounds__\(\d+\) )?(\w+)\(", text)
            packs = {"f16": 8, "bf16": 8, "float": 4, "double": 2}
            packed = [f"{k}<{t}, {v}>" for k in wide_ones for t in FLOATS for v in (1, packs[t])]
            found[name] = packed + [f"{k}<{t}>" for k in kernels for t in (FLOATS[2:] if "_walk" in k else FLOATS)]
    return found


def main():
    rtc, began, bad, count = library(), time.time(), 0, 0
    read = lambda *path: open(os.path.join(ROOT, *path)).read()  # noqa: E731
    head = read("sampan-formula", "src", "prelude.cu") + "\n" + read("sampan-cuda", "src", "kernels", "types.cu")
    for file, names in instances().items():
        text = head + "\n" + read("sampan-cuda", "src", "kernels", file)
        log = compile_text(rtc, text, names)
        count += len(names)
        if log:
            bad += 1
            print(file, log[:6000], sep="\n")
    print(f"{count} kernels of {len(instances())} files, {bad} files refused, {time.time() - began:.1f} s")
    sys.exit(bad > 0)


if __name__ == "__main__":
    main()
