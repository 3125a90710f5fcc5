"""Messages on their way while the process that sent them computes on."""

from __future__ import annotations


class Outbox:
    """Tensors that were sent to other processes of a group, kept until they have gone."""

    def __init__(self, group):
        self._group = group
        self._sent: list = []

    def send(self, tensor, rank: int) -> None:
        """Begins to send a tensor to a process of the job."""
        task = self._group.send(tensor, rank, False)
        while self._sent and self._sent[0][0].is_completed():
            self._sent.pop(0)[0].wait()  # says if it failed
        self._sent.append((task, tensor))

    def finish(self) -> None:
        """Waits until all that was sent has gone."""
        for task, _ in self._sent:
            task.wait()
        self._sent = []
