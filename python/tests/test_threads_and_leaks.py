"""Ops from many threads and processes, and memory that stays flat."""

import gc
import multiprocessing
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
import sampan


def resident():
    """Bytes that the process holds."""
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def in_threads(count, work):
    """Runs work(number) in threads; raises what any of them raised."""
    failed = []

    def run(i):
        try:
            work(i)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=run, args=(i,)) for i in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]


def test_ops_and_gradients_in_threads():
    w = sampan.to_tensor(np.arange(64.0, dtype="float32").reshape(8, 8) / 64)
    want = (w @ w).tanh().sum().item()

    def work(i):
        for _ in range(50):
            x = w.clone()
            x.stop_gradient = False
            y = (x @ x).tanh().sum()
            y.backward()
            assert y.item() == want and x.grad.shape == [8, 8]

    in_threads(6, work)


def test_recording_is_switched_by_thread():
    x = sampan.to_tensor([1.0], stop_gradient=False)
    inside, done = threading.Event(), threading.Event()

    def quiet():
        with sampan.no_grad():
            inside.set()
            done.wait(10)
            assert (x * 2).stop_gradient

    thread = threading.Thread(target=quiet)
    thread.start()
    assert inside.wait(10)
    assert not (x * 2).stop_gradient
    done.set()
    thread.join()


def test_the_interpreter_runs_while_an_op_does():
    a = sampan.ones([300, 300], dtype="float64")
    ticks, stop = [0], threading.Event()

    def tick():
        while not stop.is_set():
            ticks[0] += 1

    before = sys.getswitchinterval()
    sys.setswitchinterval(0.5)  # Only an op that lets go of the lock lets the other thread run.
    thread = threading.Thread(target=tick)
    try:
        thread.start()
        a @ a
        stop.set()
    finally:
        sys.setswitchinterval(before)
        thread.join()
    assert ticks[0] > 0


def test_one_tensor_written_from_threads():
    x = sampan.zeros([4])

    def work(i):
        for _ in range(100):
            x[i].add_(sampan.ones([]))

    in_threads(4, work)
    assert x.tolist() == [100.0] * 4


def test_hooks_run_in_the_thread_of_their_backward():
    def work(i):
        x = sampan.to_tensor([1.0], stop_gradient=False)
        where = []
        x.register_hook(lambda g: where.append(threading.get_ident()))
        (x * 2).backward()
        assert where == [threading.get_ident()]

    in_threads(4, work)


def _flat(work, rounds=10_000, allowed=4 << 20):
    for _ in range(rounds // 10):
        work()
    gc.collect()
    before, objects = resident(), len(gc.get_objects())
    for _ in range(rounds):
        work()
    gc.collect()
    assert resident() - before < allowed
    assert len(gc.get_objects()) - objects < 100


def _step():
    x = sampan.to_tensor([1.0, 2.0], stop_gradient=False)
    x.register_hook(lambda g: g * 2).remove()
    y = (x * x).sum()
    y.backward()
    x.grad.tolist()


def _shared():
    a = np.ones(300)
    t = sampan.from_numpy(a)
    np.from_dlpack(sampan.from_dlpack(np.asarray(t)))
    memoryview(t).release()
    t.__dlpack__()


def _error():
    try:
        sampan.ones([2]).reshape([3])
    except ValueError:
        pass


def _attributes():
    x = sampan.to_tensor([1, 2, 3])
    x.note, x.name = x.shape, "a"
    x[1:], x.dtype, x.place, x.T, list(x)


@pytest.mark.parametrize("work", [_step, _shared, _error, _attributes], ids=lambda f: f.__name__)
def test_memory_stays_flat(work):
    _flat(work, 2_000)


def test_ten_thousand_tensors_are_forgotten():
    before = sampan.device.memory_allocated()
    _flat(lambda: sampan.ones([256]) + 1)
    assert sampan.device.memory_allocated() <= before + (1 << 16)


def test_a_tensor_that_holds_itself_is_collected():
    class Note:
        pass

    x, note = sampan.ones([2]), Note()
    x.me, x.note, note.tensor = x, note, x
    alive = weakref.ref(note)
    del x, note
    gc.collect()
    assert alive() is None


def test_reference_counts():
    x = sampan.ones([2])
    before = sys.getrefcount(x)
    x + x, x.sum(), x[0], x == x, np.asarray(x), x.to("cpu"), sampan.concat([x, x]), sampan.stack((x, x)), -x
    x.add_(x), x.__setitem__(0, 1.0)
    assert sys.getrefcount(x) == before
    assert sys.getrefcount(sampan.float32) < 1000
    for _ in range(2000):
        x.dtype
    assert sys.getrefcount(sampan.float32) < 1000


# As text, since a new process cannot import the module of a test.
_CHILD = """
tensor = queue.get()
tensor.stop_gradient = True
results.put(tensor * 2)
"""


def test_tensors_travel_between_processes():
    context = multiprocessing.get_context("spawn")
    queue, results = context.Queue(), context.Queue()
    process = context.Process(target=exec, args=(_CHILD, {"queue": queue, "results": results}))
    process.start()
    queue.put(sampan.create_parameter([2], "float32", default_initializer=sampan.nn.initializer.Constant(3.0)))
    back = results.get(timeout=60)
    process.join(60)
    assert back.tolist() == [6.0, 6.0] and process.exitcode == 0


def test_the_package_is_light():
    held = "next(line.split()[1] for line in open('/proc/self/status') if line.startswith('VmHWM'))"
    code = f"import sampan, sys; print('numpy' in sys.modules, {held})"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert said[0] == "False" and int(said[1]) < 60 * 1024
