"""Tests and measures on a machine that has a GPU and no Rust.

`python scripts/on_gpu.py pack` builds the core's tests and the Python package here, and packs them into
`target/gpu/on_gpu.tar.xz` (less than 40 MB) with this script. There, `python on_gpu.py run` after unpacking runs the tests of
every op against the CPU and the benchmarks beside PyTorch, and writes `report.json` and `report.txt` into `$OUT` or the folder.
"""

import glob
import json
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile

HERE = os.path.dirname(os.path.abspath(__file__))
ROOT = os.path.dirname(HERE)
FEATURES = ["--features", "sampan-core/ndarray"]


def built(*arguments):
    """What cargo built, by the name of the target."""
    command = ["cargo", *arguments, "--message-format=json-render-diagnostics"]
    lines = subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    made = {}
    for line in map(json.loads, lines):
        if line["reason"] == "compiler-artifact":
            made[line["target"]["name"]] = line["executable"] or line["filenames"][0]
    return made


def pack():
    profile = ["--release"] if "--release" in sys.argv else []
    suite = built("test", "--no-run", "-p", "sampan-core", "--test", "suite", "--features", "ndarray", *profile)["suite"]
    # Without the interpreter's library, which another machine may have in another version.
    os.environ["PYO3_BUILD_EXTENSION_MODULE"] = "1"
    library = built("build", "-p", "sampan-py", *FEATURES, *profile)["_core"]
    target = os.path.join(ROOT, "target", "gpu")
    os.makedirs(target, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(os.path.join(ROOT, "python", "sampan"), os.path.join(folder, "sampan"), ignore=shutil.ignore_patterns("__pycache__", "*.so"))
        subprocess.run(["strip", "-o", os.path.join(folder, "sampan", "_core.abi3.so"), library], check=True)
        subprocess.run(["strip", "-o", os.path.join(folder, "suite"), suite], check=True)
        shutil.copy(os.path.join(ROOT, "benches", "compare", "gpu.py"), folder)
        shutil.copy(os.path.abspath(__file__), folder)
        archive = os.path.join(target, "on_gpu.tar.xz")
        with tarfile.open(archive, "w:xz", preset=4) as tar:
            for name in sorted(os.listdir(folder)):
                tar.add(os.path.join(folder, name), name)
    print(f"{archive}: {os.path.getsize(archive) / 2**20:.1f} MiB")


def run():
    out = os.environ.get("OUT", HERE)
    environment = dict(os.environ, PYTHONPATH=HERE, SAMPAN_QUIET="1")
    environment["LD_LIBRARY_PATH"] = ":".join([*libraries(), os.environ.get("LD_LIBRARY_PATH", "")])
    with open(os.path.join(out, "report.txt"), "w") as report:
        suite = os.path.join(HERE, "suite")
        tests = subprocess.run([suite, "on_gpu", "--nocapture"], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=500)
        report.write(tests.stdout)
        print(tests.stdout[-9000:], flush=True)
        rows = []
        for what in (["sampan"], ["torch"], ["sampan", "graph"], ["torch", "graph"]):
            bench = subprocess.run([sys.executable, os.path.join(HERE, "gpu.py"), *what], env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=300)
            report.write(bench.stdout)
            print(bench.stdout[-4000:], flush=True)
            rows += [json.loads(line) for line in bench.stdout.splitlines() if line.startswith("{")]
    with open(os.path.join(out, "report.json"), "w") as file:
        json.dump({"tests": tests.returncode == 0, "rows": rows}, file, indent=1)
    sys.exit(tests.returncode)


def libraries():
    """Folders of NVIDIA's libraries that pip installed."""
    try:
        import nvidia
    except ImportError:
        return []
    return [folder for root in nvidia.__path__ for folder in glob.glob(os.path.join(root, "*", "lib"))]


if __name__ == "__main__":
    {"pack": pack, "run": run}[sys.argv[1]]()
