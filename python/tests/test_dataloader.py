"""The loader: batches, orders, worker processes and what befalls them."""

import contextlib
import gc
import multiprocessing
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import sampan
from sampan.io import (
    BatchSampler,
    DataLoader,
    Dataset,
    IterableDataset,
    Subset,
    SubsetRandomSampler,
    TensorDataset,
    get_worker_info,
)


class Samples(Dataset):
    """Every kind of field."""

    def __init__(self, n=10):
        self.n = n

    def __getitem__(self, i):
        return {
            "image": np.full([2, 3], i, "float32"),
            "pair": (i, float(i)),
            "name": f"n{i}",
            "tensor": sampan.full([2], float(i)),
            "flag": i > 3,
        }

    def __len__(self):
        return self.n


class Each(Dataset):
    """What a function says."""

    def __init__(self, f, n=20):
        self.f, self.n = f, n

    def __getitem__(self, i):
        return self.f(i)

    def __len__(self):
        return self.n


def shared_memory():
    """What this process holds of it, and what anybody could find of it by name."""
    held = []
    for file in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):
            held.append(os.readlink(f"/proc/self/fd/{file}"))
    return [name for name in (*held, *os.listdir("/dev/shm")) if "sampan" in name]


@pytest.fixture(autouse=True)
def nothing_is_left():
    yield
    gc.collect()
    assert multiprocessing.active_children() == [] and shared_memory() == []


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.parametrize("shared", [True, False])
def test_a_batch_has_the_form_of_a_sample(workers, shared):
    batches = list(DataLoader(Samples(), batch_size=4, num_workers=workers, use_shared_memory=shared))
    assert [b["image"].shape for b in batches] == [[4, 2, 3], [4, 2, 3], [2, 2, 3]]
    last = batches[-1]
    assert last["name"] == ["n8", "n9"] and last["tensor"].tolist() == [[8.0, 8.0], [9.0, 9.0]]
    assert isinstance(last["pair"], list) and last["pair"][0].tolist() == [8, 9]
    dtypes = [last["image"], *last["pair"], last["flag"]]
    assert [str(t.dtype).rpartition(".")[2] for t in dtypes] == ["float32", "int64", "float64", "bool"]
    assert all(isinstance(t, sampan.Tensor) and t.stop_gradient for t in dtypes)


@pytest.mark.parametrize("workers", [0, 2])
def test_without_batching(workers):
    loader = DataLoader(Samples(3), batch_size=None, num_workers=workers)
    samples = list(loader)
    assert len(loader) == len(samples) == 3
    assert samples[2]["image"].shape == [2, 3] and samples[2]["pair"] == [2, 2.0] and samples[2]["name"] == "n2"


def test_arguments():
    data = Samples()
    assert len(DataLoader(data, batch_size=4, drop_last=True)) == 2
    assert [len(b["name"]) for b in DataLoader(data, batch_size=4, drop_last=True)()] == [4, 4]
    assert DataLoader(data).batch_size == 1 and DataLoader(data).return_list
    picked = DataLoader(data, batch_sampler=[[1, 2], [0]])
    assert picked.batch_size is None and picked.auto_collate_batch
    assert [b["name"] for b in picked] == [["n1", "n2"], ["n0"]] and len(picked) == 2
    sizes = DataLoader(data, batch_size=5, collate_fn=len)
    assert list(sizes) == [5, 5]
    assert [b.tolist() for b in DataLoader([3, 1, 2], batch_size=2)] == [[3, 1], [2]]
    for arguments, text in (
        ({"num_workers": -1}, "num_workers must be at least 0"),
        ({"prefetch_factor": 0}, "prefetch_factor must be at least 1"),
        ({"timeout": -1}, "timeout must be at least 0"),
        ({"batch_size": 0}, "positive integer, or None"),
        ({"batch_sampler": [[1]], "shuffle": True}, "beside batch_sampler"),
    ):
        with pytest.raises(ValueError, match=text):
            DataLoader(data, **arguments)


