"""One contender: builds workloads and times them when asked, a line in and a line out.

    python contender.py sampan|torch|paddle THREADS

`build NAME` makes a workload and warms it up, `time NAME SECONDS` runs it and answers with seconds per step, `memory`
answers with the peak resident size in MiB.
"""

import importlib
import json
import os
import resource
import sys
import time

name, threads = sys.argv[1], int(sys.argv[2])
began = time.perf_counter()
module = importlib.import_module(name)
if name == "torch":
    module.set_num_threads(threads)
elif name == "sampan":
    module._core.set_num_threads(threads)
imported = time.perf_counter() - began

import loader  # noqa: E402, F401
from workloads import WORKLOADS  # noqa: E402

api = "torch" if name == "torch" else "paddle"
steps = {}


def build(workload):
    builder = WORKLOADS[workload].get(api)
    if builder is None:
        return {"absent": True}
    steps[workload] = step = builder(module)
    began = time.perf_counter()
    step()
    first = time.perf_counter() - began
    for _ in range(2 if first > 0.3 else 10):
        step()
    return {"first": first, "import": imported}


def measure(workload, seconds):
    step = steps[workload]
    n, began = 0, time.perf_counter()
    while True:
        step()
        n += 1
        spent = time.perf_counter() - began
        if spent >= seconds:
            return {"step": spent / n}


for line in sys.stdin:
    command, *rest = json.loads(line)
    try:
        if command == "build":
            answer = build(*rest)
        elif command == "time":
            answer = measure(*rest)
        else:
            answer = {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}
    except Exception as error:  # The table says which contender cannot do what.
        answer = {"error": f"{type(error).__name__}: {error}"[:300]}
    print(json.dumps(answer), flush=True)
os._exit(0)
