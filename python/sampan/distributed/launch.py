"""`python -m sampan.distributed.launch --nproc_per_node 2 train.py`: a program in several processes."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time

from .start import default_count, environments


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m sampan.distributed.launch", description=__doc__)
    parser.add_argument("--nproc_per_node", type=int, help="how many processes")
    parser.add_argument("--gpus", "--devices", "--selected_gpus", dest="devices", help="a process for each: 0,1,2,3")
    parser.add_argument("--log_dir", default="log", help="where workerlog.0, workerlog.1, … are written")
    parser.add_argument("--nnodes", default="1", help="how many machines; one, for now")
    for option in ("--master", "--rank", "--job_id", "--run_mode", "--log_level", "--ips"):
        parser.add_argument(option, help=argparse.SUPPRESS)
    parser.add_argument("program", help="the program")
    parser.add_argument("arguments", nargs=argparse.REMAINDER, help="its arguments")
    return parser


def _copy(source, *targets) -> None:
    for line in source:
        for target in targets:
            target.write(line)
            target.flush()


def _wait(workers: list[subprocess.Popen]) -> int:
    """Until all have ended, or one has failed, which ends the others: the exit code."""
    while True:
        codes = [worker.poll() for worker in workers]
        failed = [code for code in codes if code]
        if failed:
            for worker in workers:
                worker.terminate()
            for worker in workers:
                worker.wait()
            # Ended by a signal: as a shell tells it.
            return failed[0] if failed[0] > 0 else 128 - failed[0]
        if all(code == 0 for code in codes):
            return 0
        time.sleep(0.1)


def launch(arguments: list[str] | None = None) -> int:
    """Runs the program and gives its exit code. Rank 0 is seen on the screen, all are in the log folder."""
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.nnodes not in ("1", "1:1"):
        parser.error("--nnodes: several machines are not part of sampan yet")
    listed = len(chosen.devices.split(",")) if chosen.devices and chosen.devices != "cpu" else None
    count = chosen.nproc_per_node or listed or default_count()
    os.makedirs(chosen.log_dir, exist_ok=True)
    command = [sys.executable, "-u", chosen.program, *chosen.arguments]
    workers, copies, logs = [], [], []
    for rank, env in enumerate(environments(count)):
        log = open(os.path.join(chosen.log_dir, f"workerlog.{rank}"), "w")
        logs.append(log)
        output = subprocess.PIPE if rank == 0 else log
        worker = subprocess.Popen(command, env=os.environ | env, stdout=output, stderr=subprocess.STDOUT, text=True)
        workers.append(worker)
        if rank == 0:
            copies.append(threading.Thread(target=_copy, args=(worker.stdout, log, sys.stdout)))
            copies[-1].start()
    try:
        code = _wait(workers)
    except KeyboardInterrupt:
        for worker in workers:
            worker.terminate()
        code = 130
    for copy in copies:
        copy.join()
    for log in logs:
        log.close()
    if code:
        print(f"launch: a process ended with code {code}; see {chosen.log_dir}/workerlog.*", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(launch())
