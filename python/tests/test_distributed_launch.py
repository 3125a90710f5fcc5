"""Starting processes on one machine and several: logs, failures, signals, restarts."""

import os
import pathlib
import random
import signal
import socket
import subprocess
import sys
import time

import pytest

import sampan

HOME = str(pathlib.Path(sampan.__file__).parents[1])
LAUNCH = [sys.executable, "-m", "sampan.distributed.launch"]

PROGRAM = """
import os, signal, sys, time
import sampan
import sampan.distributed as dist

what, folder = sys.argv[1], os.getcwd()
rank = int(os.environ["PADDLE_TRAINER_ID"])
open(f"{folder}/pid{rank}-{os.environ['SAMPAN_GENERATION']}", "w").write(str(os.getpid()))
if what == "sleep":
    time.sleep(100)
dist.init_parallel_env()
print("rank", rank, "of", dist.get_world_size(), "by", dist.get_backend(), flush=True)
if what == "killed":
    if rank == 1:
        print("the last words of rank 1", flush=True)
        os.kill(os.getpid(), signal.SIGKILL)
    while True:
        dist.barrier()
if what == "raises":
    if rank == 1:
        raise KeyError("mine")
    dist.barrier()
if what == "steps":
    # Counts to ten, from the last checkpoint; every process must have counted the same.
    path, times = f"{folder}/checkpoint", int(os.environ["SAMPAN_GENERATION"])
    done = int(open(path).read()) if os.path.exists(path) else 0
    state = sampan.to_tensor([float(done)])
    while done < 10:
        done += 1
        step = sampan.ones([1])
        dist.all_reduce(step, op=dist.ReduceOp.AVG)
        state += step
        if rank == 0:
            open(path + ".new", "w").write(str(int(state.item())))
            os.replace(path + ".new", path)
        dist.barrier()
        time.sleep(float(os.environ.get("PAUSE", "0")))
        if rank == times % 2 and times < int(os.environ.get("KILLS", "2")) and done == 3 * times + 2:
            os.kill(os.getpid(), signal.SIGKILL)
    print("counted to", int(state.item()), "with", dist.get_world_size(), "in round", times, flush=True)
"""


@pytest.fixture
def job(tmp_path):
    (tmp_path / "job.py").write_text(PROGRAM)

    class Job:
        folder = tmp_path

        @staticmethod
        def start(*arguments, **env):
            env = os.environ | {"PYTHONPATH": HOME} | env
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
            return subprocess.Popen([*LAUNCH, *arguments], cwd=tmp_path, env=env, **pipes)

        @staticmethod
        def run(*arguments, **env):
            process = Job.start(*arguments, **env)
            out, err = process.communicate(timeout=60)
            return process.returncode, out, err

        @staticmethod
        def pids(count):
            end = time.monotonic() + 20
            while len(found := list(tmp_path.glob("pid*-*"))) < count or not all(f.read_text() for f in found):
                assert time.monotonic() < end, "the processes have not started"
                time.sleep(0.02)
            return [int(f.read_text()) for f in found]

    return Job


def gone(pids, limit=5.0):
    """Have all processes ended within a time?"""
    end = time.monotonic() + limit
    while any(os.path.exists(f"/proc/{pid}/exe") and "Z" != state(pid) for pid in pids):
        if time.monotonic() > end:
            return False
        time.sleep(0.02)
    return True


def state(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return "Z"


def test_a_killed_process_is_named_with_its_last_lines(job):
    code, out, err = job.run("--nproc_per_node", "3", "job.py", "killed")
    assert code == 128 + signal.SIGKILL
    assert "rank 1" in err and "signal 9" in err and "the last words of rank 1" in err
    # The others were told, and did not hang.
    assert "rank 1" in (job.folder / "log" / "workerlog.2").read_text()
    assert gone(job.pids(3))


def test_the_one_that_failed_first_is_named(job):
    code, out, err = job.run("--nproc_per_node", "2", "--log_dir", "logs", "job.py", "raises")
    assert code == 1 and "launch: rank 1" in err and "KeyError: 'mine'" in err


def test_ctrl_c_ends_all_in_time(job):
    process = job.start("--nproc_per_node", "2", "job.py", "sleep")
    pids = job.pids(2)
    since = time.monotonic()
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=20)
    assert process.returncode == 130 and time.monotonic() - since < 5 and gone(pids, 1)


def test_a_killed_launcher_leaves_no_orphans(job):
    process = job.start("--nproc_per_node", "2", "job.py", "sleep")
    pids = job.pids(2)
    process.kill()
    process.communicate()
    assert gone(pids)


def test_what_is_wrong_with_a_command_line_is_told(job):
    for arguments, said in (
        (["--nproc_per_node", "x", "job.py"], "--nproc_per_node takes a number"),
        (["--no_such", "1", "job.py"], "no option --no_such"),
        (["--nnodes", "2", "job.py"], "--master"),
        ([], "no program"),
        (["--nnodes", "3:2", "job.py"], "MIN:MAX"),
    ):
        code, out, err = job.run(*arguments)
        assert code == 2 and said in err, err
    code, out, err = job.run("--help")
    assert code == 0 and "--nproc_per_node" in out


