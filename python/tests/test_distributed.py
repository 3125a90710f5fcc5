"""Several processes that train together, and programs that ask for them and run alone."""

import json
import os
import pathlib
import re
import socket
import subprocess
import sys

import numpy as np
import pytest

import sampan
import sampan.distributed as dist
from sampan import nn

HOME = str(pathlib.Path(sampan.__file__).parents[1])

# Two processes learn from halves of the data what one learns from all of it.
PROGRAM = """
import sys
import numpy as np
import sampan
import sampan.distributed as dist
from sampan import nn

def collectives():
    rank, size = dist.get_rank(), dist.get_world_size()
    x = sampan.to_tensor([1.0, 2.0]) * (rank + 1)
    dist.all_reduce(x)
    assert x.tolist() == [3.0, 6.0], x
    dist.all_reduce(x, op=dist.ReduceOp.MAX)
    found = []
    dist.all_gather(found, sampan.to_tensor([rank]))
    assert [t.item() for t in found] == [0, 1]
    y = sampan.to_tensor([float(rank)])
    dist.broadcast(y, src=1)
    assert y.item() == 1.0
    half = sampan.to_tensor([float(rank + 1)], dtype="bfloat16")
    dist.all_reduce(half, op=dist.ReduceOp.AVG)
    assert half.item() == 1.5
    part = sampan.zeros([1])
    dist.scatter(part, [sampan.to_tensor([5.0]), sampan.to_tensor([6.0])] if rank == 0 else None, src=0)
    assert part.item() == 5.0 + rank
    dist.barrier()

def train(folder):
    dist.init_parallel_env()
    collectives()
    rank = dist.get_rank()
    sampan.seed(rank)  # rank 0 decides
    net = sampan.DataParallel(nn.Linear(3, 1))
    sgd = sampan.optimizer.SGD(0.1, parameters=net.parameters())
    rng = np.random.RandomState(0)
    for _ in range(5):
        x, y = rng.rand(8, 3).astype("float32"), rng.rand(8, 1).astype("float32")
        x, y = x[rank * 4 : rank * 4 + 4], y[rank * 4 : rank * 4 + 4]
        nn.functional.mse_loss(net(sampan.to_tensor(x)), sampan.to_tensor(y)).backward()
        sgd.step()
        sgd.clear_grad()
    np.save(f"{folder}/weight{rank}.npy", net.state_dict()["weight"].numpy())
    print("rank", rank, "has learnt")

def fail():
    dist.init_parallel_env()
    if dist.get_rank() == 1:
        raise KeyError("mine")
    dist.barrier()

def disagree():
    dist.init_parallel_env()
    dist.all_reduce(sampan.ones([dist.get_rank() + 1]))

if __name__ == "__main__":
    if sys.argv[1] == "launched":
        train(".")
    else:
        dist.spawn(globals()[sys.argv[1]], args=tuple(sys.argv[2:]), nprocs=2)
"""


def run(folder, *command, **options):
    (folder / "job.py").write_text(PROGRAM)
    env = os.environ | {"PYTHONPATH": HOME}
    return subprocess.run([sys.executable, *command], cwd=folder, env=env, capture_output=True, text=True, timeout=200)


def expected():
    sampan.seed(0)
    net = nn.Linear(3, 1)
    sgd = sampan.optimizer.SGD(0.1, parameters=net.parameters())
    rng = np.random.RandomState(0)
    for _ in range(5):
        x, y = rng.rand(8, 3).astype("float32"), rng.rand(8, 1).astype("float32")
        nn.functional.mse_loss(net(sampan.to_tensor(x)), sampan.to_tensor(y)).backward()
        sgd.step()
        sgd.clear_grad()
    return net.weight.numpy()


def check(folder):
    weights = [np.load(folder / f"weight{rank}.npy") for rank in range(2)]
    assert (weights[0] == weights[1]).all()
    np.testing.assert_allclose(weights[0], expected(), rtol=1e-5)


def test_spawned_processes_learn_what_one_learns(tmp_path):
    done = run(tmp_path, "job.py", "train", str(tmp_path))
    assert done.returncode == 0, done.stderr
    check(tmp_path)


