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

    def trained(self, network):
        """What to call in training, so that gradients are the means over all processes."""
        if self.count == 1:
            return network
        if self._network is not network:
            from ..distributed import DataParallel, init_parallel_env

            init_parallel_env()
            self._network, self._parallel = network, DataParallel(network)
        return self._parallel

    def begin(self, loader, mode: str, network) -> None:
        """A pass over the data begins. Samples that a sampler repeated, so that all processes have as many, do not count in an
        evaluation or a prediction; and all compute with the statistics of the first process, whose network is the one saved."""
        data = None if mode == "train" else getattr(loader, "dataset", None)
        self._left = len(data) if hasattr(data, "__len__") else None
        if self.count > 1 and mode != "train":
            from ..distributed import init_parallel_env

            statistics = [*(p for p in network.parameters() if p.stop_gradient), *network.buffers()]
            if statistics:
                init_parallel_env()._group.broadcast_all(statistics, 0)

    def end(self) -> None:
        """The pass is over: single batches are judged as they are."""
        self._left = None

    def mean(self, losses: list) -> list:
        """Losses as the means over all processes."""
        if self.count == 1:
            return losses
        from ..distributed import ReduceOp, all_reduce, init_parallel_env

        init_parallel_env()
        losses = [loss.detach().clone() for loss in losses]
        for loss in losses:
            all_reduce(loss, ReduceOp.AVG)
        return losses

    def together(self, outputs: list, labels: list) -> tuple[list, list]:
        """Outputs and labels of all processes."""
        if self.count == 1:
            return outputs, labels
        outputs, labels = [_joined(part) for part in outputs], [_joined(part) for part in labels]
        self._judged = outputs[0].shape[0]
        if self._left is not None:
            self._judged = min(self._judged, self._left)
            self._left -= self._judged
            outputs, labels = [part[: self._judged] for part in outputs], [part[: self._judged] for part in labels]
        return outputs, labels

    def batch_size(self, mode: str, own: int) -> int:
        """How many samples the batch of all processes had, where this one had `own`."""
        if self.count == 1:
            return own
        return own * self.count if mode == "train" else self._judged


def _joined(part):
    from .. import concat, zeros
    from ..distributed import init_parallel_env
    from ..distributed.objects import _sizes

    engine, part = init_parallel_env()._group, part.detach()
    # A loader of the user's own may end with batches of different sizes.
    rooms = [zeros([rows, *part.shape[1:]], dtype=part.dtype) for rows in _sizes(engine, part.shape[0])]
    engine.all_to_all(rooms, [part] * engine.size(), True)
    return concat(rooms)
