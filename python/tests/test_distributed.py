"""Programs that ask for other processes run alone, and say so where they cannot."""

import pytest

import sampan
import sampan.distributed as dist
from sampan import nn


def test_alone():
    assert (dist.get_rank(), dist.get_world_size(), dist.ParallelEnv().nranks) == (0, 1, 1)
    dist.init_parallel_env()
    assert dist.is_initialized()
    found = []
    x = sampan.ones([2])
    dist.all_gather(found, x)
    dist.all_reduce(x)
    assert len(found) == 1 and x.numpy().tolist() == [1.0, 1.0]


def test_a_parallel_network_is_the_network():
    net = nn.Linear(2, 1)
    parallel = sampan.DataParallel(net)
    assert list(parallel.state_dict()) == ["weight", "bias"] and len(parallel.parameters()) == 2
    x = sampan.ones([3, 2])
    assert (parallel(x).numpy() == net(x).numpy()).all()
    with parallel.no_sync():
        parallel(x).mean().backward()
    assert net.weight.grad is not None
    parallel.set_state_dict({"weight": sampan.zeros([2, 1]), "bias": sampan.ones([1])})
    assert net(x).numpy().tolist() == [[1.0]] * 3


def test_more_than_one_is_said_to_be_missing(monkeypatch):
    with pytest.raises(NotImplementedError, match="2 processes"):
        dist.spawn(print, nprocs=2)
    monkeypatch.setenv("PADDLE_TRAINERS_NUM", "4")
    monkeypatch.setenv("PADDLE_TRAINER_ID", "2")
    assert (dist.get_rank(), dist.get_world_size()) == (2, 4)
    with pytest.raises(NotImplementedError, match="init_parallel_env: 4 processes"):
        dist.init_parallel_env()
    with pytest.raises(AttributeError, match="one process for now"):
        dist.fleet  # noqa: B018
