"""Paddle's calls for processes that only wait for each other, as its programs on processors have them."""

from __future__ import annotations

import os

from .communication import barrier
from .group import destroy_process_group
from .parallel import init_parallel_env


def gloo_init_parallel_env(rank_id: int, rank_num: int, server_endpoint: str) -> None:
    """Meets `rank_num` processes at `server_endpoint`, `host:port` of the first of them."""
    if not 0 <= rank_id < rank_num:
        raise ValueError(f"(InvalidArgument) gloo_init_parallel_env: there is no rank {rank_id} of {rank_num}.")
    os.environ |= {"PADDLE_TRAINER_ID": str(rank_id), "PADDLE_TRAINERS_NUM": str(rank_num)}
    os.environ["PADDLE_MASTER"] = server_endpoint
    # Who started this process may have said where others meet.
    os.environ.pop("SAMPAN_STORE", None)
    init_parallel_env()


def gloo_barrier() -> None:
    """Waits for all processes."""
    barrier()


def gloo_release() -> None:
    """Leaves the other processes."""
    destroy_process_group()
