"""Values that gradients need, computed again instead of kept."""

from ....distributed.fleet.utils import recompute_sequential

__all__ = ["recompute_sequential"]
