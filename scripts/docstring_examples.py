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
import textwrap
import time
import traceback
import types

import paddle_names as names

# Examples that this comparison cannot judge: the reason, and the code that betrays it.
SKIPS = {
    "accelerator": r"CUDAPlace|CUDAPinnedPlace|XPUPlace|XPUPinnedPlace|device\.(cuda|xpu)|['\"](gpu|xpu|ipu|npu|custom_cpu)\b|\.cuda\(|_gpu_",
    "static graph": r"enable_static|program_guard|static\.(?!InputSpec)|import static|from paddle\.static import (?!InputSpec\b)|to_static_variable",
    "distributed": r"paddle\.distributed|import distributed|fleet\b|DataParallel|init_parallel_env",
    "network": r"pretrained\s*=\s*True|https?://|get_weights_path_from_url|\b(MNIST|FashionMNIST|Cifar100?|Flowers|VOC2012|Imdb"
    r"|Imikolov|Movielens|UCIHousing|WMT1[46]|Conll05st)\(",
    "other parts of paddle": r"paddle\.(incubate|sparse|geometric|audio|quantization|inference|base|profiler|onnx|hub|pir|cinn|tensorrt)\b"
    r"|cpp_extension|from paddle import (base|incubate|sparse)\b",
    "other packages": r"import (torch|visualdl|wandb|matplotlib|cv2)\b|VisualDL\(|WandbCallback\(",
}
# Paddle marks parts that its own checker leaves out. Those left out for their output alone still have to run.
DIRECTIVE = re.compile(r"#\s*x?doctest:\s*([+-])(SKIP|REQUIRES)\b(.*)")
ONLY_OUTPUT = re.compile(r"random|diff|environment|change|address|not same|output|windows|xdoctest|version", re.I)
# Another generator gives other numbers from the same seed (NumPy's own is the same).
SEEDED = re.compile(r"(?<!random\.)\bseed\(|manual_seed")
NUMBER = re.compile(r"(?<![\w.])([-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)(?!\w)")
MEMORY = 12 << 30


def collect():
    """All examples of the installed paddle: [{id, namespace, text}], each text once."""
    seen, found = set(), []
    for namespace in names.NAMESPACES:
        space = names.resolve(namespace)
        for name in names.public_names(namespace):
            thing = getattr(space, name)
            holders = [(f"{namespace}.{name}", thing)]
            if inspect.isclass(thing) and f"{namespace}.{name}" not in names.NAMESPACES:
                holders += [(f"{namespace}.{name}.{m}", getattr(thing, m, None)) for m in dir(thing) if not m.startswith("_")]
            for path, holder in holders:
                blocks = [b for b in code_blocks(inspect.getdoc(holder) or "") if b not in seen]
                seen.update(blocks)
                found += [{"id": f"{path}#{i}", "namespace": namespace, "text": b} for i, b in enumerate(blocks)]
    return found


def code_blocks(doc):
    """The Python programs in a docstring: its code blocks, or all of it from the first prompt on."""
    lines = doc.expandtabs().splitlines()
    starts = [i for i, line in enumerate(lines) if re.match(r"\s*\.\.\s+code-block::\s*(python|pycon)", line)]
    prompt = re.search(r"^ *>>>", doc, re.M)
    if prompt and not starts:
        return [textwrap.dedent(doc[prompt.start() :])]
    blocks = []
    for start in starts:
        indent = len(lines[start]) - len(lines[start].lstrip())
        body = []
        for line in lines[start + 1 :]:
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            if not re.match(r"\s*:\w+:", line):  # an option of the block
                body.append(line)
        blocks.append(textwrap.dedent("\n".join(body)).strip("\n"))
    return [b for b in blocks if b]


def steps(text):
    """The top-level statements of an example: [{source, line, mode, want}], mode one of run, quiet (output not compared), skip."""
    if ">>>" not in text:
        return statements(text.splitlines(), ["quiet"] * len(text.splitlines()), 1, None)
    found, source, modes, want, mode, first = [], [], [], [], "run", 1
    quiet = SEEDED.search(text) is not None
    for number, line in enumerate([*text.splitlines(), ">>>"], 1):
        if line.startswith(">>>") or (line.startswith("...") and not want):
            if line.startswith(">>>") and (any(w.strip() for w in want) or number > text.count("\n") + 1):
                found += statements(source, modes, first, "\n".join(want))
                source, modes, first = [], [], number
            want = []
            code = line[4:]
            directive = DIRECTIVE.search(code)
            here = mode
            if directive:
                sign, _, reason = directive.groups()
                here = "run" if sign == "-" else "quiet" if ONLY_OUTPUT.search(reason) else "skip"
                if code.lstrip().startswith("#"):
                    mode = here
            source.append(code)
            modes.append("quiet" if quiet and here == "run" else here)
        else:
            # Blank lines hold their place, so that line numbers stay right.
            want.append(line)
            if not source or not any(w.strip() for w in want):
                source.append("")
                modes.append("run")
    return found


