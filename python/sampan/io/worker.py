"""The life of a worker process."""

from __future__ import annotations

import io
import mmap
import pickle
import random
import signal
import struct
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from .. import _core
from .collate import replace_arrays
from .fetch import End, Task, make_fetcher
from .memory import Block, Stored, Writer

BATCH, END, FAILED, SKIPPED = range(4)


@dataclass(frozen=True)
class WorkerInfo:
    """Which worker a process is."""

    num_workers: int
    id: int
    dataset: Any
    seed: int


_info: WorkerInfo | None = None


def get_worker_info() -> WorkerInfo | None:
    """The worker that runs this code: its `id`, `num_workers`, its copy of the `dataset` and its `seed`. None outside of
    workers. An iterable data set splits its samples by it.

    >>> import sampan
    >>> sampan.io.get_worker_info() is None
    True
    """
    return _info


class Control:
    """What parent and workers tell each other without a message: which pass is on, and what every worker is doing."""

    _ROW = struct.Struct("<qqq")
    IDLE, COLLATING = -2, -1

    def __init__(self, workers: int):
        self._memory = mmap.mmap(-1, self._ROW.size * (workers + 1))

    def set_pass(self, number: int) -> None:
        """Only batches of this pass are wanted; a negative number ends all."""
        self._ROW.pack_into(self._memory, 0, number, 0, 0)

    def current(self) -> int:
        """The pass that is on."""
        return self._ROW.unpack_from(self._memory, 0)[0]

    def tell(self, worker: int, batch: int, ordinal: int, key) -> None:
        """What a worker does now."""
        key = key if isinstance(key, int) and -(2**63) <= key < 2**63 else -(2**63)
        self._ROW.pack_into(self._memory, self._ROW.size * (worker + 1), batch, ordinal, key)

    def doing(self, worker: int) -> str:
        """What a worker did last, in words."""
        batch, ordinal, key = self._ROW.unpack_from(self._memory, self._ROW.size * (worker + 1))
        if ordinal == self.IDLE:
            return "between two batches"
        if ordinal == self.COLLATING:
            return f"while it put batch {batch} together"
        sample = f"sample {key}" if key != -(2**63) else "a sample"
        return f"while it read {sample} (number {ordinal} of batch {batch})"

    def close(self) -> None:
        """Gives the memory back."""
        self._memory.close()


class Stopped(BaseException):
    """The pass was ended from outside. No error: code of the user must not catch it."""


@dataclass
class Job:
    """What a worker is told when it starts."""

    id: int
    num_workers: int
    dataset: Any
    collate: Callable
    batched: bool
    drop_last: bool
    init: Callable | None
    blocks: list[Block | None]


class _Pickler(pickle.Pickler):
    def persistent_id(self, obj):
        return obj.place if type(obj) is Stored else None


def _portable(error: Exception) -> Exception:
    """The error, or one that says the same, if it does not survive the way to the parent."""
    try:
        pickle.loads(pickle.dumps(error))
        return error
    except Exception:
        stand_in = RuntimeError(f"{type(error).__name__}: {error}")
        for note in getattr(error, "__notes__", []):
            stand_in.add_note(note)
        return stand_in


def _failure(error: Exception) -> tuple:
    text = "".join(traceback.format_exception(error))
    error = _portable(error)
    return error, list(getattr(error, "__notes__", [])), text


def _seed(seed: int) -> None:
    """All generators that a data set might use."""
    random.seed(seed)
    _core.seed(seed)
    numpy = sys.modules.get("numpy")
    if numpy is not None:
        numpy.random.seed([seed & 0xFFFFFFFF, seed >> 32])


def serve(job: Job, connection, control: Control, others) -> None:
    """Answers tasks until the parent hangs up."""
    global _info
    # The terminal sends an interrupt to all; the parent deals with it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    # An end of a pipe that stays open here would hide the parent's death from another worker.
    for other in others:
        other.close()
    fetcher = broken = None
    started, current, turn = False, -1, 0
    try:
        while True:
            task = connection.recv()
            if not isinstance(task, Task):
                current, seed = task
                own = _core._derive_seed(seed, job.id, 2**64 - 1)
                _seed(own)
                _info = WorkerInfo(job.num_workers, job.id, job.dataset, own)
                try:
                    if not started and job.init is not None:
                        job.init(job.id)
                    started, broken = True, None
                    fetcher = make_fetcher(job.dataset, job.collate, job.batched, seed, job.drop_last, job.id)
                except Exception as error:
                    error.add_note(f"In: worker_init_fn({job.id}) of DataLoader" if not started else "In: DataLoader")
                    broken = _failure(error)
                continue
            block = job.blocks[turn % len(job.blocks)]
            turn += 1
            connection.send_bytes(_answer(task, fetcher, broken, current, block, control, job.id))
            control.tell(job.id, 0, Control.IDLE, None)
    except (EOFError, ConnectionError, Stopped):
        pass


def _answer(task: Task, fetcher, broken, current: int, block, control: Control, worker: int) -> bytes:
    def watch(ordinal: int, key) -> None:
        wanted = control.current()
        if wanted != current:
            raise Stopped
        control.tell(worker, task.number, ordinal, key)

    reply: tuple
    writer = Writer(block)
    try:
        if broken is not None:
            reply = FAILED, broken
        else:
            batch = fetcher(task, watch)
            reply = (END, None) if batch is End else (BATCH, replace_arrays(batch, writer.put))
            writer.write()
    except Stopped:
        if control.current() < 0:
            raise
        reply = SKIPPED, None
    except Exception as error:
        reply = FAILED, _failure(error)
    try:
        return _pickled(reply)
    except Exception as error:
        error.add_note(f"In: batch {task.number} of DataLoader, on its way out of a worker process")
        return _pickled((FAILED, _failure(error)))


def _pickled(reply: tuple) -> bytes:
    out = io.BytesIO()
    _Pickler(out, protocol=5).dump(reply)
    return out.getvalue()
