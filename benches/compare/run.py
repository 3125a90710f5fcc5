"""Compares sampan with PyTorch and PaddlePaddle on the same workloads, interleaved in one run.

    make bench                                       # sets everything up and runs all of it
    python benches/compare/run.py --only 'lenet*'    # some of it, in an environment that has the peers

Each contender is a process of its own with the same number of threads. A peer runs twice: with OpenMP's own settings and
with OMP_WAIT_POLICY=PASSIVE, since threads that spin slow a peer down on a machine that is not quite quiet; its better
time counts. In every round each contender runs for a while in turn; the table shows medians over the rounds.
"""

import argparse
import fnmatch
import json
import os
import pathlib
import statistics
import subprocess
import sys
import time

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parent.parent
sys.path.insert(0, str(HERE))

import loader  # noqa: E402, F401
from report import write  # noqa: E402
from workloads import GROUPS, WORKLOADS  # noqa: E402

PASSIVE = {"OMP_WAIT_POLICY": "PASSIVE", "KMP_BLOCKTIME": "0"}


class Contender:
    """A process that answers lines."""

    def __init__(self, label, command, environment):
        self.label = label
        env = {**os.environ, **environment}
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=env, cwd=HERE, stderr=subprocess.DEVNULL)

    def ask(self, *command):
        try:
            self.process.stdin.write(json.dumps(command) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        return json.loads(line) if line else {"error": f"the process ended with {self.process.poll()}"}

    def end(self):
        self.process.stdin.close()
        self.process.wait()


def contenders(threads, peers, rust):
    python = sys.executable
    script = str(HERE / "contender.py")
    count = {"OMP_NUM_THREADS": str(threads), "SAMPAN_NUM_THREADS": str(threads)}
    yield "sampan", [python, script, "sampan", str(threads)], count
    if rust:
        yield "sampan (Rust)", [rust, str(threads)], count
    for peer in peers:
        yield peer, [python, script, peer, str(threads)], count
        yield f"{peer} passive", [python, script, peer, str(threads)], {**count, **PASSIVE}


def compare(name, options):
    """Times of one workload: label → {seconds: [...], first, import, memory}."""
    running, found = [], {}
    for label, command, environment in contenders(options.threads, options.peers, options.rust):
        contender = Contender(label, command, environment)
        answer = contender.ask("build", name)
        if "first" in answer:
            running.append(contender)
            found[label] = {"seconds": [], **answer}
        else:
            if "error" in answer:
                print(f"    {label}: {answer['error']}", file=sys.stderr)
            contender.end()
    for _ in range(options.rounds):
        for contender in running:
            # Threads of the one before may spin for a while.
            time.sleep(0.05)
            answer = contender.ask("time", name, options.seconds)
            if "step" in answer:
                found[contender.label]["seconds"].append(answer["step"])
    for contender in running:
        found[contender.label]["memory"] = contender.ask("memory")["memory"]
        contender.end()
    return {label: entry for label, entry in found.items() if entry["seconds"]}


def startup(options):
    """Import and first step: a new process that trains the linear model once."""
    code = (
        "import sys; sys.path.insert(0, {here!r})\n"
        "import importlib; m = importlib.import_module({module!r})\n"
        "from workloads import WORKLOADS; WORKLOADS['linear b16'][{api!r}](m)()"
    )
    found = {}
    for module in ("sampan", *options.peers):
        api = "torch" if module == "torch" else "paddle"
        text = code.format(here=str(HERE), module=module, api=api)
        found[module] = {"seconds": []}
        for _ in range(max(3, options.rounds)):
            began = time.perf_counter()
            subprocess.run([sys.executable, "-c", text], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            found[module]["seconds"].append(time.perf_counter() - began)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", action="append", help="pattern of workload or group names; may be repeated")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=0.5, help="how long a contender runs in a round")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--peers", nargs="*", default=["torch", "paddle"])
    parser.add_argument("--rust", default=str(ROOT / "target/release/contender"))
    parser.add_argument("--out", default=str(ROOT / "docs/performance"))
    options = parser.parse_args()
    if not pathlib.Path(options.rust).exists():
        options.rust = None
    wanted = options.only or ["*"]
    results = {}
    for name in WORKLOADS:
        if not any(fnmatch.fnmatch(name, p) or fnmatch.fnmatch(GROUPS[name], p) for p in wanted):
            continue
        results[name] = {"group": GROUPS[name], "contenders": compare(name, options)}
        shown = {k: f"{statistics.median(v['seconds']) * 1e6:,.0f} µs" for k, v in results[name]["contenders"].items()}
        print(f"{name:45}", "  ".join(f"{k} {v}" for k, v in shown.items()), flush=True)
    if any(fnmatch.fnmatch("startup", p) for p in wanted):
        results["import and first step"] = {"group": "startup", "contenders": startup(options)}
    write(results, options)


if __name__ == "__main__":
    main()