def test_what_cannot_be_stacked():
    with pytest.raises(TypeError, match="got object. Hint: .*collate_fn") as info:
        list(DataLoader(Each(lambda i: object()), batch_size=2))
    assert "In: collate_fn of DataLoader, batch 0 of Each" in info.value.__notes__
    with pytest.raises(RuntimeError, match=r"same number of fields. Received \[1, 2\]"):
        list(DataLoader(Each(lambda i: [0] * (1 + i % 2)), batch_size=2))


def test_order_and_draws_do_not_depend_on_the_workers():
    def epoch(workers):
        sampan.seed(7)
        data = Each(lambda i: (i, sampan.rand([3])))
        loader = DataLoader(data, batch_size=3, shuffle=True, num_workers=workers)
        return [(i.tolist(), r.tolist()) for _ in range(2) for i, r in loader]

    plain = epoch(0)
    assert plain == epoch(1) == epoch(3)
    assert plain[:7] != plain[7:]
    # Two samples of a pass draw different numbers.
    assert len({tuple(row) for _, rows in plain for row in rows}) == 40


def test_tensors_are_gathered_by_the_core():
    x, y = sampan.rand([23, 4]), sampan.arange(23)

    def epoch(data, workers=0, **more):
        sampan.seed(1)
        loader = DataLoader(data, batch_size=5, shuffle=True, num_workers=workers, **more)
        return [[field.tolist() for field in batch] for batch in loader]

    data = TensorDataset([x, y])
    slow = Each(lambda i: data[i], 23)
    assert epoch(data) == epoch(data, 2) == epoch(slow) == epoch(slow, 2)
    part = [20, 3, -1, 7, 8, 9]
    assert epoch(Subset(Subset(data, range(23)), part)) == epoch(Subset(slow, part))
    assert [b[1].tolist() for b in DataLoader(data, batch_sampler=[[-1, 0], [3]])] == [[22, 0], [3]]
    ask = [SubsetRandomSampler([i]) for i in (-2, 23)]
    assert list(DataLoader(data, batch_sampler=BatchSampler(sampler=ask[0])))[0][1].tolist() == [21]
    with pytest.raises(IndexError, match=r"TensorDataset has 23 samples, the sampler asks for \[23\]"):
        list(DataLoader(data, batch_sampler=BatchSampler(sampler=ask[1])))

    class Shifted(TensorDataset):
        def __getitem__(self, i):
            return super().__getitem__(i)[1] + 100

    assert next(iter(DataLoader(Shifted([x, y]), batch_size=2))).tolist() == [100, 101]


class Shared(IterableDataset):
    def __init__(self, n=11, share=True):
        self.n, self.share = n, share

    def __iter__(self):
        worker = get_worker_info()
        first, step = (worker.id, worker.num_workers) if worker and self.share else (0, 1)
        yield from range(first, self.n, step)


def test_streams():
    batches = {w: [b.tolist() for b in DataLoader(Shared(), batch_size=2, num_workers=w)] for w in (0, 1, 2, 3)}
    assert batches[0] == batches[1] == [[0, 1], [2, 3], [4, 5], [6, 7], [8, 9], [10]]
    assert batches[2] == [[0, 2], [1, 3], [4, 6], [5, 7], [8, 10], [9]]
    assert sorted(v for b in batches[3] for v in b) == list(range(11))
    assert [b.tolist() for b in DataLoader(Shared(5), batch_size=2, drop_last=True, num_workers=1)] == [[0, 1], [2, 3]]
    assert list(DataLoader(Shared(3), batch_size=None)) == [0, 1, 2]
    whole = [b.tolist() for b in DataLoader(Shared(2, share=False), batch_size=2, num_workers=2)]
    assert whole == [[0, 1], [0, 1]]
    with pytest.raises(ValueError, match="decides its own order, shuffle"):
        DataLoader(Shared(), shuffle=True)
    with pytest.raises(ValueError, match="no length"):
        len(DataLoader(Shared()))


