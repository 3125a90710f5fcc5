"""Where a step's time on a GPU goes, kernel by kernel: `python benches/compare/gpu_kernels.py sampan "ResNet50 b64"`, or `… torch …`.

One step of each named workload of `gpu.py` is run under NVIDIA's `ncu`, which measures each kernel alone with the caches as the
kernel before left them: microseconds, how often, name. Without names, all workloads.
"""

import collections
import csv
import ctypes
import io
import os
import re
import subprocess
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
NCU = "ncu --profile-from-start off --metrics gpu__time_duration.sum --csv --print-units base --clock-control none --cache-control none".split()


def inside():
    """In the process that is watched: a few steps, and then one that is."""
    sys.path.insert(0, HERE)
    import gpu

    driver = ctypes.CDLL("libcuda.so.1")

    def measure(name, step, times):
        if name not in sys.argv[2:]:
            return
        for _ in range(3):
            step()
        gpu.wait()
        driver.cuProfilerStart()
        step()
        gpu.wait()
        driver.cuProfilerStop()

    gpu.measure = measure
    gpu.main()


def short(name):
    """A kernel's name without what is the same in all."""
    name = re.sub(r"^void |at::native::|\(anonymous namespace\)::|<unnamed>::|cutlass::|const ", "", name)
    return name[:110]


def main():
    library, names = sys.argv[1], sys.argv[2:]
    for name in names:
        environment = dict(os.environ, GPU_KERNELS="inside")
        command = [*NCU, sys.executable, os.path.abspath(__file__), library, name]
        done = subprocess.run(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        lines = [line for line in done.stdout.splitlines() if line.startswith('"')]
        rows = list(csv.DictReader(io.StringIO("\n".join(lines))))
        if not rows:
            print(name, done.stdout[-1500:], done.stderr[-1500:])
            continue
        times, counts = collections.Counter(), collections.Counter()
        for row in rows:
            kernel = short(row["Kernel Name"]) + " " + row["Grid Size"].replace(" ", "")
            times[kernel] += float(row["Metric Value"].replace(",", "")) / 1000
            counts[kernel] += 1
        print(f"== {library}, {name}: {sum(times.values()):.0f} us in {len(rows)} kernels")
        for kernel, us in times.most_common(int(os.environ.get("MOST", "45"))):
            print(f"{us:9.1f} {counts[kernel]:4} {kernel}")


if __name__ == "__main__":
    inside() if os.environ.get("GPU_KERNELS") else main()