def statements(source, modes, first, want):
    found = []
    for node in ast.parse("\n".join(source)).body:
        start = min([node.lineno] + [d.lineno for d in getattr(node, "decorator_list", [])])
        here = modes[start - 1 : node.end_lineno]
        worst = "skip" if "skip" in here else "quiet" if "quiet" in here else "run"
        code = "\n".join(source[start - 1 : node.end_lineno])
        found.append({"source": code, "line": first + start - 1, "mode": worst, "want": None})
    if found and want and want.strip():
        found[-1]["want"] = want
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
    result = {"status": "pass", "compared": 0}
    pending = ""
    for step in example["steps"]:
        if step["mode"] == "skip":
            pending = ""
            continue
        start = os.lseek(1, 0, os.SEEK_END)
        expects_error = (step["want"] or "").startswith("Traceback")
        try:
            tree = ast.parse("\n" * (step["line"] - 1) + step["source"])
            single = isinstance(tree.body[0], ast.Expr)
            tree = ast.Interactive(tree.body) if single else tree
            exec(compile(tree, program.__file__, "single" if single else "exec"), program.__dict__)
        except BaseException as error:
            if expects_error:
                continue
            trace = "".join(traceback.format_exception(error)).replace(os.getcwd() + "/", "")
            return result | {"status": "failed", "message": last_line(error), "code": step["source"], "traceback": trace[-4000:]}
        sys.stdout.flush()
        printed = os.pread(1, 1 << 20, start).decode(errors="replace")
        pending += printed
        if step["want"] is None or step["mode"] == "quiet":
            pending = "" if step["want"] else pending
            continue
        result["compared"] += 1
        if not (agrees(step["want"], printed) or agrees(step["want"], pending)) and result["status"] == "pass":
            result |= {"status": "differs", "code": step["source"], "want": step["want"], "got": printed[:4000]}
        pending = ""
    strays = [n for n, m in sys.modules.items() if n.split(".")[0] == "paddle" and module != "paddle" and is_real(m)]
    return {"status": "failed", "message": f"the real paddle was imported: {strays[0]}"} if strays else result


def is_real(module):
    return f"{os.sep}paddle{os.sep}" in (getattr(module, "__file__", None) or "")


def last_line(error):
    lines = [line.strip() for line in str(error).splitlines()]
    told = [line for line in lines if re.match(r"\(\w+\)", line)] or [line for line in lines if line.strip("- ")] or [""]
    return f"{type(error).__name__}: {told[0]}"[:300]


def agrees(want, got):
    """Whether two outputs are the same but for white space, the place and the last digits of numbers."""
    ours, theirs = (NUMBER.split(re.sub(r"Place\(\w+(:\d+)?\)|0x[0-9a-f]+", "", text)) for text in (got, want))
    if len(ours) != len(theirs):
        return False
    for index, (a, b) in enumerate(zip(ours, theirs)):
        if index % 2 == 0:
            if "".join(a.split()) != "".join(b.split()):
                return False
        elif a != b and (a + b).lstrip("-").isdigit() or abs(float(a) - float(b)) > 1e-3 * max(1, abs(float(b))):
            return False
    return True


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
        how = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit {os.waitstatus_to_exitcode(status)}"
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
    reasons = (r for r, code in SKIPS.items() if r not in options.run_too and re.search(code, example["text"]))
    reason = next(reasons, None)
    if reason:
        return reason
    if baseline.get(example["id"], {}).get("status") in ("failed", "timeout"):
        return "fails on Paddle"
    try:
        example["steps"] = steps(example["text"])
    except SyntaxError:
        return "not a program"
    if baseline.get(example["id"], {}).get("status") == "differs":
        for step in example["steps"]:
            step["mode"] = "quiet" if step["mode"] == "run" else step["mode"]
    kept = [s for s in example["steps"] if s["mode"] != "skip" and not re.match(r"import |from ", s["source"])]
    return None if kept else "marked by Paddle"


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
    print("\nskipped:", ", ".join(f"{reason} {count}" for reason, count in collections.Counter(skipped.values()).most_common()))
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
            detail = result.get("traceback") or f"{result.get('code')}\n--- expected\n{result.get('want')}\n--- printed\n{result.get('got')}"
            print(f"\n===== {name}: {result['status']}\n{detail}")
    if options.json:
        grouped = [{"message": m, "count": len(n), "examples": n} for m, n in ordered]
        summary = {"module": options.module, "summary": rows, "groups": grouped, "failures": failures, "skipped": skipped}
        pathlib.Path(options.json).write_text(json.dumps(summary, indent=1))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default="sampan", help="the package that stands in paddle's place (sampan)")
    parser.add_argument("--only", default="", metavar="PATTERN", help="a regular expression that the example's name must match")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--seconds", type=float, default=20, help="time limit of one example")
    parser.add_argument("--json", metavar="FILE", help="write the failures, grouped by message")
    parser.add_argument("--baseline", metavar="FILE", help="the JSON of a run with --module paddle: what fails there is left out")
    parser.add_argument("--run-too", action="append", default=[], choices=SKIPS, metavar="REASON", help="do not skip for this reason")
    parser.add_argument("--paddle-python", default=sys.executable, help="the Python that has paddle, to read the examples with")
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
    report(examples, results, skipped, options)


if __name__ == "__main__":
    main()