def test_a_worker_knows_itself():
    def start(worker):
        info = get_worker_info()
        assert worker == info.id and info.dataset is data
        info.dataset.start = 100 * worker

    data = Each(lambda i: (data.start, get_worker_info().num_workers, os.getpid(), np.random.rand()), 8)
    sampan.seed(2)
    first = list(DataLoader(data, batch_size=2, num_workers=2, worker_init_fn=start))
    assert [b[0].tolist() for b in first] == [[0, 0], [100, 100]] * 2
    assert all(b[1].tolist() == [2, 2] for b in first)
    pids = {p for b in first for p in b[2].tolist()}
    assert len(pids) == 2 and os.getpid() not in pids and get_worker_info() is None
    sampan.seed(2)
    again = list(DataLoader(data, batch_size=2, num_workers=2, worker_init_fn=start))
    draws = [[v for b in batches for v in b[3].tolist()] for batches in (first, again)]
    assert draws[0] == draws[1] and len(set(draws[0])) == 8
    with pytest.raises(AssertionError) as info:
        list(DataLoader(data, num_workers=1, worker_init_fn=lambda i: start(5)))
    assert "In: worker_init_fn(0) of DataLoader" in info.value.__notes__


def test_an_error_in_a_worker_is_raised_here():
    def fail(i):
        if i == 13:
            raise KeyError("thirteen")
        return i

    for workers in (0, 2):
        seen = []
        with pytest.raises(KeyError, match="thirteen") as info:
            for batch in DataLoader(Each(fail), batch_size=4, num_workers=workers):
                seen.append(batch.tolist())
        assert [b[0] for b in seen] == [0, 4, 8]
        assert "In: Each[13], read by DataLoader for batch 3" in info.value.__notes__
    assert "In: worker 1 of DataLoader" in info.value.__notes__[-1]
    text = str(info.value.__cause__)
    assert "Traceback" in text and "in fail" in text and text.count("In: Each[13]") == 1

    class Odd(Exception):
        def __init__(self, a, b):
            super().__init__(f"{a} and {b}")

    def odd(i):
        raise Odd(1, 2)

    with pytest.raises(RuntimeError, match="Odd: 1 and 2"):
        list(DataLoader(Each(odd), num_workers=1))
    with pytest.raises(Exception, match="pickle") as info:
        list(DataLoader(Each(lambda i: i), num_workers=1, collate_fn=lambda batch: lambda: batch))
    assert "on its way out of a worker process" in info.value.__notes__[0]


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), r"worker 1 \(pid \d+\) was killed by signal 9 \(SIGKILL\)"),
        (lambda: os._exit(3), r"worker 1 \(pid \d+\) ended with exit code 3"),
    ],
)
def test_a_worker_that_ends(end, text):
    data = Each(lambda i: end() if i == 13 else i)
    with pytest.raises(RuntimeError, match=text + r" while it read sample 13 \(number 1 of batch 3\). Hint"):
        list(DataLoader(data, batch_size=4, num_workers=2))


def test_an_idle_worker_that_is_killed():
    loader = DataLoader(Each(lambda i: i), batch_size=4, num_workers=2, persistent_workers=True)
    list(loader)
    victim = loader._crew._processes[0]
    os.kill(victim.pid, signal.SIGKILL)
    victim.join()
    with pytest.raises(RuntimeError, match=r"worker 0 .*SIGKILL.* (between two batches|while it put batch \d+ together)"):
        list(loader)
    assert len(list(loader)) == 5


def test_timeout():
    data = Each(lambda i: time.sleep(30 if i == 2 else 0))
    with pytest.raises(RuntimeError, match=r"batch 1 did not come within timeout=0.2 .*worker 1 .*read sample 2"):
        list(DataLoader(data, batch_size=2, num_workers=2, timeout=0.2, collate_fn=len))


