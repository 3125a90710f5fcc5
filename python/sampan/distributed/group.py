"""Processes that meet over TCP. Rank 0 is the hub: it gathers what all send, in the order of their ranks, and answers
everybody, so that results do not depend on who was first."""

from __future__ import annotations

import hmac
import json
import os
import socket
import struct
import time

KEY = "SAMPAN_GROUP_KEY"
_PATIENCE = 300.0


def _send(link: socket.socket, header: dict, payload: bytes = b"") -> None:
    head = json.dumps(header).encode()
    link.sendall(struct.pack("<IQ", len(head), len(payload)) + head)
    link.sendall(payload)


def _receive(link: socket.socket) -> tuple[dict, bytes]:
    head, size = struct.unpack("<IQ", _exactly(link, 12))
    return json.loads(_exactly(link, head)), _exactly(link, size)


def _exactly(link: socket.socket, size: int) -> bytes:
    data = bytearray(size)
    view, at = memoryview(data), 0
    while at < size:
        count = link.recv_into(view[at:])
        if count == 0:
            raise ConnectionError("the other side has gone")
        at += count
    return bytes(data)


class LostProcess(RuntimeError):
    """Another process of the group has ended."""


class Group:
    """All processes of a job, each with a rank from 0 to `size - 1`."""

    def __init__(self, rank: int, size: int, endpoint: str):
        self.rank, self.size = rank, size
        self._links: list[socket.socket] = []
        if size > 1:
            host, _, port = endpoint.rpartition(":")
            if not port.isdigit():
                raise RuntimeError(
                    f"(PreconditionNotMet) init_parallel_env: there is no address to meet at, got {endpoint!r}. Hint: "
                    "start the processes with python -m sampan.distributed.launch or with spawn."
                )
            (self._gather if rank == 0 else self._join)((host, int(port)))

    def _gather(self, address) -> None:
        links = {}
        with socket.create_server(address, backlog=self.size) as server:
            server.settimeout(_PATIENCE)
            while len(links) < self.size - 1:
                link, _ = server.accept()
                link.settimeout(_PATIENCE)
                hello, _ = _receive(link)
                if not hmac.compare_digest(str(hello.get("key")), os.environ.get(KEY, "")):
                    link.close()
                    continue
                links[hello["rank"]] = link
        self._links = [self._tuned(links[rank]) for rank in range(1, self.size)]

    def _join(self, address) -> None:
        end = time.monotonic() + _PATIENCE
        while True:
            try:
                link = socket.create_connection(address, timeout=_PATIENCE)
                break
            except OSError:
                if time.monotonic() > end:
                    raise RuntimeError(f"(Unavailable) rank {self.rank} could not reach rank 0 at {address}.") from None
                time.sleep(0.05)
        _send(link, {"rank": self.rank, "key": os.environ.get(KEY, "")})
        self._links = [self._tuned(link)]

    @staticmethod
    def _tuned(link: socket.socket) -> socket.socket:
        link.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return link

    def exchange(self, what: dict, payload: bytes, combine) -> bytes:
        """All call it with the same `what`. Rank 0 combines the payloads, a list by rank, into one answer for all of
        them, or into a list of answers by rank."""
        if self.size == 1:
            answers = combine([payload])
            return answers[0] if isinstance(answers, list) else answers
        try:
            return self._lead(what, payload, combine) if self.rank == 0 else self._follow(what, payload)
        except OSError as error:
            raise LostProcess(f"(Unavailable) {what['op']}: another process has gone ({error}).") from None

    def _lead(self, what: dict, payload: bytes, combine) -> bytes:
        payloads = [payload]
        for rank, link in enumerate(self._links, 1):
            theirs, data = _receive(link)
            if theirs != what:
                problem = (
                    f"rank 0 is at {what}, rank {rank} at {theirs}; all processes must do the same in the same order."
                )
                for other in self._links:
                    _send(other, {"error": problem})
                raise RuntimeError(f"(PreconditionNotMet) {what['op']}: {problem}")
            payloads.append(data)
        answers = combine(payloads)
        for rank, link in enumerate(self._links, 1):
            _send(link, {}, answers[rank] if isinstance(answers, list) else answers)
        return answers[0] if isinstance(answers, list) else answers

    def _follow(self, what: dict, payload: bytes) -> bytes:
        _send(self._links[0], what, payload)
        header, data = _receive(self._links[0])
        if "error" in header:
            raise RuntimeError(f"(PreconditionNotMet) {what['op']}: {header['error']}")
        return data
