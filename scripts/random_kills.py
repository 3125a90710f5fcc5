"""A training under elastic launch, one of whose processes is killed at random moments, again and again.

    python scripts/random_kills.py [50]

Each time the launcher starts both processes again and they go on from the last checkpoint. The weights at the end must be, to
the bit, those of a training that nobody disturbed, and no process may be left.
"""

import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

PROGRAM = """
import os, sys
import numpy as np
import sampan
import sampan.distributed as dist
from sampan import nn

folder, steps = sys.argv[1], int(sys.argv[2])
os.makedirs(folder, exist_ok=True)
dist.init_parallel_env()
rank = dist.get_rank()
sampan.seed(1)
net = sampan.DataParallel(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)))
adam = sampan.optimizer.Adam(0.01, parameters=net.parameters())
step, last = 0, f"{folder}/last"
if os.path.exists(last):
    saved = sampan.load(last)
    step = saved["step"]
    net.set_state_dict(saved["net"])
    adam.set_state_dict(saved["adam"])
dist.barrier()
while step < steps:
    rng = np.random.RandomState(100 * step + rank)
    x = sampan.to_tensor(rng.rand(16, 8).astype("float32"))
    nn.functional.mse_loss(net(x), x.sum(1, keepdim=True)).backward()
    adam.step()
    adam.clear_grad()
    step += 1
    if rank == 0 and step % 5 == 0:
        sampan.save({"step": step, "net": net.state_dict(), "adam": adam.state_dict()}, last)
dist.barrier()
"""


def children(pid: int) -> list[int]:
    try:
        return [int(p) for p in pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except OSError:
        return []


def main(kills: int) -> int:
    chance, launch = random.Random(3), [sys.executable, "-m", "sampan.distributed.launch", "--nproc_per_node", "2"]
    steps = 500 * kills
    with tempfile.TemporaryDirectory() as folder:
        (pathlib.Path(folder) / "train.py").write_text(PROGRAM)
        # Into a file: a pipe that nobody reads would stop the launcher.
        said = open(f"{folder}/said", "w+")
        command = [*launch, "--max_restart", str(kills), "train.py", "disturbed", str(steps)]
        disturbed = subprocess.Popen(command, cwd=folder, stderr=said, text=True)
        seen, done, last = set(), 0, f"{folder}/disturbed/last"
        while done < kills and disturbed.poll() is None:
            before = os.stat(last).st_mtime_ns if os.path.exists(last) else 0
            # After the next checkpoint, at a random moment.
            while disturbed.poll() is None and (not os.path.exists(last) or os.stat(last).st_mtime_ns == before):
                time.sleep(0.005)
            time.sleep(chance.random() * 0.2)
            pids = children(disturbed.pid)
            seen.update(pids)
            if pids:
                os.kill(chance.choice(pids), signal.SIGKILL)
                done += 1
            # The next one is killed among those that are started again.
            while disturbed.poll() is None and set(children(disturbed.pid)) & set(pids):
                time.sleep(0.005)
        while disturbed.poll() is None:
            seen.update(children(disturbed.pid))
            time.sleep(0.05)
        said.seek(0)
        told = said.read()
        if disturbed.returncode or told.count("starting again") != done:
            print(told[-2000:], file=sys.stderr)
            print(f"ended with code {disturbed.returncode} after {done} kills", file=sys.stderr)
            return 1
        left = [pid for pid in seen if os.path.exists(f"/proc/{pid}")]
        subprocess.run([*launch, "train.py", "quiet", str(steps)], cwd=folder, check=True)
        import sampan

        a, b = (sampan.load(f"{folder}/{name}/last")["net"] for name in ("quiet", "disturbed"))
        same = all((a[name].numpy() == b[name].numpy()).all() for name in a)
        print(
            f"{done} kills, {steps} steps: weights {'the same bits' if same else 'DIFFER'}, {len(left)} processes left"
        )
        return 0 if same and not left else 1


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 50))
