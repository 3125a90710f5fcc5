"""How the server bears load: its rate beside the bare predictor's, random shapes, too many clients, damaged requests.

    make dist && cargo build --release -p sampan-serve --example load
    PYTHONPATH=python python scripts/serve_load.py [--seconds 10] [--shapes 100000] [--damaged 1000000]

Needs sampan, which saves the networks. Everything stays on this machine (127.0.0.1).
"""

import argparse
import os
import pathlib
import re
import resource
import subprocess
import tempfile

import numpy as np

import sampan
from sampan import nn
from sampan.static import InputSpec

ROOT = pathlib.Path(__file__).parents[1]


def resident(pid: int) -> float:
    """Megabytes of memory that a process has."""
    text = pathlib.Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"VmRSS:\s+(\d+)", text)[1]) / 1024


def worked(pid: int) -> float:
    """Seconds of processor time that a process has had."""
    fields = pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def measured(command) -> tuple[str, float]:
    """What a program says, and its seconds of processor time."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return said, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


class Served:
    """A server on a port of its own."""

    def __init__(self, program, models, *options):
        command = [program, "serve", str(models), "--port", "0", *options]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        for line in self.process.stdout:
            if line.startswith("listening at http://"):
                self.address = line.split("//")[1].strip()
                return
        raise RuntimeError("the server did not begin to listen")

    def __enter__(self):
        return self

    def __exit__(self, *_):
        alive = self.process.poll() is None
        self.process.terminate()
        assert self.process.wait(30) == 0 and alive, "the server has come down"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--program", default=str(ROOT / "target/dist/sampan-deploy"))
    parser.add_argument("--load", default=str(ROOT / "target/release/examples/load"))
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--shapes", type=int, default=100_000)
    parser.add_argument("--damaged", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--only", default="rate,shapes,flood,damaged")
    options = parser.parse_args()
    wanted = options.only.split(",")

    def load(server, *words):
        subprocess.run([options.load, server.address, *map(str, words)], check=True)

    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        sampan.seed(0)
        large = sampan.vision.models.mobilenet_v3_small()
        small = nn.Sequential(nn.Conv2D(3, 8, 3, padding=1), nn.BatchNorm2D(8), nn.ReLU(), nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(8, 4))
        images = [InputSpec([None, 3, 224, 224], "float32", "x")]
        sampan.jit.save(large, str(folder / "models/large"), input_spec=images)
        sampan.jit.save(small, str(folder / "models/small"), input_spec=[InputSpec([None, 3, None, None], "float32", "x")])
        if "rate" in wanted:
            np.save(folder / "x.npy", np.random.rand(16, 3, 224, 224).astype("float32"))
            bare = [options.program, "infer", str(folder / "models/large"), "--input", str(folder / "x.npy"), "--output", str(folder / "y.npy")]
            with Served(options.program, folder / "models") as server:
                # In turns, so that both have the same machine. Processor time tells more where others use it too: the clients,
                # which make and take requests on the same cores, have theirs.
                for _ in range(3):
                    runs = int(options.seconds * 20)
                    said, once = measured([*bare, "--repeat", "1"])
                    said, own = measured([*bare, "--repeat", str(1 + runs)])
                    each = float(said.split(" ms")[0])
                    print(f"bare, batches of 16: {16e3 / each:.0f} images a second, {(own - once) / runs / 16e-3:.3f} ms of processor time for one")
                    before = worked(server.process.pid)
                    rate = [options.load, server.address, "rate", "large", "x", "1,3,224,224", "16", str(options.seconds / 2)]
                    said, clients = measured(rate)
                    count = float(said.split(" ")[0]) * options.seconds / 2
                    own = worked(server.process.pid) - before
                    print(f"{said.strip()}; {own / count * 1e3:.3f} ms of processor time for one, the clients' {clients / count * 1e3:.3f}", flush=True)
        if "shapes" in wanted:
            with Served(options.program, folder / "models") as server:
                for share in (0.1, 0.3, 0.3, 0.3):
                    load(server, "shapes", "small", "x", int(options.shapes * share))
                    print(f"{resident(server.process.pid):.1f} MB of memory", flush=True)
        if "flood" in wanted:
            with Served(options.program, folder / "models", "--queue", "32") as server:
                load(server, "flood", "large", "x", "1,3,224,224", 200)
        if "damaged" in wanted:
            with Served(options.program, folder / "models") as server:
                load(server, "damaged", "small", "x", "1,3,4,4", options.damaged, options.seed)
                print(f"{resident(server.process.pid):.1f} MB of memory", flush=True)


if __name__ == "__main__":
    os.environ.setdefault("RUST_BACKTRACE", "0")
    main()
