#!/usr/bin/env python3
"""Runs the examples in the docstrings of the installed PaddlePaddle with another package in paddle's place.

    scripts/docstring_examples.py --module paddle --json baseline.json     what fails even on Paddle itself
    scripts/docstring_examples.py --baseline baseline.json                 sampan, less those
    scripts/docstring_examples.py --only 'nn.functional.conv' --verbose    a few, with tracebacks and outputs

One code block is one program. It runs in a process forked from one that has imported the package, in a folder of its
own, with limits on time and memory. Where it shows its output, the printed one is compared, numbers within 1e-3.
The examples are read from the installed paddle at run time; none is kept here.
"""
import argparse
import ast
import collections
import importlib
import inspect
import json
import os
import pathlib
import re
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import traceback
import types

import example_text as texts
import paddle_names as names

# Examples that this comparison cannot judge: the reason, and the code that betrays it.
SKIPS = {
    "accelerator": r"CUDAPlace|CUDAPinnedPlace|XPUPlace|XPUPinnedPlace|device\.(cuda|xpu)|\.cuda\("
    r"|['\"](gpu|xpu|ipu|npu|custom_cpu)\b",
    "static graph": r"(?<!if not dynamic:\n    paddle\.)enable_static|program_guard|static\.(?!InputSpec)|import static"
    r"|from paddle\.static import (?!InputSpec\b)",
    "distributed": r"paddle\.distributed|import distributed|fleet\b|DataParallel|init_parallel_env",
    "network": r"pretrained\s*=\s*True|https?://|get_weights_path_from_url"
    r"|\b(MNIST|FashionMNIST|Cifar100?|Flowers|VOC2012|Imdb|Imikolov|Movielens|UCIHousing|WMT1[46]|Conll05st)\(",
    "other parts of paddle": r"paddle\.(incubate|sparse|geometric|audio|quantization|inference"
    r"|base(?!\.set_flags)|onnx|hub|pir|cinn|tensorrt)\b|cpp_extension"
    r"|from paddle import (base|incubate|sparse)\b",
    "other packages": r"import (torch|visualdl|wandb|matplotlib|cv2)\b|VisualDL\(|WandbCallback\(",
}
MARKED = "marked by Paddle"  # for a device or something else that its checker lacks
MEMORY = 6 << 30
BROKEN = ("failed", "timeout")


def collect():
    """All examples of the installed paddle: [{id, namespace, text}], each text once."""
    seen, found = set(), []
    # Classes that are namespaces of their own.
    apart = [names.resolve(n) for n in names.NAMESPACES if names.is_class(n)]
    for namespace in names.NAMESPACES:
        space = names.resolve(namespace)
        for name in names.public_names(namespace):
            thing = getattr(space, name)
            holders = [(f"{namespace}.{name}", thing)]
            if inspect.isclass(thing) and thing not in apart:
                public = [member for member in vars(thing) if not member.startswith("_")]
                holders += [(f"{namespace}.{name}.{member}", getattr(thing, member)) for member in public]
            for path, holder in holders:
                blocks = [b for b in texts.code_blocks(inspect.getdoc(holder) or "") if b not in seen]
                seen.update(blocks)
                found += [{"id": f"{path}#{i}", "namespace": namespace, "text": b} for i, b in enumerate(blocks)]
    return found


