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


WAITING = """
import os
import sampan
import sampan.distributed as dist

group = dist.init_parallel_env()
print("met by", group.backend, flush=True)
if dist.get_rank() == 0:
    dist.barrier()
else:
    import time
    time.sleep(60)
"""


@pytest.mark.parametrize("engine", ["shared_memory", "tcp", "gloo", "nobody comes"])
def test_ctrl_c_is_heard_by_one_who_waits_for_others(tmp_path, engine):
    (tmp_path / "job.py").write_text(WAITING)
    env = os.environ | {"PYTHONPATH": HOME, "WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    env |= {"SAMPAN_BACKEND": "auto" if engine == "nobody comes" else engine}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    start = lambda rank: subprocess.Popen(  # noqa: E731
        [sys.executable, "job.py"], cwd=tmp_path, env=env | {"RANK": str(rank)}, **pipes
    )
    waiting = start(0)
    other = None
    if engine != "nobody comes":
        other = start(1)
        waiting.stdout.readline()
    time.sleep(1)
    since = time.monotonic()
    waiting.send_signal(signal.SIGINT)
    out, err = waiting.communicate(timeout=20)
    if other is not None:
        other.kill()
        other.communicate()
    assert "KeyboardInterrupt" in err and time.monotonic() - since < 5, out + err


def test_a_full_disk_stops_a_log_and_not_the_program(job):
    (job.folder / "loud.py").write_text("for i in range(20000):\n    print('a line of a loud program', i)\nprint('the end')\n")
    import resource

    # A file may have so many bytes; more are an error as on a full disk.
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))  # noqa: E731
    command = [*LAUNCH, "--nproc_per_node", "2", "loud.py"]
    env = os.environ | {"PYTHONPATH": HOME}
    done = subprocess.run(command, cwd=job.folder, env=env, capture_output=True, text=True, preexec_fn=limit, timeout=60)
    assert done.returncode == 0 and done.stdout.endswith("the end\n"), done.stderr
    assert done.stderr.count("cannot be written") == 2 and "workerlog.1" in done.stderr, done.stderr
    assert (job.folder / "log" / "workerlog.1").stat().st_size == 100_000


def test_two_jobs_on_one_machine_at_once(job):
    both = [job.start("--nproc_per_node", "2", "--log_dir", f"log{i}", "job.py", "once") for i in range(2)]
    for process in both:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0 and "rank 0 of 2 by SHARED_MEMORY" in out, out + err


def test_a_port_that_somebody_else_has_is_told(job):
    with socket.create_server(("127.0.0.1", 0)) as other:
        # Somebody who speaks first, and somebody who waits to be spoken to.
        master = f"127.0.0.1:{other.getsockname()[1]}"
        process = job.start("--nnodes", "2", "--master", master, "--timeout", "30", "job.py", "once")
        other.accept()[0].sendall(b"220 mail.example.org ESMTP, at your service\r\n")
        since = time.monotonic()
        out, err = process.communicate(timeout=60)
        assert process.returncode == 2 and "something else answers" in err and "--master" in err, err
        assert time.monotonic() - since < 10
        code, out, err = job.run("--nnodes", "2", "--master", master, "--timeout", "2", "job.py", "once")
        assert code == 2 and "cannot be reached" in err, err


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
    # What the environment says is read by whoever needs it.
    wrong = {"SAMPAN_BACKEND": "none such", "SAMPAN_TIMEOUT": "never", "SAMPAN_PATIENCE": "1e300"}
    code, out, err = job.run("--help", **wrong)
    assert code == 0 and "--nproc_per_node" in out, err
    (job.folder / "nothing.py").write_text("")
    for arguments, said in ((["nothing.py"], "SAMPAN_PATIENCE should be"), (["--timeout", "1e300", "nothing.py"], "--timeout takes")):
        code, out, err = job.run(*arguments, **wrong)
        assert code == 2 and said in err and "1e9" in err, err
    assert job.run("--timeout", "5", "nothing.py", **wrong)[0] == 0


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


def test_processes_that_only_wait_for_each_other():
    code = "import sys, sampan.distributed as d; d.gloo_init_parallel_env(int(sys.argv[1]), 2, sys.argv[2]); "
    code += "d.gloo_barrier(); print(d.get_rank(), 'of', d.get_world_size()); d.gloo_release()"
    place, env = f"127.0.0.1:{free_port()}", os.environ | {"PYTHONPATH": HOME}
    both = [
        subprocess.Popen([sys.executable, "-c", code, str(rank), place], env=env, stdout=subprocess.PIPE, text=True)
        for rank in range(2)
    ]
    assert [process.communicate(timeout=60)[0] for process in both] == ["0 of 2\n", "1 of 2\n"]


def test_a_process_that_counts_otherwise_is_told():
    code = "import sampan.distributed as d; d.init_parallel_env()"
    env = {"PYTHONPATH": HOME, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port()), "SAMPAN_PATIENCE": "4"}

    def start(rank, size):
        more = os.environ | env | {"RANK": str(rank), "WORLD_SIZE": str(size)}
        return subprocess.Popen([sys.executable, "-c", code], env=more, stderr=subprocess.PIPE, text=True)

    first, second = start(0, 3), start(1, 2)
    said = first.communicate(timeout=60)[1] + second.communicate(timeout=60)[1]
    assert "processes, another one that there are" in said and "(Unavailable)" in said, said


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


def test_strangers_where_machines_meet_harm_nobody(job):
    port = free_port()
    common = ["--nnodes", "2", "--nproc_per_node", "1", "--master", f"127.0.0.1:{port}"]
    env = {"SAMPAN_SECRET": "word", "SAMPAN_BACKEND": "tcp", "KILLS": "0"}
    keeper = node(job, "node0", *common, **env)
    strangers = []
    for bytes in (b"\xff" * 4096, b"GET / HTTP/1.1\r\n\r\n", b"sampan1\n" + b"\xff" * 84, b"") * 5:
        wait_for(lambda: connected(port, strangers), 20)
        try:
            strangers[-1].sendall(bytes)
        except OSError:
            pass  # refused already
    nodes = [keeper, node(job, "node1", *common, **env)]
    for process in nodes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0 and "counted to 10 with 2" in out, out + err
    for stranger in strangers:
        stranger.close()


def connected(port, links):
    try:
        links.append(socket.create_connection(("127.0.0.1", port)))
    except OSError:
        return False
    return True


def test_who_waits_for_more_than_enough_says_how_long(job):
    (job.folder / "nothing.py").write_text("")
    common = ["--nnodes", "1:2", "--master", f"127.0.0.1:{free_port()}", "--elastic_timeout", "3.3"]
    code, out, err = job.run(*common, "nothing.py", SAMPAN_SECRET="word")
    assert code == 0 and "1 of 1 machines have come, up to 2 may" in err and "for 0 s more (--elastic_timeout)" in err, err


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
