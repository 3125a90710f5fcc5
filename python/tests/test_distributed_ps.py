"""Parameter servers: workers that learn together what one process learns, and tables that outlive memory and servers."""

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time

import numpy as np
import pytest

import sampan
from sampan import _core
from sampan.distributed import fleet

HOME = str(pathlib.Path(sampan.__file__).parents[1])

# Wide and deep, on data of which a few ids say something.
NETWORK = """
import sys
import numpy as np
import sampan
from sampan import nn
from sampan.distributed.ps import SparseEmbedding

class WideDeep(nn.Layer):
    def __init__(self, served):
        super().__init__()
        # First, so that the same numbers are drawn with tables of either kind.
        mix = nn.Sequential(nn.Linear(12, 8), nn.ReLU(), nn.Linear(8, 1))
        def table(size):
            if served:
                return SparseEmbedding(size, init_range=0.0, rows_in_memory=10)
            made = nn.Embedding(60, size)
            made.weight.set_value(np.zeros([60, size], "float32"))
            return made
        self.wide, self.deep = table(1), table(4)
        self.mix = mix
    def forward(self, ids):
        return self.wide(ids).sum(1) + self.mix(self.deep(ids).flatten(1))

def batches(count, size=16):
    rng, hidden = np.random.RandomState(0), np.random.RandomState(1).randn(60)
    for _ in range(count):
        ids = rng.randint(0, 60, (size, 3))
        yield ids, (hidden[ids].sum(1, keepdims=True) > 0).astype("float32")

def network(served, kind, strategy=None):
    sampan.seed(7)
    net = WideDeep(served)
    make = {"sgd": sampan.optimizer.SGD, "adagrad": sampan.optimizer.Adagrad, "adam": sampan.optimizer.Adam}[kind]
    return net, make({"adam": 0.05, "adagrad": 0.3, "sgd": 0.6}[kind], parameters=net.parameters())

def train(net, opt, data, share=slice(None)):
    losses = []
    for ids, y in data:
        ids, y = sampan.to_tensor(ids[share]), sampan.to_tensor(y[share])
        loss = nn.functional.binary_cross_entropy_with_logits(net(ids), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        losses.append(loss.item())
    return losses
"""

JOB = (
    NETWORK
    + """
from sampan.distributed import fleet

mode, kind, steps, out = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
strategy = fleet.DistributedStrategy()
strategy.a_sync = mode != "sync"
if mode == "geo":
    strategy.a_sync_configs = {"k_steps": 4}
fleet.init(fleet.PaddleCloudRoleMaker(), strategy=strategy)
if fleet.is_server():
    fleet.init_server()
    fleet.run_server()
    sys.exit()
net, opt = network(True, kind)
net = fleet.distributed_model(net)
opt = fleet.distributed_optimizer(opt)
loaded = sys.argv[5] if len(sys.argv) > 5 else None
fleet.init_worker(dirname=loaded)
mine, workers = fleet.worker_index(), fleet.worker_num()
data = list(batches(steps))
losses = train(net, opt, data, slice(mine * 16 // workers, (mine + 1) * 16 // workers))
fleet.barrier_worker()
if fleet.is_first_worker():
    net.eval()
    with sampan.no_grad():
        rows = sampan.arange(60).unsqueeze(-1)
        found = {"wide": net.wide(rows).numpy(), "deep": net.deep(rows).numpy()}
    client = fleet.fleet._server.client
    found["rows"] = [*client.count("wide"), *client.count("deep")]
    fleet.save_persistables(dirname=out + "_tables")
    np.savez(out, losses=losses, **found, **{n: p.numpy() for n, p in net.named_parameters()})
fleet.barrier_worker()
fleet.stop_worker()
"""
)


def run(folder, servers, workers, *arguments):
    (folder / "job.py").write_text(JOB)
    launch = ["-m", "sampan.distributed.launch", "--server_num", str(servers), "--worker_num", str(workers)]
    env = os.environ | {"PYTHONPATH": HOME, "SAMPAN_TIMEOUT": "60"}
    command = [sys.executable, *launch, "job.py", *map(str, arguments)]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(np.load(folder / f"{arguments[3]}.npz"))


