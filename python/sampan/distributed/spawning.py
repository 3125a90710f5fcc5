"""Processes that run a function."""

from __future__ import annotations

import multiprocessing
import os
import sys
import traceback

from .start import default_count, environments


def _child(env: dict, func, args: tuple, problems) -> None:
    os.environ.update(env)
    try:
        func(*args)
    except Exception:
        problems.put(traceback.format_exc())
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
                    for other in running.values():
                        other.terminate()
                        other.join()
                    self._fail(rank, process.exitcode)
        return True

    def _fail(self, rank: int, code: int) -> None:
        told = "" if self._problems[rank].empty() else "\n\n" + self._problems[rank].get()
        raise RuntimeError(f"(PreconditionNotMet) spawn: process {rank} ended with code {code}.{told}")


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
