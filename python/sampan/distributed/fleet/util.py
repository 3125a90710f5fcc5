"""What workers do together besides training."""

from __future__ import annotations

from ..objects import all_gather_object


class UtilBase:
    """Small exchanges between the processes of a training: `fleet.util`."""

    def _all(self, value, comm_world: str, who: str) -> list:
        from .fleet import fleet

        if comm_world not in ("worker", "all") or fleet._server is not None:
            raise NotImplementedError(
                f"(Unimplemented) fleet.util.{who}: processes of a training without parameter servers exchange values. Hint: "
                "distributed.rpc."
            )
        found: list = []
        all_gather_object(found, value)
        return found

    def all_reduce(self, input, mode: str = "sum", comm_world: str = "worker"):
        """The sum, `min` or `max` of numbers, or arrays of them, over all processes."""
        import numpy

        if mode not in ("sum", "min", "max"):
            raise ValueError(f"(InvalidArgument) fleet.util.all_reduce: mode is sum, min or max, got {mode!r}.")
        found = numpy.array(self._all(numpy.asarray(input).tolist(), comm_world, "all_reduce"))
        return getattr(numpy, mode)(found, axis=0)

    def all_gather(self, input, comm_world: str = "worker") -> list:
        """The values of all processes."""
        return self._all(input, comm_world, "all_gather")

    def barrier(self, comm_world: str = "worker") -> None:
        """Waits for all processes."""
        from .fleet import fleet

        fleet.barrier_worker()

    def get_file_shard(self, files: list) -> list:
        """The files of a list that are this process's: as many for each as can be, the first processes one more."""
        from .fleet import fleet

        if not isinstance(files, list):
            raise TypeError("(InvalidType) fleet.util.get_file_shard: files is a list of names of files.")
        rank, count = fleet.worker_index(), fleet.worker_num()
        size, more = divmod(len(files), count)
        start = rank * size + min(rank, more)
        return files[start : start + size + (rank < more)]

    def print_on_rank(self, message: str, rank_id: int) -> None:
        """Prints in one process."""
        from .fleet import fleet

        if fleet.worker_index() == rank_id:
            print(message)
