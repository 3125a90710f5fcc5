"""Two machines, for which two network namespaces stand; without the right to make them, these tests are skipped."""

import os
import pathlib
import shutil
import socket
import subprocess
import sys
import time

import pytest

import sampan

HOME = str(pathlib.Path(sampan.__file__).parents[1])

PROGRAM = """
import sys
import sampan
import sampan.distributed as dist

group = dist.init_parallel_env()
x = sampan.ones([1000])
dist.all_reduce(x)
print("rank", dist.get_rank(), "of", dist.get_world_size(), group.backend, "sum", x[0].item(), flush=True)
while sys.argv[1] == "on":
    dist.all_reduce(x, op=dist.ReduceOp.AVG)
"""


def ip(*arguments):
    return subprocess.run(["ip", *arguments], capture_output=True, text=True)


@pytest.fixture
def machines(tmp_path):
    names = [f"sampan{os.getpid()}{side}" for side in "ab"]
    allowed = shutil.which("ip") and os.geteuid() == 0 and ip("netns", "add", names[0]).returncode == 0
    if not allowed:
        pytest.skip("network namespaces need root and the command ip")
    ip("netns", "add", names[1])
    ip("link", "add", "va", "netns", names[0], "type", "veth", "peer", "name", "vb", "netns", names[1])
    for name, link, host in zip(names, ("va", "vb"), ("10.77.13.1", "10.77.13.2")):
        ip("-n", name, "addr", "add", f"{host}/24", "dev", link)
        for device in (link, "lo"):
            ip("-n", name, "link", "set", device, "up")
    (tmp_path / "job.py").write_text(PROGRAM)

    def start(which, what, **env):
        command = ["ip", "netns", "exec", names[which], sys.executable, "-m", "sampan.distributed.launch"]
        command += ["--nnodes", "2", "--nproc_per_node", "2", "--master", "10.77.13.1:6170", "--log_dir", f"log{which}"]
        # One kernel runs both, so processes could share memory, and would.
        env = os.environ | {"PYTHONPATH": HOME, "SAMPAN_SECRET": "word", "SAMPAN_BACKEND": "tcp"} | env
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        return subprocess.Popen([*command, "job.py", what], cwd=tmp_path, env=env, **pipes)

    start.names = names
    yield start
    for name in names:
        ip("netns", "del", name)


@pytest.fixture(params=["tcp", "gloo"])
def engine(request):
    if request.param == "gloo" and not has_gloo():
        pytest.skip("Gloo is not installed (libgloo-dev and a C++ compiler)")
    return request.param


def has_gloo():
    """Can processes meet by Gloo here?"""
    code = "import sampan.distributed as d; print(d.init_parallel_env().backend)"
    env = os.environ | {"PYTHONPATH": HOME, "SAMPAN_BACKEND": "gloo"}
    env |= {"PADDLE_TRAINERS_NUM": "2", "PADDLE_MASTER": f"127.0.0.1:{free_port()}"}
    start = lambda rank: subprocess.Popen(  # noqa: E731
        [sys.executable, "-c", code], env=env | {"PADDLE_TRAINER_ID": str(rank)}, stdout=subprocess.PIPE, text=True
    )
    return [p.communicate(timeout=60)[0].strip() for p in [start(0), start(1)]] == ["gloo", "gloo"]


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def test_two_machines_find_each_other(machines, engine):
    nodes = [machines(which, "once", SAMPAN_BACKEND=engine) for which in (1, 0)]
    for process in nodes:
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, out + err
        assert f"of 4 {engine} sum 4.0" in out, out + err


def test_a_cut_link_is_an_error_on_both_sides(machines, engine):
    nodes = [machines(which, "on", SAMPAN_TIMEOUT="2", SAMPAN_BACKEND=engine) for which in (0, 1)]
    assert all(f"of 4 {engine}" in node.stdout.readline() for node in nodes)
    ip("-n", machines.names[0], "link", "set", "va", "down")
    since = time.monotonic()
    said = {"tcp": "has not come within 2.0 s", "gloo": "Gloo's"}[engine]
    for process in nodes:
        out, err = process.communicate(timeout=60)
        assert process.returncode != 0 and said in err + out, out + err
    assert time.monotonic() - since < 15
