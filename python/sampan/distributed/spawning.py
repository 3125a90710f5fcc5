"""Processes that run a function."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import secrets
import signal
import sys
import time
import traceback

from .. import _core

# Seconds in which a process that others lost says why it ended.
PATIENCE = 2
_DIE_WITH_PARENT = 1


def default_count() -> int:
    """How many processes to start where nobody said: `CPU_NUM`, or one."""
    return int(os.environ.get("CPU_NUM", "1"))


def _environments(count: int, store: str, key: str) -> list[dict[str, str]]:
    endpoints = ",".join(f"127.0.0.1:{6070 + rank}" for rank in range(count))
    return [
        {
            "PADDLE_TRAINER_ID": str(rank),
            "PADDLE_TRAINERS_NUM": str(count),
            "PADDLE_CURRENT_ENDPOINT": endpoints.split(",")[rank],
            "PADDLE_TRAINER_ENDPOINTS": endpoints,
            "PADDLE_LOCAL_RANK": str(rank),
            "PADDLE_RANK_IN_NODE": str(rank),
            "PADDLE_LOCAL_SIZE": str(count),
            "PADDLE_MASTER": store,
            "SAMPAN_STORE": store,
            "SAMPAN_SECRET": key,
            "SAMPAN_GENERATION": "0",
        }
        for rank in range(count)
    ]


def _child(env: dict, parent: int, func, args: tuple, problems) -> None:
    if sys.platform == "linux":
        # Whoever kills the parent leaves no orphans.
        ctypes.CDLL(None).prctl(_DIE_WITH_PARENT, signal.SIGKILL)
        if os.getppid() != parent:
            os._exit(1)
    os.environ.update(env)
    try:
        func(*args)
    except Exception as error:
        problems.put(("(Unavailable)" in str(error), traceback.format_exc()))
        sys.exit(1)


class MultiprocessContext:
    """Processes that were started; `join` waits for them."""

    def __init__(self, processes: list, problems: list, store):
        self.processes, self._problems, self._store = processes, problems, store

    def join(self, timeout: float | None = None) -> bool:
        """Waits until all have ended. If one fails, the others are ended and its traceback is raised."""
        running = dict(enumerate(self.processes))
        try:
            while running:
                ready = multiprocessing.connection.wait([p.sentinel for p in running.values()], timeout)
                if not ready:
                    return False
                for rank in [r for r, p in running.items() if p.sentinel in ready]:
                    process = running.pop(rank)
                    process.join()
                    if process.exitcode:
                        self._fail(rank, running)
        except KeyboardInterrupt:
            self._end(running.values())
            raise
        return True

    @staticmethod
    def _end(processes) -> None:
        processes = list(processes)
        for process in processes:
            process.terminate()
        end = time.monotonic() + 3
        for process in processes:
            process.join(max(0, end - time.monotonic()))
            if process.exitcode is None:
                process.kill()
                process.join()

    def _fail(self, rank: int, running: dict) -> None:
        lost, told = self._told(rank)
        end = time.monotonic() + PATIENCE
        for other, process in running.items():
            # Who lost another one may be heard of before the one that was lost; that one has the reason.
            process.join(max(0, end - time.monotonic()) if lost else 0)
            if lost and process.exitcode and not (theirs := self._told(other))[0]:
                rank, (lost, told) = other, theirs
        self._end(running.values())
        code = self.processes[rank].exitcode
        how = f"was ended by signal {-code}" if code < 0 else f"ended with code {code}"
        raise RuntimeError(f"(PreconditionNotMet) spawn: process {rank} {how}.{told}")

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
    known = {"start_method", "gpus", "selected_gpus", "xpus", "ips", "backend", "print_config", "use_paddlecloud"}
    if unknown := set(options) - known:
        raise ValueError(f"(InvalidArgument) spawn: there is no option {sorted(unknown)[0]!r}.")
    devices = options.get("gpus") or options.get("selected_gpus")
    count = nprocs if nprocs != -1 else len(devices.split(",")) if devices else default_count()
    if count < 1:
        raise ValueError(f"(InvalidArgument) spawn: nprocs is a number of processes, or -1, got {nprocs}.")
    key = secrets.token_hex(16)
    store = _core.StoreServer("127.0.0.1:0", key)
    method = multiprocessing.get_context(options.get("start_method", "spawn"))
    processes, problems = [], []
    for env in _environments(count, f"127.0.0.1:{store.port}", key):
        problems.append(method.SimpleQueue())
        arguments = (env, os.getpid(), func, tuple(args), problems[-1])
        process = method.Process(target=_child, args=arguments, daemon=daemon)
        process.start()
        processes.append(process)
    context = MultiprocessContext(processes, problems, store)
    if join:
        context.join()
    return context
