"""Compares sampan with PyTorch and PaddlePaddle on the same workloads, interleaved in one run.

    make bench                                       # sets everything up and runs all of it
    python benches/compare/run.py --only 'lenet*'    # some of it, in an environment that has the peers

Each contender is a process of its own with the same number of threads. A peer runs twice: with OpenMP's own settings
and with OMP_WAIT_POLICY=PASSIVE, since threads that spin slow a peer down on a machine that is not quite quiet; its
better time counts. In every round each contender runs for a while in turn; the table shows medians over the rounds.
"""

import argparse
import contextlib
import datetime
import fnmatch
import json
import pathlib
import platform
import signal
import statistics
import subprocess
import sys
import time

import report
import workloads  # noqa: F401
from process import HERE, ROOT, RUST, Contender, contenders, environment
from work import GROUPS, WHOLE, WORKLOADS

STARTUP = "import and first step"


def say(*words):
    print(*words, file=sys.stderr, flush=True)


def compare(name, options, staying):
    """One workload by everyone: `contenders` by label, what `failed` and why, and the `count` of its work.

    A whole program runs in a new process, whose memory says something; for single ops the `staying` ones do.
    """
    whole = WORKLOADS[name].group in WHOLE
    seconds = options.seconds if whole else options.seconds / 2
    found, failed, count = {}, {}, None
    with contextlib.ExitStack() as stack:
        running = []

        def ask(contender, *command):
            answer = contender.ask(*command)
            if "error" in answer:
                failed[contender.label] = answer["error"]
                found.pop(contender.label, None)
                say(f"    {contender.label}: {answer['error']}")
            return None if "error" in answer or "absent" in answer else answer

        for label, command, env in contenders(options):
            home = stack if whole else staying
            contender = None if whole else staying.contenders.get(label)
            if contender is None or contender.process.poll() is not None:
                contender = home.enter_context(Contender(label, command, env))
            if not whole:
                staying.contenders[label] = contender
            if answer := ask(contender, "build", name):
                found[label] = {"seconds": [], **answer}
                running.append(contender)
        for turn in range(options.rounds):
            for contender in rotated(running, turn):
                # Threads of the one before may spin for a while.
                time.sleep(0.05)
                if contender.label in found and (answer := ask(contender, "time", seconds)):
                    found[contender.label]["seconds"].append(answer["step"])
        for contender in running:
            if whole and contender.label in found and (answer := ask(contender, "memory")):
                found[contender.label]["memory"] = answer["memory"]
            # Last, for counting takes memory too.
            if contender.label == "torch" and "torch" in found:
                count = ask(contender, "count")
    return {"contenders": spread(found), "failed": failed, "count": count}


class Staying(contextlib.ExitStack):
    """Contenders that do one op after the other: most of the time would go into imports."""

    def __init__(self):
        super().__init__()
        self.contenders = {}


def rotated(items, by):
    """So that nobody always runs after the same neighbour."""
    start = by % max(1, len(items))
    return items[start:] + items[:start]


def spread(found):
    for entry in found.values():
        entry.update(low=min(entry["seconds"]), high=max(entry["seconds"]), median=statistics.median(entry["seconds"]))
    return found


def startup(options):
    """Import and first step, in a new process each time."""

    def python(module):
        command = [sys.executable, str(HERE / "first_step.py"), module]
        subprocess.run(command, env=environment(options.threads), check=True, capture_output=True)

    def rust(_):
        with Contender(RUST, [options.rust, str(options.threads)], environment(options.threads)) as contender:
            answer = contender.ask("first", "linear b16")
        if "error" in answer:
            raise RuntimeError(answer["error"])

    found, failed = {}, {}
    for _ in range(options.rounds):
        for label in ["sampan", *([RUST] if options.rust else []), *options.peers]:
            began = time.perf_counter()
            try:
                (rust if label == RUST else python)(label)
            except (RuntimeError, subprocess.CalledProcessError) as error:
                failed[label] = str(error) if label == RUST else f"ended with status {error.returncode}"
                continue
            found.setdefault(label, {"seconds": []})["seconds"].append(time.perf_counter() - began)
    return {"contenders": spread(found), "failed": failed, "count": None}


def peak(options, known=None):
    """The machine's best, as measured now and `known` from before."""
    with Contender(RUST, [options.rust, str(options.threads)], environment(options.threads)) as contender:
        now = contender.ask("peak")
    if "error" in now or not known:
        return known or (None if "error" in now else now)
    bandwidth = [[size, max(a, b)] for (size, a), (_, b) in zip(known["bandwidth"], now["bandwidth"])]
    return {"bandwidth": bandwidth, **{k: max(known[k], now[k]) for k in ("flops", "flops_one")}}


def heading(options):
    """What was measured where."""
    cpu = platform.machine()
    with contextlib.suppress(OSError):
        lines = pathlib.Path("/proc/cpuinfo").read_text().splitlines()
        cpu = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), cpu)
    describe = ["git", "describe", "--always", "--dirty"]
    commit = subprocess.run(describe, cwd=ROOT, capture_output=True, text=True).stdout.strip()
    return {
        "cpu": cpu,
        "threads": options.threads,
        "rounds": options.rounds,
        "seconds": options.seconds,
        "date": datetime.date.today().isoformat(),
        "commit": commit,
        "versions": {"python": platform.python_version()},
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add = parser.add_argument
    add("--only", action="append", help="pattern of workload or group names; may be repeated")
    add("--rounds", type=int, default=5)
    add("--seconds", type=float, default=0.5, help="how long a contender runs in a round; a single op half as long")
    add("--threads", type=int, default=2)
    add("--peers", nargs="*", default=["torch", "paddle"])
    add("--rust", default=str(ROOT / "target/release/contender"))
    add("--out", type=pathlib.Path, default=ROOT / "docs/performance", help="what to write, without the suffix")
    options = parser.parse_args()
    if not pathlib.Path(options.rust).exists():
        say("No Rust column and no peak without the Rust contender: cargo build --release -p sampan-bench")
        options.rust = None

    # Being ended is like Ctrl-C.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    groups = {STARTUP: "startup", **{name: w.group for name, w in WORKLOADS.items()}}

    def is_wanted(name):
        return any(fnmatch.fnmatch(word, p) for p in options.only or ["*"] for word in (name, groups[name]))

    wanted = sorted(filter(is_wanted, groups), key=lambda name: list(GROUPS).index(groups[name]))
    facts = heading(options)
    facts["peak"] = peak(options) if options.rust else None
    results, began, staying = {}, time.monotonic(), Staying()
    try:
        for i, name in enumerate(wanted):
            left = (time.monotonic() - began) / i * (len(wanted) - i) if i else None
            say(f"[{i + 1}/{len(wanted)}] {name}" + (f" ({left / 60:.0f} min left)" if left else ""))
            result = startup(options) if name == STARTUP else compare(name, options, staying)
            results[name] = {"group": groups[name], **result}
            for label, entry in result["contenders"].items():
                if version := entry.pop("version", None):
                    facts["versions"][label.removesuffix(" passive")] = version
                say(f"    {label:16} {report.duration(entry['median'])}")
        if options.rust:
            facts["peak"] = peak(options, facts["peak"])
    except KeyboardInterrupt:
        say("Interrupted: writing what was measured.")
    finally:
        staying.close()
    options.out.parent.mkdir(parents=True, exist_ok=True)
    options.out.with_suffix(".json").write_text(json.dumps({"facts": facts, "results": results}, indent=1) + "\n")
    print(report.write(options.out))


if __name__ == "__main__":
    main()
