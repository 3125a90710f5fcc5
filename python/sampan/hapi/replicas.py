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

    def begin(self, loader) -> None:
        """An evaluation begins. A sampler repeats a few samples so that all processes have as many; they do not
        count."""
        data = getattr(loader, "dataset", None)
        self._left = len(data) if hasattr(data, "__len__") else None

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
        if self.count == 1 or mode == "predict":
            return own
        return self._judged if mode == "eval" else own * self.count


def _joined(part):
    from .. import concat
    from ..distributed import all_gather, init_parallel_env

    init_parallel_env()
    parts: list = []
    all_gather(parts, part)
    return concat(parts)