@pytest.fixture(scope="module")
def alone():
    space: dict = {"__name__": "alone"}
    exec(NETWORK, space)

    def train(kind, steps):
        net, opt = space["network"](False, kind)
        losses = space["train"](net, opt, space["batches"](steps))
        return losses, {name: p.numpy() for name, p in net.named_parameters()}

    return train


def test_workers_in_step_learn_what_one_process_learns(tmp_path, alone):
    first = run(tmp_path, 2, 2, "sync", "adagrad", 6, "first")
    # Saved by two servers, taken over by three, trained on.
    second = run(tmp_path, 3, 2, "sync", "adagrad", 6, "second", str(tmp_path / "first_tables"))
    _, expected = alone("adagrad", 6)
    np.testing.assert_allclose(first["wide"][:, 0], expected["wide.weight"], rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(first["deep"][:, 0], expected["deep.weight"], rtol=1e-5, atol=1e-6)
    for name in ("mix.0.weight", "mix.0.bias", "mix.2.weight"):
        np.testing.assert_allclose(first[name], expected[name], rtol=1e-5, atol=1e-6, err_msg=name)
    assert np.mean(second["losses"]) < np.mean(first["losses"])
    # Ten rows a server stay in memory, the others wait on disk.
    assert first["rows"].tolist() == [60, 20, 60, 20] and second["rows"].tolist() == [60, 30, 60, 30]


@pytest.mark.parametrize("mode, kind", [("async", "adam"), ("geo", "sgd")])
def test_workers_out_of_step_learn_as_well(tmp_path, alone, mode, kind):
    losses = run(tmp_path, 1, 2, mode, kind, 60, "out")["losses"]
    expected, _ = alone(kind, 60)
    assert np.mean(losses[-10:]) < np.mean(losses[:10]) - 0.08, losses
    assert abs(np.mean(losses[-10:]) - np.mean(expected[-10:])) < 0.15, (losses[-10:], expected[-10:])


SERVER = """
import sys
from sampan import _core
_core._ps_serve(sys.argv[1], 1, (0, 1), ".", 3.0)
"""


@pytest.fixture
def server(tmp_path, monkeypatch):
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{held.getsockname()[1]}"
    env = os.environ | {"PYTHONPATH": HOME, "SAMPAN_SECRET": "right"}
    process = subprocess.Popen([sys.executable, "-c", SERVER, address], cwd=tmp_path, env=env)
    monkeypatch.setenv("SAMPAN_SECRET", "right")
    _core.PsClient([address], 0, 20.0)  # it is there
    yield address
    process.send_signal(signal.SIGINT)
    assert process.wait(10) != 0


def table(client, dim=2, rule=("sgd", [0.0] * 4), limit=1000):
    client.create("t", dim, rule, 0.0, 0.5, 3, limit)


def test_tables(server):
    client = _core.PsClient([server], 0, 5.0)
    table(client)
    table(client)  # the same again
    with pytest.raises(ValueError, match="is another one"):
        table(client, dim=3)
    ids = sampan.to_tensor([5, 1 << 40, 5])
    rows = client.pull("t", 2, ids, 0)
    assert rows.shape == [3, 2] and (rows[0] == rows[2]).all() and (rows.abs() <= 0.5).all() and (rows != 0).any()
    grads = sampan.ones([2, 2])
    client.push("t", 2, ids[:2], grads, 0.1, "at_once")
    np.testing.assert_allclose(client.pull("t", 2, ids[:2], 0).numpy(), rows[:2].numpy() - 0.1, rtol=1e-6)
    client.push("t", 2, ids[:1], sampan.full([1, 2], 7.0), 0.0, "set")
    client.push("t", 2, ids[:1], sampan.full([1, 2], 1.0), 0.0, "added")
    assert client.pull("t", 2, ids[:1], 0).tolist() == [[8.0, 8.0]] and client.count("t") == (2, 2)
    with pytest.raises(ValueError, match="3 values for 1 rows"):
        client.push("t", 3, ids[:1], sampan.ones([1, 3]), 0.1, "at_once")
    with pytest.raises(ValueError, match="no id of a row"):
        client.pull("t", 2, sampan.to_tensor([-1]), 0)
    with pytest.raises(ValueError, match="there is no table"):
        client.pull("u", 2, ids, 0)
    with pytest.raises(ValueError, match="cannot step|no rule"):
        client.create("v", 2, ("lamb", [0.0] * 4), 0.0, 0.0, 0, 1)
    with pytest.raises(ValueError, match="letters, digits"):
        client.create("../v", 2, ("sgd", [0.0] * 4), 0.0, 0.0, 0, 1)
    # A round that others never come to ends at the timeout, and names them.
    with pytest.raises(RuntimeError, match=r"workers \[0\] did not push to table"):
        client.pull("t", 2, ids, 1)


def test_a_full_disk_loses_no_row(tmp_path, monkeypatch):
    monkeypatch.setenv("SAMPAN_SECRET", "right")
    with socket.create_server(("127.0.0.1", 0)) as held:
        address = f"127.0.0.1:{held.getsockname()[1]}"
    import resource

    # A file may have so many bytes: 1,000 rows of two numbers. More are an error as on a full disk.
    limit = lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (8000, 8000))  # noqa: E731
    env = os.environ | {"PYTHONPATH": HOME}
    process = subprocess.Popen([sys.executable, "-c", SERVER, address], cwd=tmp_path, env=env, preexec_fn=limit)
    try:
        client = _core.PsClient([address], 0, 20.0)
        table(client, limit=10)
        ids = sampan.arange(1010)
        values = sampan.arange(2020).astype("float32").reshape([1010, 2])
        client.push("t", 2, ids, values, 0.0, "set")
        for new in range(5000, 5003):
            with pytest.raises(RuntimeError, match="written to the disk"):
                client.pull("t", 2, sampan.to_tensor([new]), 0)
        # What was there is there, and changes places as before.
        for _ in range(2):
            assert (client.pull("t", 2, ids, 0) == values).all().item()
        assert client.count("t") == (1010, 10)
        # Nor does a table that cannot be saved leave half a file.
        with pytest.raises((RuntimeError, ValueError), match="[Ff]ile too large"):
            client.save(str(tmp_path / "saved"))
        assert not [f for f in tmp_path.rglob("*") if f.suffix == ".new"]
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(10)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGSTOP])
def test_a_lost_server_is_told_in_time(tmp_path, monkeypatch, how):
    monkeypatch.setenv("SAMPAN_SECRET", "right")
    with socket.create_server(("127.0.0.1", 0)) as held:
        address = f"127.0.0.1:{held.getsockname()[1]}"
    env = os.environ | {"PYTHONPATH": HOME}
    process = subprocess.Popen([sys.executable, "-c", SERVER, address], cwd=tmp_path, env=env)
    try:
        _core.PsClient([address], 0, 20.0)  # it is there
        client = _core.PsClient([address], 0, 2.0)
        table(client)
        process.send_signal(how)
        since = time.monotonic()
        with pytest.raises(RuntimeError, match=address):
            client.pull("t", 2, sampan.to_tensor([1]), 0)
        assert time.monotonic() - since < 10
    finally:
        process.kill()
        process.wait()


