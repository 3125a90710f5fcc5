"""How processes lie along axes."""

from ..topology import CommunicateTopology, HybridCommunicateGroup

__all__ = ["CommunicateTopology", "HybridCommunicateGroup"]
