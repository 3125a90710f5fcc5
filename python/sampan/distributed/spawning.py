"""Processes that run a function."""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback

from .group import LostProcess
from .start import default_count, environments

# Seconds in which a process that others lost says why it ended.
PATIENCE = 10


def _child(env: dict, func, args: tuple, problems) -> None:
    os.environ.update(env)
    try:
        func(*args)
    except Exception as error:
        problems.put((isinstance(error, LostProcess), traceback.format_exc()))
        sys.exit(1)


class MultiprocessContext:
    """Processes that were started; `join` waits for them."""

    def __init__(self, processes: list, problems: list):
        self.processes, self._problems = processes, problems

    def join(self, timeout: float | None = None) -> bool:
        """Waits until all have ended. If one fails, the others are ended and its traceback is raised."""
        running = dict(enumerate(self.processes))
        while running:
            ready = multiprocessing.connection.wait([p.sentinel for p in running.values()], timeout)
            if not ready:
                return False
            for rank in [r for r, p in running.items() if p.sentinel in ready]:
                process = running.pop(rank)
                process.join()
                if process.exitcode:
                    self._fail(rank, running)
        return True

    def _fail(self, rank: int, running: dict) -> None:
        lost, told = self._told(rank)
        for other, process in running.items():
            # Who lost another one may be heard of before the one that was lost; that one has the reason.
            process.join(PATIENCE if lost else 0)
            if lost and process.exitcode and not (theirs := self._told(other))[0]:
                rank, (lost, told) = other, theirs
        for process in running.values():
            process.terminate()
            process.join()
        code = self.processes[rank].exitcode
        raise RuntimeError(f"(PreconditionNotMet) spawn: process {rank} ended with code {code}.{told}")

    def _told(self, rank: int) -> tuple[bool, str]:
        """Did the process fail because another one had gone, and its traceback."""
        if self._problems[rank].empty():
            return False, ""
        lost, text = self._problems[rank].get()
        return lost, "\n\n" + text


def spawn(func, args=(), nprocs=-1, join=True, daemon=False, **options) -> MultiprocessContext:
    """Runs `func(*args)` in `nprocs` new processes, which can meet by `init_parallel_env()`.

    The processes import the program anew, so what starts them stands below `if __name__ == "__main__":`.
    """
    method = multiprocessing.get_context(options.get("start_method", "spawn"))
    processes, problems = [], []
    for env in environments(default_count() if nprocs == -1 else nprocs):
        problems.append(method.SimpleQueue())
        process = method.Process(target=_child, args=(env, func, tuple(args), problems[-1]), daemon=daemon)
        process.start()
        processes.append(process)
    context = MultiprocessContext(processes, problems)
    if join:
        context.join()
    return context
