"""What a process must know before it meets the others."""

from __future__ import annotations

import os
import secrets
import socket

from .group import KEY


def environments(count: int) -> list[dict[str, str]]:
    """The environment of each of `count` processes on this machine."""
    # All are open until each has a port of its own.
    places = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    endpoints = [f"127.0.0.1:{place.getsockname()[1]}" for place in places]
    for place in places:
        place.close()
    key = secrets.token_hex(16)
    return [
        {
            "PADDLE_TRAINER_ID": str(rank),
            "PADDLE_TRAINERS_NUM": str(count),
            "PADDLE_CURRENT_ENDPOINT": endpoint,
            "PADDLE_TRAINER_ENDPOINTS": ",".join(endpoints),
            "PADDLE_LOCAL_RANK": str(rank),
            KEY: key,
        }
        for rank, endpoint in enumerate(endpoints)
    ]


def default_count() -> int:
    """How many processes to start where nobody said: `CPU_NUM`, or one."""
    return int(os.environ.get("CPU_NUM", "1"))
