"""A model in several processes: each trains on its share of the data, and an evaluation is one for all."""

from __future__ import annotations


class Replicas:
    """The same network in each process; alone it is just the network."""

    def __init__(self):
        from ..distributed import get_world_size

        self.count = get_world_size()
        self._network = self._parallel = None
        self._left: int | None = None
        self._judged = 0
        # Does this process judge data of its own, without the others?
        self._apart = False

    def trained(self, network):
        """What to call in training, so that gradients are the means over all processes."""
        if self.count == 1:
            return network
        if self._network is not network:
            from ..distributed import DataParallel, init_parallel_env

            init_parallel_env()
            self._network, self._parallel = network, DataParallel(network)
        return self._parallel

    def begin(self, loader, mode: str, network, fitting: bool) -> None:
        """A pass over the data begins. An evaluation or a prediction is one for all where a sampler shares the data out: samples
        that it repeated, so that all processes have as many, do not count, and all compute with the statistics of the first
        process, whose network is the one saved. What a process reads by itself is its own affair, which the others may not even
        take part in; but evaluations of `fit` decide when it ends, so that all have to find the same."""
        self._left, shared = None, False
        if mode != "train" and self.count > 1:
            from ..io import DistributedBatchSampler

            sampler = getattr(loader, "batch_sampler", None)
            shared = isinstance(sampler, DistributedBatchSampler) and sampler.nranks == self.count
            self._left = len(sampler.dataset) if shared else None
        self._apart = mode != "train" and not shared and not fitting
        if self.count > 1 and mode != "train" and not self._apart:
            from ..distributed import init_parallel_env

            statistics = [*(p for p in network.parameters() if p.stop_gradient), *network.buffers()]
            if statistics:
                init_parallel_env()._group.broadcast_all(statistics, 0)

    def end(self) -> None:
        """The pass is over: single batches are judged as they are."""
        self._left, self._apart = None, False

    def mean(self, losses: list) -> list:
        """Losses as the means over all processes."""
        if self.count == 1 or self._apart:
            return losses
        from ..distributed import ReduceOp, all_reduce, init_parallel_env

        init_parallel_env()
        losses = [loss.detach().clone() for loss in losses]
        for loss in losses:
            all_reduce(loss, ReduceOp.AVG)
        return losses

    def together(self, outputs: list, labels: list) -> tuple[list, list]:
        """Outputs and labels of all processes; of a number without axes a row of those of all."""
        if self.count == 1 or self._apart:
            return outputs, labels
        rows = [part.ndim > 0 for part in (*outputs, *labels)]
        parts = [_joined(part) for part in (*outputs, *labels)]
        self._judged = next((part.shape[0] for part, has in zip(parts, rows) if has), self.count)
        if self._left is not None:
            self._judged = min(self._judged, self._left)
            self._left -= self._judged
            parts = [part[: self._judged] if has else part for part, has in zip(parts, rows)]
        return parts[: len(outputs)], parts[len(outputs) :]

    def batch_size(self, mode: str, own: int) -> int:
        """How many samples the batch of all processes had, where this one had `own`."""
        if self.count == 1 or self._apart:
            return own
        return own * self.count if mode == "train" else self._judged


def _joined(part):
    from .. import concat, zeros
    from ..distributed import init_parallel_env
    from ..distributed.objects import _sizes

    engine, part = init_parallel_env()._group, part.detach() if part.ndim else part.detach().reshape([1])
    # A loader of the user's own may end with batches of different sizes.
    rooms = [zeros([rows, *part.shape[1:]], dtype=part.dtype) for rows in _sizes(engine, part.shape[0])]
    engine.all_to_all(rooms, [part] * engine.size(), True)
    return concat(rooms)