def test_launched_processes_learn_what_one_learns(tmp_path):
    done = run(
        tmp_path, "-m", "sampan.distributed.launch", "--nproc_per_node", "2", "--log_dir", "logs", "job.py", "launched"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "rank 0 has learnt" in done.stdout
    assert "rank 1 has learnt" in (tmp_path / "logs" / "workerlog.1").read_text()
    check(tmp_path)


def test_a_failure_ends_all_and_is_told(tmp_path):
    done = run(tmp_path, "job.py", "fail")
    assert done.returncode == 1 and "KeyError: 'mine'" in done.stderr and "process 1" in done.stderr
    launched = run(tmp_path, "-m", "sampan.distributed.launch", "--gpus", "0,1", "job.py", "no_such")
    assert launched.returncode == 1 and "workerlog" in launched.stderr


def test_processes_that_disagree_are_told(tmp_path):
    done = run(tmp_path, "job.py", "disagree")
    assert done.returncode == 1 and "the same in the same order" in done.stderr


def test_alone():
    assert (dist.get_rank(), dist.get_world_size(), dist.ParallelEnv().nranks) == (0, 1, 1)
    dist.init_parallel_env()
    assert dist.is_initialized()
    found = []
    x = sampan.ones([2])
    dist.all_gather(found, x)
    dist.all_reduce(x)
    dist.barrier()
    assert len(found) == 1 and x.numpy().tolist() == [1.0, 1.0]


def test_a_parallel_network_is_the_network():
    net = nn.Linear(2, 1)
    parallel = sampan.DataParallel(net)
    assert list(parallel.state_dict()) == ["weight", "bias"] and len(parallel.parameters()) == 2
    x = sampan.ones([3, 2])
    assert (parallel(x).numpy() == net(x).numpy()).all()
    with parallel.no_sync():
        parallel(x).mean().backward()
    assert net.weight.grad is not None
    parallel.set_state_dict({"weight": sampan.zeros([2, 1]), "bias": sampan.ones([1])})
    assert net(x).numpy().tolist() == [[1.0]] * 3


def test_who_takes_part(monkeypatch):
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "4")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "2")
    assert (dist.get_rank(), dist.get_world_size()) == (2, 4)
    dist.destroy_process_group()
    assert not dist.is_initialized()
    with pytest.raises(RuntimeError, match="init_parallel_env"):
        dist.barrier()
    with pytest.raises(RuntimeError, match="sampan.distributed.launch"):
        dist.init_parallel_env()


MODEL = """
import sys
import numpy as np
import sampan
from sampan import nn
import sampan.distributed as dist

class Numbers(sampan.io.Dataset):
    def __len__(self):
        return 9
    def __getitem__(self, i):
        return np.array([i, 1], "float32"), np.array([i % 2], "int64")

def main(folder):
    sampan.seed(3)
    model = sampan.Model(nn.Linear(2, 2))
    sgd = sampan.optimizer.SGD(0.01, parameters=model.parameters())
    model.prepare(sgd, nn.CrossEntropyLoss(), sampan.metric.Accuracy())
    model.fit(Numbers(), epochs=2, batch_size=2, shuffle=False, verbose=0)
    result = model.evaluate(Numbers(), batch_size=2, verbose=2)
    model.save(f"{folder}/model")
    with open(f"{folder}/accuracy{dist.get_rank()}", "w") as file:
        print(result["acc"], file=file)
    # Batches of different sizes: the report of each process is that of all samples.
    points = np.arange(2.0 + dist.get_rank(), dtype="float32")
    batch = np.stack([points, np.ones_like(points)], 1), (points % 2).astype("int64")[:, None]
    before = [p.numpy() for p in model.parameters()]
    (loss,), (accuracy,) = model.train_batch(*map(lambda a: [a], batch))
    answers = [(p[:, None] * before[0][0] + before[0][1] + before[1]) for p in (np.arange(2), np.arange(3))]
    right = [answer.argmax(1) == np.arange(len(answer)) % 2 for answer in answers]
    assert abs(accuracy - np.concatenate(right).mean()) < 1e-6, (accuracy, right)
    logs = [np.log(np.exp(a).sum(1)) - a[np.arange(len(a)), np.arange(len(a)) % 2] for a in answers]
    assert abs(loss - np.mean([part.mean() for part in logs])) < 1e-5, (loss, logs)

if __name__ == "__main__":
    dist.spawn(main, args=(sys.argv[1],), nprocs=2)
"""