def test_strangers(server, monkeypatch):
    host, port = server.split(":")
    for garbage in (
        b"GET / HTTP/1.1\r\n\r\n",
        b"\xff" * 4096,
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + b"\xff\xff\xff\x00" * 9,
    ):
        with socket.create_connection((host, int(port))) as link:
            link.sendall(garbage)
    monkeypatch.setenv("SAMPAN_SECRET", "wrong")
    with pytest.raises(RuntimeError, match="secret is another one"):
        _core.PsClient([server], 0, 2.0)
    monkeypatch.setenv("SAMPAN_SECRET", "right")
    client = _core.PsClient([server], 0, 5.0)
    table(client)  # it still serves those who know
    with pytest.raises(RuntimeError, match="no parameter server came"):
        _core.PsClient(["127.0.0.1:9"], 0, 0.2)


def test_rules_are_those_of_the_optimizers(server):
    client = _core.PsClient([server], 0, 5.0)
    made = {
        "sgd": (("sgd", [0.0] * 4), lambda p: sampan.optimizer.SGD(0.1, p)),
        "momentum": (("momentum", [0.9, 1.0, 0.0, 0.0]), lambda p: sampan.optimizer.Momentum(0.1, 0.9, p, True)),
        "adagrad": (
            ("adagrad", [1e-6, 0.1, 0.0, 0.0]),
            lambda p: sampan.optimizer.Adagrad(0.1, 1e-6, p, initial_accumulator_value=0.1),
        ),
        "adam": (("adam", [0.9, 0.99, 1e-8, 0.0]), lambda p: sampan.optimizer.Adam(0.1, 0.9, 0.99, parameters=p)),
        "adamw": (
            ("adam", [0.9, 0.99, 1e-8, 0.02]),
            lambda p: sampan.optimizer.AdamW(0.1, 0.9, 0.99, parameters=p, weight_decay=0.02),
        ),
    }
    ids = sampan.to_tensor([3])
    for name, (rule, make) in made.items():
        client.create(name, 4, rule, 0.0, 0.0, 0, 10)
        parameter = sampan.create_parameter([4], "float32")
        start = np.array([0.5, -1.0, 2.0, 0.0], "float32")
        parameter.set_value(start)
        client.push(name, 4, ids, sampan.to_tensor(start[None]), 0.0, "set")
        optimizer = make([parameter])
        for step in range(3):
            grad = np.array([1.0, -0.5, 0.1, step], "float32")
            parameter.grad = sampan.to_tensor(grad)
            optimizer.step()
            client.push(name, 4, ids, sampan.to_tensor(grad[None]), 0.1, "at_once")
        np.testing.assert_allclose(
            client.pull(name, 4, ids, 0).numpy()[0], parameter.numpy(), rtol=1e-5, atol=1e-6, err_msg=name
        )