def test_leaving_early():
    loader = DataLoader(Each(lambda i: i, 10_000), batch_size=2, num_workers=2)
    for batch in loader:
        break
    assert shared_memory() == []
    with pytest.raises(ZeroDivisionError):
        for batch in loader:
            batch.tolist()[0] // 0
    passes = [iter(loader), iter(loader)]
    assert len(shared_memory()) == 8
    assert [next(p).tolist() for p in passes * 2] == [[0, 1], [0, 1], [2, 3], [2, 3]]


def test_persistent_workers():
    loader = DataLoader(Each(lambda i: (i, os.getpid()), 12), batch_size=2, num_workers=2, persistent_workers=True)
    pids = {p for _ in range(2) for b in loader for p in b[1].tolist()}
    early = iter(loader)
    assert next(early)[0].tolist() == [0, 1]
    assert [b[0].tolist()[0] for b in loader] == [0, 2, 4, 6, 8, 10]
    pids |= {p for b in loader for p in b[1].tolist()}
    assert len(pids) == 2
    with pytest.raises(RuntimeError, match="a new pass over this loader ended the one before it"):
        next(early)
    assert len(list(loader)) == 6


def test_children_work_without_the_parents_threads():
    threads = sampan._core.num_threads()
    sampan._core.set_num_threads(4)
    x = sampan.rand([400, 400])
    total = (x @ x).sum().item()
    data = Each(lambda i: (x @ x).sum() + 0 * float(np.linalg.norm(np.ones([50, 50]) @ np.ones([50, 50]))), 4)
    values = [v for batch in DataLoader(data, num_workers=2) for v in batch.tolist()]
    assert values == [total] * 4
    pid = os.fork()
    if pid == 0:
        os._exit(0 if sampan._core.num_threads() == 1 and (x @ x).sum().item() == total else 1)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0 and sampan._core.num_threads() == 4
    sampan._core.set_num_threads(threads)


PROGRAM = """
import os, sys, time
import sampan
from sampan.io import DataLoader, Dataset
class Slow(Dataset):
    def __getitem__(self, i):
        time.sleep(0.01)
        return i
    def __len__(self):
        return 10**6
pass_ = iter(DataLoader(Slow(), num_workers=2))
next(pass_)
print(*(p.pid for p in pass_._crew._processes), flush=True)
"""


def gone(pid):
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0] == "Z"
    except FileNotFoundError:
        return True


@pytest.mark.parametrize(
    "end", ["", "raise SystemExit(3)", "for batch in pass_: pass", "os.kill(os.getpid(), 9)", "os._exit(0)"]
)
def test_no_process_outlives_the_program(end):
    program = subprocess.Popen(
        [sys.executable, "-c", PROGRAM + end], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )
    pids = [int(p) for p in program.stdout.readline().split()]
    assert len(pids) == 2
    if end.startswith("for"):
        # Control-C reaches all processes of a terminal.
        for pid in [*pids, program.pid]:
            os.kill(pid, signal.SIGINT)
    _, errors = program.communicate(timeout=20)
    assert ("KeyboardInterrupt" in errors) == end.startswith("for") and "Error ignored" not in errors
    deadline = time.monotonic() + 5
    while not all(map(gone, pids)) and time.monotonic() < deadline:
        time.sleep(0.01)
    assert all(map(gone, pids))


def test_a_sampler_of_the_user():
    class Endless(BatchSampler):
        def __init__(self):
            self.batch_size, self.drop_last = 2, False

        def __iter__(self):
            start = 0
            while True:
                yield [start % 5, (start + 1) % 5]
                start += 2

        def __len__(self):
            return 10**9

    data = TensorDataset([sampan.arange(5)])
    for source, workers in ((data, 0), (data, 2), (Each(lambda i: [i], 5), 2)):
        pass_ = iter(DataLoader(source, batch_sampler=Endless(), num_workers=workers))
        assert [next(pass_)[0].tolist() for _ in range(3)] == [[0, 1], [2, 3], [4, 0]]