SHUFFLED = """
import json
import sys
import numpy as np
import sampan
import sampan.distributed as dist

class Numbers(sampan.io.Dataset):
    def __init__(self):
        self.seen = []
    def __len__(self):
        return 8
    def __getitem__(self, i):
        self.seen.append(i)
        return np.array([i], "float32"), np.array([0], "float32")

def main(folder):
    found = []
    for seed in (1, 1, 2):
        sampan.seed(seed + 10 * dist.get_rank())  # rank 0 decides
        model = sampan.Model(sampan.nn.Linear(1, 1))
        model.prepare(sampan.optimizer.SGD(0.0, parameters=model.parameters()), sampan.nn.MSELoss())
        data = Numbers()
        model.fit(data, epochs=2, batch_size=2, verbose=0)
        found.append(data.seen)
    with open(f"{folder}/order{dist.get_rank()}", "w") as file:
        json.dump(found, file)

if __name__ == "__main__":
    dist.spawn(main, args=(sys.argv[1],), nprocs=2)
"""


def test_processes_share_one_shuffled_order_that_the_seed_decides(tmp_path):
    (tmp_path / "shuffled.py").write_text(SHUFFLED)
    done = run(tmp_path, "shuffled.py", str(tmp_path))
    assert done.returncode == 0, done.stderr
    (one, again, other), theirs = (json.loads((tmp_path / f"order{rank}").read_text()) for rank in range(2))
    assert one == again and one != other and one[:4] != one[4:]
    for mine, rest in zip((one, again, other), theirs):
        for epoch in (slice(0, 4), slice(4, 8)):
            assert sorted(mine[epoch] + rest[epoch]) == list(range(8))


FIT = """
import sys
import numpy as np
import sampan
from sampan import nn
import sampan.distributed as dist

class Points(sampan.io.Dataset):
    def __len__(self):
        return 32
    def __getitem__(self, i):
        x = np.random.RandomState(i).rand(4).astype("float32")
        return x, np.array([int(x.sum() > 2)], "int64")

sampan.seed(3)
model = sampan.Model(nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2)))
adam = sampan.optimizer.Adam(0.05, parameters=model.parameters())
model.prepare(adam, nn.CrossEntropyLoss(), sampan.metric.Accuracy())
model.fit(Points(), epochs=3, batch_size=8 // dist.get_world_size(), shuffle=False, verbose=2, log_freq=1)
result = model.evaluate(Points(), batch_size=8 // dist.get_world_size(), verbose=0)
model.save(sys.argv[1])
if dist.get_rank() == 0:
    print("JUDGED", result["loss"][0], result["acc"])
"""


def test_fit_under_launch_trains_what_one_process_trains(tmp_path):
    (tmp_path / "fit.py").write_text(FIT)
    alone = run(tmp_path, "fit.py", "alone")
    launched = run(tmp_path, "-m", "sampan.distributed.launch", "--nproc_per_node", "2", "fit.py", "launched")
    assert alone.returncode == launched.returncode == 0, alone.stderr + launched.stderr
    one, two = (sampan.load(str(tmp_path / f"{name}.pdparams")) for name in ("alone", "launched"))
    for name, value in one.items():
        np.testing.assert_allclose(two[name].numpy(), value.numpy(), rtol=1e-5, atol=1e-6, err_msg=name)
    # The same losses and accuracies in one log, and in the judgement.
    logs = [re.findall(r"(loss|acc): ([0-9.]+)", text.stdout) for text in (alone, launched)]
    assert len(logs[0]) > 20 and [name for name, _ in logs[0]] == [name for name, _ in logs[1]]
    for (_, a), (_, b) in zip(*logs):
        assert float(a) == pytest.approx(float(b), abs=2e-4)
    judged = [text.stdout.split("JUDGED ")[1].split() for text in (alone, launched)]
    assert [float(v) for v in judged[0]] == pytest.approx([float(v) for v in judged[1]], abs=1e-5)


