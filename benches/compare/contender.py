"""One contender in Python: builds a workload and times it when asked, a line in and a line out.

    python contender.py sampan|torch|paddle

`["build", name]` makes the workload and warms it up, `["time", seconds]` answers with the seconds of a step,
`["memory"]` with the peak resident size in MiB, `["count"]` with the operations and bytes of a step (PyTorch alone can
tell).
"""

import importlib
import json
import math
import os
import resource
import statistics
import sys
import time

BATCH_SECONDS = 0.001
"""Between two looks at the clock; long enough that looking costs nothing beside it."""

WARM_UP_SECONDS = 0.3

LONG_SECONDS = 2
"""A step of this length warms itself up, and one of them is enough for a round."""


def seconds(step, times):
    began = time.perf_counter()
    for _ in range(times):
        step()
    return time.perf_counter() - began


class Contender:
    def __init__(self, name):
        self.module = importlib.import_module(name)

    def build(self, name):
        import workloads  # noqa: F401
        from apis import api_of
        from work import WORKLOADS

        self.work = WORKLOADS[name].build(api_of(self.module))
        self.step = self.work.step
        first = seconds(self.step, 1)
        spent, steps = (first, 1) if first >= LONG_SECONDS else (0, 0)
        while spent < WARM_UP_SECONDS or steps < 2 and spent < LONG_SECONDS:
            spent += seconds(self.step, 1)
            steps += 1
        self.batch = math.ceil(BATCH_SECONDS * steps / spent)
        return {"first": first, "version": self.module.__version__}

    def time(self, enough):
        """The median over batches, at least two of them unless they are long."""
        spent, batches = 0, []
        while spent < enough or len(batches) < 2 and spent < LONG_SECONDS:
            batch = seconds(self.step, self.batch)
            spent += batch
            batches.append(batch / self.batch)
        return {"step": statistics.median(batches)}

    def memory(self):
        return {"memory": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024}

    def count(self):
        from count import count

        # A workload that names nothing, such as an epoch of the loader, has no floor.
        return count(self.module, self.work) if self.work.inputs else {"absent": True}


if __name__ == "__main__":
    # What a library prints does not get between the answers.
    answers, sys.stdout = sys.stdout, sys.stderr
    contender = Contender(sys.argv[1])
    for line in sys.stdin:
        command, *rest = json.loads(line)
        try:
            answer = getattr(contender, command)(*rest)
        except Exception as error:  # The table says which contender cannot do what.
            answer = {"error": f"{type(error).__name__}: {error}"[:300]}
        print(json.dumps(answer), file=answers, flush=True)
    # Libraries that fail while they are torn down have answered everything by now.
    os._exit(0)