def test_variables_of_other_launchers(job):
    def start(rank, port):
        env = {"RANK": str(rank), "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(port)}
        code = "import sampan, sampan.distributed as d; d.init_parallel_env(); x = sampan.ones([1]); d.all_reduce(x); "
        code += "print(d.get_rank(), x.item(), d.ParallelEnv()._launcher)"
        env = os.environ | {"PYTHONPATH": HOME} | env
        return subprocess.Popen([sys.executable, "-c", code], env=env, stdout=subprocess.PIPE, text=True)

    port = free_port()
    said = [process.communicate(timeout=60)[0].strip() for process in [start(rank, port) for rank in range(2)]]
    assert said == ["0 2.0 torchrun", "1 2.0 torchrun"]


def wait_for(condition, seconds=60):
    """Waits for something to come true."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def node(job, name, *arguments, **env):
    return job.start("--log_dir", name, *arguments, "job.py", "steps", **env)


def test_a_failed_round_goes_on_from_the_last_checkpoint(job):
    code, out, err = job.run("--nproc_per_node", "2", "--max_restart", "2", "job.py", "steps")
    assert code == 0, out + err
    assert "counted to 10 with 2 in round 2" in out and err.count("starting again") == 2
    code, out, err = job.run("--nproc_per_node", "2", "--max_restart", "0", "job.py", "killed")
    assert code == 137 and "starting again" not in err


TRAINING = """
import os, sys, time
import numpy as np
import sampan
import sampan.distributed as dist
from sampan import nn

dist.init_parallel_env()
rank, size = dist.get_rank(), dist.get_world_size()
folder = sys.argv[1]
os.makedirs(folder, exist_ok=True)
sampan.seed(1)
net = sampan.DataParallel(nn.Sequential(nn.Linear(8, 16), nn.Tanh(), nn.Linear(16, 1)))
adam = sampan.optimizer.Adam(0.01, parameters=net.parameters())
step = 0
if os.path.exists(f"{folder}/last"):
    step = int(open(f"{folder}/last").read())
    net.set_state_dict(sampan.load(f"{folder}/{step}.pdparams"))
    adam.set_state_dict(sampan.load(f"{folder}/{step}.pdopt"))
dist.barrier()
while step < 60:
    rng = np.random.RandomState(100 * step + rank)
    x = sampan.to_tensor(rng.rand(16, 8).astype("float32"))
    nn.functional.mse_loss(net(x), x.sum(1, keepdim=True)).backward()
    adam.step()
    adam.clear_grad()
    step += 1
    if rank == 0 and step % 2 == 0:
        sampan.save(net.state_dict(), f"{folder}/{step}.pdparams")
        sampan.save(adam.state_dict(), f"{folder}/{step}.pdopt")
        open(f"{folder}/new", "w").write(str(step))
        os.replace(f"{folder}/new", f"{folder}/last")
    # Waits, the first time, for somebody to kill one of the two.
    place = f"{folder}/killed at {step}"
    if str(step) in sys.argv[2:] and not os.path.exists(place):
        dist.barrier()
        if rank == 0:
            open(place, "w").close()
        time.sleep(60)
    print(step, os.getpid(), flush=True)
dist.barrier()
"""


def test_random_kills_leave_the_weights_as_they_would_be(job):
    (job.folder / "train.py").write_text(TRAINING)
    code, out, err = job.run("--nproc_per_node", "2", "train.py", "quiet")
    assert code == 0, out + err
    chance = random.Random(3)
    steps = sorted(chance.sample(range(1, 60), 5))
    process = job.start("--nproc_per_node", "2", "--max_restart", "5", "train.py", "disturbed", *map(str, steps))
    for step in steps:
        place = job.folder / "disturbed" / f"killed at {step}"
        wait_for(lambda: place.exists() or process.poll() is not None)  # noqa: B023
        pids = pathlib.Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(chance.choice(pids)), signal.SIGKILL)
    out, err = process.communicate()
    assert process.returncode == 0 and err.count("starting again") == 5, out + err
    quiet, disturbed = (sampan.load(str(job.folder / name / "60.pdparams")) for name in ("quiet", "disturbed"))
    for name, value in quiet.items():
        assert (value.numpy() == disturbed[name].numpy()).all(), name


def test_two_machines_meet(job):
    master = f"127.0.0.1:{free_port()}"
    common = ["--nnodes", "2", "--nproc_per_node", "1", "--master", master, "--max_restart", "2"]
    nodes = [node(job, f"node{i}", *common, SAMPAN_SECRET="word", SAMPAN_BACKEND="tcp") for i in range(2)]
    for process in nodes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, out + err
        assert "rank" in out and "of 2 by TCP" in out and "counted to 10 with 2 in round 2" in out, out + err


def test_a_machine_without_the_secret_is_refused(job):
    master = f"127.0.0.1:{free_port()}"
    common = ["--nnodes", "2", "--master", master, "--timeout", "3"]
    keeper = node(job, "node0", *common, SAMPAN_SECRET="word")
    time.sleep(0.5)
    stranger = node(job, "node1", *common, SAMPAN_SECRET="guess")
    assert "different secrets" in stranger.communicate(timeout=30)[1] and stranger.returncode == 2
    assert "1 of 2 machines" in keeper.communicate(timeout=30)[1] and keeper.returncode == 2


def test_machines_come_and_go(job):
    master = f"127.0.0.1:{free_port()}"
    common = ["--nnodes", "1:2", "--master", master, "--elastic_timeout", "0.3", "--max_restart", "9"]
    env = {"SAMPAN_SECRET": "word", "PAUSE": "0.3", "KILLS": "0"}
    log = job.folder / "node0" / "workerlog.0"

    def until(text):
        end = time.monotonic() + 30
        while not log.exists() or text not in log.read_text():
            assert time.monotonic() < end, text
            time.sleep(0.02)

    keeper = node(job, "node0", *common, **env)
    until("rank 0 of 1")
    comer = node(job, "node1", *common, **env)
    until("rank 0 of 2")
    comer.kill()
    comer.communicate()
    out, err = keeper.communicate(timeout=60)
    assert keeper.returncode == 0, out + err
    assert "has come; starting again" in err and "lost the machine" in err, err
    assert "counted to 10 with 1" in out