def test_a_model_in_two_processes_judges_every_sample_once(tmp_path):
    (tmp_path / "model.py").write_text(MODEL)
    done = run(tmp_path, "model.py", str(tmp_path))
    assert done.returncode == 0, done.stderr
    found = [float((tmp_path / f"accuracy{rank}").read_text()) for rank in range(2)]
    net = nn.Linear(2, 2)
    net.set_state_dict(sampan.load(str(tmp_path / "model.pdparams")))
    points = sampan.to_tensor([[float(i), 1.0] for i in range(9)])
    share = (net(points).argmax(-1).numpy() == np.arange(9) % 2).mean()
    assert found == [pytest.approx(share)] * 2
    assert done.stdout.count("Eval samples: 9") == 1  # one log


OWN = """
import sys
import numpy as np
import sampan
from sampan import nn
from sampan.io import BatchSampler, DataLoader, DistributedBatchSampler
import sampan.distributed as dist

class Numbers(sampan.io.Dataset):
    def __len__(self):
        return 7
    def __getitem__(self, i):
        return np.array([i], "float32"), np.array([i % 2], "int64")

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.norm, self.out = nn.BatchNorm1D(1), nn.Linear(1, 2)
    def forward(self, x):
        return self.out(self.norm(x))

class Both(nn.Layer):
    def forward(self, x):
        return x * 2, x.sum()

rank = dist.get_rank()
double, data = np.arange(7.0)[:, None] * 2, Numbers()
model = sampan.Model(Both())
def outputs(loader):
    rows, sums = model.predict(loader, batch_size=2, verbose=0)
    return np.concatenate(rows), sums

# A dataset, and a loader that shares it out, are for all; of a number without axes there is one from each process.
shared = DataLoader(data, batch_sampler=DistributedBatchSampler(data, 2, dist.get_world_size(), rank))
for loader in (data, shared):
    rows, sums = outputs(loader)
    np.testing.assert_array_equal(rows, double)
    assert sums[0].tolist() == [1.0, 5.0] and len(sums) == 2, sums
# A loader of one's own gives its process what it reads, whatever the others do.
for loader in (
    DataLoader(data, batch_size=2),
    DataLoader(data, batch_sampler=DistributedBatchSampler(data, 2, 1, 0)),
    [[sampan.to_tensor(data[i][0][None])] for i in range(7)],
):
    if rank == 1 or isinstance(loader, list):
        rows, sums = outputs(loader)
        np.testing.assert_array_equal(rows, double)
        assert sum(float(s) for s in sums) == 21 and sums[0].ndim == 0, sums

sampan.seed(3)
model = sampan.Model(Net())
sgd = sampan.optimizer.SGD(0.1, parameters=model.parameters())
model.prepare(sgd, nn.CrossEntropyLoss(), sampan.metric.Accuracy())
# In a fit all judge alike, for all have to stop at once.
model.fit(data, DataLoader(data, batch_size=2), batch_size=2, epochs=2, verbose=0, callbacks=[sampan.callbacks.EarlyStopping("loss")])
together = model.evaluate(data, batch_size=2, verbose=0)
own = model.evaluate(DataLoader(data, batch_size=2), verbose=0) if rank == 0 else together
np.testing.assert_allclose(own["acc"], together["acc"])
dist.barrier()
"""


@pytest.mark.parametrize("launched", [True, False])
def test_loaders_of_ones_own_are_read_by_their_process(tmp_path, launched):
    (tmp_path / "own.py").write_text(OWN)
    if launched:
        commands = [([sys.executable, "-m", "sampan.distributed.launch", "--nproc_per_node", "2", "own.py"], {})]
    else:
        with socket.create_server(("127.0.0.1", 0)) as server:
            told = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(server.getsockname()[1])}
        commands = [([sys.executable, "own.py"], told | {"RANK": str(rank)}) for rank in range(2)]
    env = os.environ | {"PYTHONPATH": HOME, "SAMPAN_TIMEOUT": "60"}
    started = [
        subprocess.Popen(command, cwd=tmp_path, env=env | own, stderr=subprocess.PIPE, text=True)
        for command, own in commands
    ]
    said = [process.communicate(timeout=100)[1] for process in started]
    assert not any(process.returncode for process in started), "".join(said)