def test_the_example(tmp_path):
    program = pathlib.Path(__file__).parents[1] / "examples" / "parameter_server.py"
    env = os.environ | {"PYTHONPATH": HOME, "SAMPAN_TIMEOUT": "60"}
    done = subprocess.run(
        [sys.executable, str(program)], cwd=tmp_path, env=env, capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(line.split("loss ")[1].split()[0]) for line in done.stdout.splitlines() if "loss" in line]
    assert losses[-1] < losses[0] - 0.1 and "with 2 workers and 2 servers, sync" in done.stdout, done.stdout


def test_who_one_is(monkeypatch):
    for name in ("TRAINING_ROLE", "PADDLE_PSERVERS_IP_PORT_LIST"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ValueError, match="PADDLE_PSERVERS_IP_PORT_LIST is not set"):
        fleet.init()
    told = {
        "PADDLE_PSERVERS_IP_PORT_LIST": "127.0.0.1:6001,127.0.0.1:6002",
        "PADDLE_TRAINERS_NUM": "2",
        "TRAINING_ROLE": "PSERVER",
    }
    for name, value in {**told, "POD_IP": "127.0.0.1", "PADDLE_PORT": "6002", "PADDLE_TRAINER_ID": "1"}.items():
        monkeypatch.setenv(name, value)
    fleet.init(fleet.PaddleCloudRoleMaker())
    assert fleet.is_server() and not fleet.is_worker() and fleet.server_index() == 1 and fleet.server_num() == 2
    assert fleet.worker_num() == 2 and fleet.server_endpoints(to_string=True) == told["PADDLE_PSERVERS_IP_PORT_LIST"]
    role = fleet.UserDefinedRoleMaker(current_id=1, role=fleet.Role.WORKER, worker_num=3, server_endpoints=["a:1"])
    fleet.init(role)
    assert fleet.is_worker() and fleet.worker_index() == 1 and fleet.worker_num() == 3 and not fleet.is_first_worker()
    net = sampan.nn.Linear(2, 1)
    with pytest.raises(ValueError, match="servers cannot step as Lamb"):
        fleet.distributed_optimizer(sampan.optimizer.Lamb(0.1, parameters=net.parameters()))
    with pytest.raises(RuntimeError, match="init_worker"):
        fleet.distributed_optimizer(sampan.optimizer.SGD(0.1, parameters=net.parameters())).step()
    for name in (*told, "PADDLE_TRAINER_ID"):
        monkeypatch.delenv(name)
    fleet.init(is_collective=True)
    with pytest.raises(RuntimeError, match="no parameter servers"):
        fleet.run_server()
