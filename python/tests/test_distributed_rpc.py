"""Calls of functions in other processes: values travel as data, and only functions of the program are called."""

import os
import pathlib
import socket
import subprocess
import sys

import pytest

import sampan
from sampan.distributed import rpc

HOME = str(pathlib.Path(sampan.__file__).parents[1])

PROGRAM = """
import os, sys, threading
import numpy as np
import sampan
from sampan.distributed import rpc
import beside

def add(a, b, scale=1):
    return (a + b) * scale

def whoami():
    return rpc.get_current_worker_info().name

def fail(text):
    raise ValueError(text)

def relay(to, value):
    return rpc.rpc_sync(to, add, args=(value, 1))

gate = threading.Event()

def open_gate():
    gate.set()
    return True

def wait_for_gate():
    return gate.wait(60)

over = threading.Event()

def wait_until_over():
    return over.wait(60)

def meet(rank):
    rpc.init_rpc(f"worker{rank}", *told)
    other = f"worker{1 - rank}"
    assert rpc.get_worker_info(other).rank == 1 - rank and len(rpc.get_all_worker_infos()) == 2
    assert rpc.rpc_sync(other, add, args=(2, 3), kwargs={"scale": 10}) == 50
    assert rpc.rpc_sync(other, whoami) == other and rpc.rpc_sync(f"worker{rank}", whoami) == f"worker{rank}"
    # Tensors, and what holds them.
    x = sampan.arange(6).reshape([2, 3])
    assert (rpc.rpc_sync(other, add, args=(x, x)).numpy() == 2 * x.numpy()).all()
    found = rpc.rpc_sync(other, beside.echo, args=({"a": [1, 2.5, None, "t", b"b", (True, x)]},))
    assert found["a"][:5] == [1, 2.5, None, "t", b"b"] and (found["a"][5][1].numpy() == x.numpy()).all(), found
    # Many at a time, one of them through the other and back.
    begun = [rpc.rpc_async(other, add, args=(i, i)) for i in range(20)]
    assert rpc.rpc_sync(other, relay, args=(f"worker{rank}", 5)) == 6
    assert [call.wait() for call in begun] == [2 * i for i in range(20)]
    # One that waits does not keep others waiting.
    waiting = rpc.rpc_async(other, wait_for_gate)
    assert rpc.rpc_sync(other, open_gate) and waiting.wait()
    for what, args, told_why in (
        (fail, ("no luck",), "ValueError: no luck"),
        (os.system, ("touch owned",), "not part of this program"),
        (np.save, ("owned", 1), "not part of this program"),
        (sampan.save, ({}, "owned"), "not part of this program"),
        (beside.system, ("touch owned",), "not part of this program"),
    ):
        try:
            rpc.rpc_sync(other, what, args=args)
            raise AssertionError(f"{what} was called")
        except RuntimeError as error:
            assert told_why in str(error), error
    for what in (lambda: 1, "add".upper, meet.__call__):
        try:
            rpc.rpc_sync(other, what)
            raise AssertionError(f"{what} was called")
        except (ValueError, RuntimeError):
            pass
    try:
        rpc.rpc_sync(other, add, args=(object(), 1))
        raise AssertionError("an object of any class was sent")
    except (TypeError, ValueError):
        pass
    try:
        rpc.rpc_sync("nobody", add, args=(1, 2))
        raise AssertionError("nobody answered")
    except KeyError as error:
        assert "worker0" in str(error), error
    try:
        rpc.rpc_sync(f"worker{rank}", wait_until_over, timeout=0.2)
        raise AssertionError("it did not wait")
    except RuntimeError as error:
        assert "has not answered" in str(error), error
    # Whoever leaves waits for what it was asked.
    over.set()
    rpc.shutdown()
    gate.clear()
    over.clear()

rank = int(os.environ["PADDLE_TRAINER_ID"])
told = (rank, 2, sys.argv[1]) if len(sys.argv) > 1 else ()
meet(rank)
meet(rank)
print("DONE")
"""

BESIDE = """
from os import system

def echo(value):
    return value
"""


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "job.py").write_text(PROGRAM)
    (tmp_path / "beside.py").write_text(BESIDE)
    return tmp_path


def test_processes_call_each_other(folder):
    command = [sys.executable, "-m", "sampan.distributed.launch", "--nproc_per_node", "2", "job.py"]
    env = os.environ | {"PYTHONPATH": HOME}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=200)
    logs = "".join(path.read_text() for path in (folder / "log").glob("workerlog.*"))
    assert done.returncode == 0, done.stdout + done.stderr + logs
    assert logs.count("DONE") == 2 and not (folder / "owned").exists() and not (folder / "owned.npy").exists()


def test_processes_that_meet_by_an_address_need_the_same_secret(folder):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        master = f"127.0.0.1:{free.getsockname()[1]}"

    def start(rank, secret, patience):
        env = os.environ | {"PYTHONPATH": HOME, "PADDLE_TRAINER_ID": str(rank), "PADDLE_TRAINERS_NUM": "2"}
        env |= {"SAMPAN_SECRET": secret, "SAMPAN_PATIENCE": patience}
        command = [sys.executable, "job.py", master]
        return subprocess.Popen(command, cwd=folder, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)

    first = start(0, "sesame", "120")
    stranger = start(1, "open", "60").communicate(timeout=200)[0]
    assert "DONE" not in stranger and "different secrets" in stranger, stranger
    second = start(1, "sesame", "120")
    for process in (first, second):
        text = process.communicate(timeout=200)[0]
        assert process.returncode == 0 and "DONE" in text, text


def test_between_machines_a_secret_is_needed(monkeypatch):
    monkeypatch.delenv("SAMPAN_SECRET", raising=False)
    monkeypatch.delenv("SAMPAN_SECRET_FILE", raising=False)
    with pytest.raises(RuntimeError, match="need a secret"):
        rpc.init_rpc("worker", 0, 1, "192.0.2.1:6170")
    with pytest.raises(RuntimeError, match="init_rpc"):
        rpc.rpc_sync("worker", print)
