"""Batches made by worker processes."""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import signal
import time
import warnings
import weakref
from collections import deque
from multiprocessing import connection

from .collate import to_tensors
from .fetch import Task
from .memory import Block, take
from .timed import TimedPass
from .worker import BATCH, END, FAILED, SKIPPED, Control, Job, serve

# The ends of all pipes that this process holds: a worker forked from it closes its copies.
_ENDS: weakref.WeakSet = weakref.WeakSet()


class WorkerTraceback(Exception):
    """Where in a worker an error arose; the cause of the error that the parent raises."""

    def __init__(self, text: str):
        self.text = text

    def __str__(self):
        return f'\n"""\n{self.text}"""'


class _Unpickler(pickle.Unpickler):
    def __init__(self, data: bytes, block):
        super().__init__(io.BytesIO(data))
        self._block = block

    def persistent_load(self, pid):
        return take(self._block, pid)


class Crew:
    """The worker processes of a loader. Every one has a pipe of its own: if it is killed, it leaves no lock behind."""

    def __init__(self, loader, collate):
        context = multiprocessing.get_context("fork")
        self._parent = os.getpid()
        self._control = Control(loader.num_workers)
        self._processes, self._pipes, self._blocks = [], [], []
        # Tasks that are not answered, and answers taken, of each worker.
        self._open, self._taken = [0] * loader.num_workers, [0] * loader.num_workers
        self._pass = 0
        self.stopped = False
        try:
            for i in range(loader.num_workers):
                # A task is sent after the answer before the last was taken: its block is free again.
                shared = loader.use_shared_memory
                blocks = [Block() if shared else None for _ in range(loader.prefetch_factor)]
                self._blocks.append(blocks)
                job = Job(
                    i,
                    loader.num_workers,
                    loader.dataset,
                    collate,
                    loader.auto_collate_batch,
                    loader.drop_last,
                    loader.worker_init_fn,
                    blocks,
                )
                mine, its = context.Pipe()
                _ENDS.add(mine)
                self._pipes.append(mine)
                arguments = (job, its, self._control, list(_ENDS))
                process = context.Process(target=serve, args=arguments, name=f"sampan-loader-{i}", daemon=True)
                with warnings.catch_warnings():
                    # The core's threads are no danger to the child: it works without them.
                    warnings.simplefilter("ignore", DeprecationWarning)
                    process.start()
                its.close()
                self._processes.append(process)
        except BaseException:
            self.stop()
            raise

    def begin(self, seed: int) -> int:
        """Starts a pass; a pass that is on ends. Gives the pass's number."""
        self._pass += 1
        self._control.set_pass(self._pass)
        for worker, count in enumerate(self._open):
            for _ in range(count):
                self.take(worker)
            self.send(worker, (self._pass, seed))
        return self._pass

    def is_on(self, number: int) -> bool:
        """Is this the pass that the workers work on?"""
        return self._pass == number and not self.stopped

    def send(self, worker: int, message) -> None:
        """Tells a worker something."""
        try:
            self._pipes[worker].send(message)
        except OSError:
            self._ended([worker])
        if isinstance(message, Task):
            self._open[worker] += 1

    def take(self, worker: int, timeout: float | None = None, number: int | None = None) -> tuple:
        """The next answer of a worker."""
        pipe = self._pipes[worker]
        if not pipe.poll(0):
            sentinels = {p.sentinel: i for i, p in enumerate(self._processes)}
            ready = connection.wait([pipe, *sentinels], timeout)
            if not ready:
                raise RuntimeError(
                    f"(Unavailable) DataLoader: batch {number} did not come within timeout={timeout:g} seconds; worker "
                    f"{worker} (pid {self._processes[worker].pid}) was busy {self._control.doing(worker)}. Hint: raise "
                    "timeout, or look at what holds up the data set."
                )
            if pipe not in ready:
                self._ended([sentinels[s] for s in ready])
        try:
            data = pipe.recv_bytes()
        except (EOFError, OSError):
            self._ended([worker])
        blocks = self._blocks[worker]
        block = blocks[self._taken[worker] % len(blocks)]
        self._taken[worker] += 1
        self._open[worker] -= 1
        return _Unpickler(data, block).load()

    def _ended(self, workers: list[int]):
        """Says how a worker ended that should not have."""
        worker = workers[0]
        process = self._processes[worker]
        process.join(5)
        code = process.exitcode
        if code is not None and code < 0:
            try:
                name = signal.Signals(-code).name
            except ValueError:
                name = "unknown"
            how = f"was killed by signal {-code} ({name})"
            hint = "the system kills processes when memory runs out: try fewer workers, or smaller batches"
        else:
            how, hint = f"ended with exit code {code}", "with num_workers=0 the data set runs in this process"
        raise RuntimeError(
            f"(Unavailable) DataLoader: worker {worker} (pid {process.pid}) {how} {self._control.doing(worker)}. "
            f"Hint: {hint}."
        )

    def stop(self) -> None:
        """Ends the workers: at their next sample, or by force if that takes too long."""
        if self.stopped or os.getpid() != self._parent:
            return
        self.stopped = True
        self._control.set_pass(-1)
        for pipe in self._pipes:
            pipe.close()
        for end, wait in ((None, 1.0), ("terminate", 0.5), ("kill", 5.0)):
            alive = [p for p in self._processes if p.is_alive()]
            if end:
                for process in alive:
                    getattr(process, end)()
            deadline = time.monotonic() + wait
            for process in alive:
                process.join(max(0.0, deadline - time.monotonic()))
        for block in (b for blocks in self._blocks for b in blocks if b is not None):
            block.close()