def run_example(example, module):
    """Runs the steps in this process; stdout is a file. Returns {status, …}."""
    program = types.ModuleType("__main__")
    program.__file__ = os.path.abspath("example.py")
    sys.modules["__main__"] = program
    lines = []
    for step in example["steps"]:
        lines += [""] * (step["line"] - 1 - len(lines)) + step["source"].splitlines()
    pathlib.Path("example.py").write_text("\n".join(lines))  # for inspect.getsource
    importlib.import_module(module).seed(20240229)
    differences, compared, pending = [], 0, 0
    for step in example["steps"]:
        begin = os.lseek(1, 0, os.SEEK_END)
        if step["mode"] == "skip":
            pending = begin
            continue
        try:
            tree = ast.parse("\n" * (step["line"] - 1) + step["source"])
            shows = isinstance(tree.body[0], ast.Expr)  # then its value is printed as at a prompt
            tree = ast.Interactive(tree.body) if shows else tree
            exec(compile(tree, program.__file__, "single" if shows else "exec"), program.__dict__)
        except BaseException as error:
            if step["want"].startswith("Traceback"):
                continue
            lines = traceback.format_exception(type(error), error, error.__traceback__.tb_next)
            trace = "".join(lines).replace(os.getcwd() + "/", "")[-4000:]
            return {"status": "failed", "message": last_line(error), "code": step["source"], "traceback": trace}
        sys.stdout.flush()
        if not step["want"]:
            continue
        # An example may show the output of one statement, or of all since it last showed some.
        printed, all_printed = (os.pread(1, 1 << 20, offset).decode(errors="replace") for offset in (begin, pending))
        pending = os.lseek(1, 0, os.SEEK_END)
        compared += step["mode"] == "run"
        if not any(texts.agrees(step["want"], got, step["mode"] == "heads") for got in (printed, all_printed)):
            shown = {"code": step["source"], "want": step["want"], "got": printed[:4000]}
            differences.append({"line": step["line"], **shown})
    result = {"status": "differs" if differences else "pass", "compared": compared, "differences": differences}
    strays = [n for n, m in sys.modules.items() if n.split(".")[0] == "paddle" and module != "paddle" and is_real(m)]
    return {"status": "failed", "message": f"the real paddle was imported: {strays[0]}"} if strays else result


def is_real(module):
    return "/site-packages/paddle/" in (getattr(module, "__file__", None) or "")


def last_line(error):
    while isinstance(error, SystemError) and error.__cause__:  # an error that C code did not notice
        error = error.__cause__
    lines = [line.strip() for line in str(error).splitlines()]
    coded = [line for line in lines if re.match(r"\(\w+\)", line)]  # as in "(InvalidArgument) …"
    told = coded or [line for line in lines if line.strip("- ")] or [""]
    return f"{type(error).__name__}: {told[0]}"[:300]


def start(example, module):
    """Forks a process that runs the example; returns its id and folder."""
    folder = tempfile.mkdtemp(prefix="example-")
    pid = os.fork()
    if pid:
        return pid, folder
    try:
        os.setsid()
        os.mkdir(f"{folder}/work")
        os.chdir(f"{folder}/work")
        sys.path[0] = f"{folder}/work"
        resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        for target, name in ((1, "out"), (2, "err")):
            os.dup2(os.open(f"{folder}/{name}", os.O_RDWR | os.O_CREAT | os.O_APPEND), target)
        result = run_example(example, module)
        pathlib.Path(f"{folder}/result.json").write_text(json.dumps(result))
    except BaseException:
        traceback.print_exc()
    finally:
        os._exit(0)


def finish(pid, folder, status):
    """What became of a process that has ended (or None where it ran out of time)."""
    try:
        os.killpg(pid, signal.SIGKILL)  # and what it started
    except ProcessLookupError:
        pass
    told = pathlib.Path(folder, "result.json")
    if status is None:
        os.waitpid(pid, 0)
        result = {"status": "timeout", "message": "ran out of time"}
    elif told.exists():
        result = json.loads(told.read_text())
    else:
        code = os.waitstatus_to_exitcode(status)
        how = signal.Signals(-code).name if code < 0 else f"exit {code}"
        error = pathlib.Path(folder, "err")
        tail = error.read_text(errors="replace")[-4000:] if error.exists() else ""
        result = {"status": "failed", "message": f"the process died: {how}", "traceback": tail}
    shutil.rmtree(folder, ignore_errors=True)
    return result


def run_all(examples, module, jobs, seconds):
    """Results by id; `jobs` examples at a time."""
    results, running, waiting = {}, {}, collections.deque(examples)
    while waiting or running:
        while waiting and len(running) < jobs:
            example = waiting.popleft()
            pid, folder = start(example, module)
            running[pid] = example["id"], folder, time.monotonic() + seconds
        for pid, (name, folder, deadline) in list(running.items()):
            done, status = os.waitpid(pid, os.WNOHANG)
            if done or time.monotonic() > deadline:
                results[name] = finish(pid, folder, status if done else None)
                del running[pid]
        time.sleep(0.005)
    return results


def skip_reason(example, options, baseline):
    """Why this example is not run, or None; then it has its steps."""
    try:
        example["steps"] = texts.steps(example["text"], MARKED not in options.run_too)
    except SyntaxError:
        return "not a program"
    known = {d["line"] for d in baseline.get(example["id"], {}).get("differences", [])}
    for step in example["steps"]:
        step["want"] = "" if step["line"] in known else step["want"]
    kept = [step["source"] for step in example["steps"] if step["mode"] != "skip"]
    code = [ast.unparse(ast.parse(source)) for source in kept]  # without comments
    if all(re.match(r"import |from ", line) for line in code):
        return MARKED if len(kept) < len(example["steps"]) else "not a program"
    return next((r for r, sign in SKIPS.items() if r not in options.run_too and re.search(sign, "\n".join(code))), None)


