"""When the kernels of a recorded step run: `python benches/compare/gpu_timeline.py "LeNet b64"`, with PyTorch's profiler as the clock.

One step of each named workload of `gpu.py` as it is started as one launch: when each kernel or copy begins, how long it takes, and
how long the GPU waited before it, in microseconds. What the profiler itself costs is in the pauses.
"""

import os
import re
import sys

HERE = os.path.dirname(os.path.abspath(__file__))


def main():
    names = sys.argv[1:]
    sys.argv[1:] = ["sampan", "graph", *names]
    sys.path.insert(0, HERE)
    import gpu
    import torch
    from torch.profiler import ProfilerActivity, profile

    torch.zeros(1).cuda()

    def measure(name, step, times):
        if name not in names:
            return
        for _ in range(9):
            step()
        gpu.wait()
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            for _ in range(5):
                step()
                gpu.wait()
        events = [e for e in seen.profiler.kineto_results.events() if e.device_type() == torch.autograd.DeviceType.CUDA]
        events.sort(key=lambda e: e.start_ns())
        # The last step: what comes after the longest pauses.
        each = len(events) // 5
        last = events[-each:]
        begin, end = last[0].start_ns(), last[0].start_ns()
        busy = sum(e.duration_ns() for e in last) / 1000
        print(f"== {name}: {each} kernels, {(max(e.end_ns() for e in last) - begin) / 1000:.1f} us, of which {busy:.1f} busy")
        for e in last:
            short = re.sub(r"^void |<unnamed>::|\(anonymous namespace\)::|cutlass::|const ", "", e.name())[:90]
            print(f"{(e.start_ns() - begin) / 1000:9.1f} {e.duration_ns() / 1000:7.1f} {(e.start_ns() - end) / 1000:+6.1f} {short}")
            end = max(end, e.end_ns())

    gpu.measure = measure
    gpu.main()


if __name__ == "__main__":
    main()
