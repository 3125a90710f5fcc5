"""What processes tell each other. Alone, a tensor is already the sum, the mean and the largest of all."""

from __future__ import annotations

from .parallel import only_one


def all_reduce(tensor, op=None, group=None, sync_op=True):
    """Makes a tensor the sum (or another reduction) of those of all processes, in place."""
    only_one("all_reduce")


def reduce(tensor, dst=0, op=None, group=None, sync_op=True):
    """Makes a tensor of one process the sum of those of all, in place."""
    only_one("reduce")


def broadcast(tensor, src, group=None, sync_op=True):
    """Gives the tensor of one process to all, in place."""
    only_one("broadcast")


def all_gather(tensor_list, tensor, group=None, sync_op=True):
    """Appends the tensors of all processes to a list."""
    only_one("all_gather")
    tensor_list.append(tensor.clone())


def barrier(group=None):
    """Waits until all processes are here."""
    only_one("barrier")