def report(examples, results, skipped, options):
    rows = collections.defaultdict(collections.Counter)
    for example in examples:
        result = results.get(example["id"], {"status": "skipped"})
        for row in (rows[example["namespace"]], rows["all"]):
            row["examples"] += 1
            row[result["status"]] += 1
            row["ran"] += result["status"] != "skipped"
            row["passed"] += result["status"] in ("pass", "differs")
            row["compared"] += result.get("compared", 0) > 0 and result["status"] in ("pass", "differs")
    columns = ["examples", "skipped", "ran", "passed", "failed", "timeout", "compared", "differs"]
    print(f"{'namespace':34}" + "".join(f"{c:>10}" for c in columns))
    for namespace in [*(k for k in rows if k != "all"), "all"]:
        print(f"{namespace:34}" + "".join(f"{rows[namespace][c]:10}" for c in columns))
    reasons = collections.Counter(skipped.values()).most_common()
    print("\nskipped:", ", ".join(f"{reason} {count}" for reason, count in reasons))
    groups = collections.defaultdict(list)
    for name, result in results.items():
        if result["status"] != "pass":
            groups[re.sub(r"\b\d+\b|0x\w+", "N", result.get("message", "the output differs"))].append(name)
    ordered = sorted(groups.items(), key=lambda item: -len(item[1]))
    for message, members in ordered:
        print(f"\n{len(members):4}  {message}\n      {' '.join(members[:8])}{' …' if len(members) > 8 else ''}")
    failures = {name: result for name, result in results.items() if result["status"] != "pass"}
    if options.verbose:
        for name, result in failures.items():
            print(f"\n===== {name}: {result['status']}\n{result.get('traceback', '')}")
            for shown in result.get("differences", []):
                print("{code}\n--- expected\n{want}\n--- printed\n{got}".format(**shown))
    if options.json:
        grouped = [{"message": m, "count": len(n), "examples": n} for m, n in ordered]
        told = {"module": options.module, "summary": rows, "groups": grouped, "failures": failures, "skipped": skipped}
        pathlib.Path(options.json).write_text(json.dumps(told, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default="sampan", help="the package that stands in paddle's place (sampan)")
    parser.add_argument("--only", default="", metavar="PATTERN", help="a regular expression for the example's name")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20, help="time limit of one example")
    parser.add_argument("--json", metavar="FILE", help="write the failures, grouped by message")
    parser.add_argument("--baseline", metavar="FILE", help="JSON of a --module paddle run; leaves out what fails there")
    parser.add_argument("--run-too", action="append", default=[], choices=[*SKIPS, MARKED], metavar="REASON")
    parser.add_argument("--paddle-python", default=sys.executable, help="the Python that has the real paddle")
    parser.add_argument("--verbose", action="store_true", help="tracebacks and outputs of all that failed")
    parser.add_argument("--collect", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.collect:
        return json.dump(collect(), sys.stdout)
    # Paddle is read by another process, so that it is never imported beside what stands in its place.
    command = [options.paddle_python, "-W", "ignore", __file__, "--collect"]
    examples = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout)
    examples = [e for e in examples if re.search(options.only, e["id"])]
    baseline = json.loads(pathlib.Path(options.baseline).read_text())["failures"] if options.baseline else {}
    skipped = {e["id"]: reason for e in examples if (reason := skip_reason(e, options, baseline))}
    for variable in ("OMP_NUM_THREADS", "SAMPAN_NUM_THREADS"):
        os.environ.setdefault(variable, "1")
    package = importlib.import_module(options.module)
    if options.module == "sampan":
        importlib.import_module("sampan.compat").install_as_paddle()
    importlib.import_module("numpy")
    results = run_all([e for e in examples if e["id"] not in skipped], package.__name__, options.jobs, options.seconds)
    for name in [n for n in results if results[n]["status"] in BROKEN and baseline.get(n, {}).get("status") in BROKEN]:
        skipped[name] = "fails on Paddle too"
        del results[name]
    report(examples, results, skipped, options)


if __name__ == "__main__":
    main()