class ProcessPass(TimedPass):
    """One pass over the data, made by a crew. Batches are given out in turn and come back in the same order."""

    def __init__(self, crew: Crew, tasks, seed: int, timeout: float, ahead: int, length, keep: bool):
        self._crew, self._tasks, self._keep, self._length = crew, tasks, keep, length
        self._timeout = timeout or None
        # Who makes the batches that were given out and have not come back.
        self._turns: deque[tuple[int, int]] = deque()
        if not keep:
            weakref.finalize(self, crew.stop)
        with _stopping(self):
            self._number = crew.begin(seed)
            workers = len(crew._processes)
            for i in range(workers * ahead):
                if not self._give(i % workers):
                    break

    def _give(self, worker: int) -> bool:
        task = next(self._tasks, None)
        if task is None:
            return False
        self._crew.send(worker, task)
        self._turns.append((worker, task.number))
        return True

    def __len__(self) -> int:
        return self._length()

    def _next(self):
        with _stopping(self):
            while self._turns:
                if not self._crew.is_on(self._number):
                    raise RuntimeError(
                        "(PreconditionNotMet) DataLoader: a new pass over this loader ended the one before it. "
                        "Hint: persistent_workers serve one pass at a time."
                    )
                worker, number = self._turns.popleft()
                kind, content = self._crew.take(worker, self._timeout, number)
                if kind == BATCH:
                    self._give(worker)
                    return to_tensors(content)
                if kind == FAILED:
                    error, notes, text = content
                    for note in notes:
                        if note not in getattr(error, "__notes__", []):
                            error.add_note(note)
                    error.add_note(f"In: worker {worker} of DataLoader (pid {self._crew._processes[worker].pid})")
                    raise error from WorkerTraceback(text)
                assert kind in (END, SKIPPED)
        if not self._keep:
            self._crew.stop()
        raise StopIteration


class _stopping:
    """Ends the workers when an error, or the user, leaves a pass."""

    def __init__(self, owner: ProcessPass):
        self._owner = owner

    def __enter__(self):
        return self

    def __exit__(self, kind, error, trace):
        if kind is not None:
            owner = self._owner
            # An earlier pass must not end the crew of a later one.
            if getattr(owner, "_number", None) is None or owner._crew.is_on(owner._number):
                owner._crew.stop()
            owner._turns.clear()
        return False
