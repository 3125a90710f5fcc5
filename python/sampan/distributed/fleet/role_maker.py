"""Who a process is in a training with parameter servers."""

from __future__ import annotations

import os


class Role:
    """What a process does."""

    WORKER, SERVER = 1, 2


class UserDefinedRoleMaker:
    """Roles as the program says: `current_id`, `role`, `worker_num`, `server_endpoints`."""

    def __init__(self, is_collective=False, init_gloo=False, **kwargs):
        self._is_collective = is_collective
        self._role = kwargs.get("role", Role.WORKER)
        self._current_id = int(kwargs.get("current_id", 0))
        self._server_endpoints = list(kwargs.get("server_endpoints", []))
        self._worker_endpoints = list(kwargs.get("worker_endpoints", []))
        self._count = int(kwargs.get("worker_num", 0)) or len(self._worker_endpoints) or 1
        if not is_collective and self._role == Role.SERVER and self._current_id >= len(self._server_endpoints):
            raise ValueError(
                f"(InvalidArgument) role maker: server {self._current_id} of {len(self._server_endpoints)} server_endpoints."
            )

    def _is_worker(self) -> bool:
        return self._role == Role.WORKER

    def _is_server(self) -> bool:
        return self._role == Role.SERVER

    def _is_first_worker(self) -> bool:
        return self._is_worker() and self._current_id == 0

    def _worker_index(self) -> int:
        return self._current_id if self._is_worker() else -1

    def _server_index(self) -> int:
        return self._current_id if self._is_server() else -1

    def _worker_num(self) -> int:
        return self._count

    def _server_num(self) -> int:
        return len(self._server_endpoints)

    def _get_pserver_endpoints(self) -> list[str]:
        return self._server_endpoints

    def _get_trainer_endpoints(self) -> list[str]:
        return self._worker_endpoints

    def to_string(self) -> str:
        """The role in words."""
        return (
            f"role: {self._role}, current_id: {self._current_id}, pserver_endpoints: {self._server_endpoints}, "
            f"trainer_endpoints: {self._worker_endpoints}"
        )


def _from_environment(name: str) -> str:
    found = os.environ.get(name)
    if not found:
        raise ValueError(
            f"(InvalidArgument) PaddleCloudRoleMaker: {name} is not set. Hint: start the program by "
            "`python -m sampan.distributed.launch --server_num 1 --worker_num 2 program.py`, or set it."
        )
    return found


class PaddleCloudRoleMaker(UserDefinedRoleMaker):
    """Roles as the launcher wrote them into the environment: `TRAINING_ROLE`, `PADDLE_PSERVERS_IP_PORT_LIST`,
    `PADDLE_TRAINERS_NUM`, `PADDLE_TRAINER_ID`, and for servers `POD_IP` and `PADDLE_PORT`."""

    def __init__(self, is_collective=False, **kwargs):
        if is_collective:
            super().__init__(True)
            return
        servers = _from_environment("PADDLE_PSERVERS_IP_PORT_LIST").split(",")
        role = _from_environment("TRAINING_ROLE")
        if role not in ("TRAINER", "PSERVER"):
            raise ValueError(
                f"(InvalidArgument) PaddleCloudRoleMaker: TRAINING_ROLE is TRAINER or PSERVER, got {role!r}."
            )
        if role == "TRAINER":
            number = int(_from_environment("PADDLE_TRAINER_ID"))
        else:
            own = f"{_from_environment('POD_IP')}:{_from_environment('PADDLE_PORT')}"
            if own not in servers:
                raise ValueError(f"(InvalidArgument) PaddleCloudRoleMaker: {own} is not one of the servers, {servers}.")
            number = servers.index(own)
        super().__init__(
            current_id=number,
            role=Role.WORKER if role == "TRAINER" else Role.SERVER,
            worker_num=int(_from_environment("PADDLE_TRAINERS_NUM")),
            server_endpoints=servers,
            worker_endpoints=[e for e in os.environ.get("PADDLE_TRAINER_ENDPOINTS", "").split(",") if e],
        )
