"""Roles and places of processes, where Paddle's programs look for them."""

from . import role_maker, topology

__all__ = ["role_maker", "topology"]
