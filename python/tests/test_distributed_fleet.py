"""Layers, states and data that processes share out: each training is that of one process."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import sampan
import sampan.distributed as dist
from sampan.distributed import fleet

HOME = str(pathlib.Path(sampan.__file__).parents[1])

PROGRAM = """
import sys
import numpy as np
import sampan
import sampan.distributed as dist
from sampan import nn
from sampan.distributed import fleet, stage3
from sampan.distributed.fleet.meta_parallel import *

kind, out = sys.argv[1:]

class Words(nn.Layer):
    "Looks words up, mixes them, and scores every word of the vocabulary."
    def __init__(self, cut):
        super().__init__()
        if cut:
            self.embed = VocabParallelEmbedding(12, 8)
            self.up = ColumnParallelLinear(8, 16, has_bias=True, gather_output=False)
            self.down = RowParallelLinear(16, 8, input_is_parallel=True)
            self.score = ColumnParallelLinear(8, 12, has_bias=True, gather_output=False)
            self.loss = ParallelCrossEntropy()
        else:
            self.embed, self.up = nn.Embedding(12, 8), nn.Linear(8, 16)
            self.down, self.score = nn.Linear(16, 8), nn.Linear(8, 12)
    def forward(self, x, y):
        scores = self.score(self.down(nn.functional.gelu(self.up(self.embed(x)))))
        if hasattr(self, "loss"):
            return self.loss(scores, y).mean()
        return nn.functional.cross_entropy(scores, y)

def fill(net):
    "Values by the names of the parameters, cut as they are cut."
    rank, size = (dist.get_rank(), 2) if kind == "model" else (0, 1)
    rng = np.random.RandomState(4)
    whole = {"embed.weight": (12, 8), "up.weight": (8, 16), "up.bias": (16,), "down.weight": (16, 8), "down.bias": (8,),
             "score.weight": (8, 12), "score.bias": (12,)}
    axes = {"embed.weight": 0, "up.weight": 1, "up.bias": 0, "down.weight": 0, "score.weight": 1, "score.bias": 0}
    for name, shape in whole.items():
        value = rng.rand(*shape).astype("float32") - 0.5
        if name in axes:
            value = np.split(value, size, axes[name])[rank]
        dict(net.named_parameters())[name].set_value(value)
    return whole, axes

strategy = fleet.DistributedStrategy()
if kind == "model":
    strategy.hybrid_configs = {"dp_degree": 1, "mp_degree": 2}
elif kind == "sharding":
    strategy.hybrid_configs = {"dp_degree": 1, "sharding_degree": 2}
fleet.init(is_collective=True, strategy=strategy)
inner = Words(kind == "model")
whole, axes = fill(inner)
net = fleet.distributed_model(inner)
# The clip is tight, so that it counts in every step.
adam = sampan.optimizer.AdamW(0.01, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.2))
if kind in ("os", "os_g", "p_g_os"):
    # The bias with 8 elements stays whole.
    net, adam, _ = dist.group_sharded_parallel(inner, adam, kind, segment_size=12, sync_buffers=True)
else:
    adam = fleet.distributed_optimizer(adam)
rank, size = dist.get_rank(), dist.get_world_size()
rng = np.random.RandomState(0)
for _ in range(4):
    x, y = rng.randint(0, 12, (8, 5)), rng.randint(0, 12, (8, 5, 1))
    if size > 1 and kind != "model":
        x, y = x[rank * 4 : rank * 4 + 4], y[rank * 4 : rank * 4 + 4]
    loss = net(sampan.to_tensor(x), sampan.to_tensor(y))
    loss.backward()
    adam.step()
    adam.clear_grad()
if kind in ("sharding", "os", "os_g", "p_g_os") and size > 1:
    held = {name: value.shape for name, value in adam.state_dict().items() if "moment1" in name}
    if kind == "p_g_os":
        halves = {name: p.shape for name, p in inner.named_parameters()}
        for name, shape in whole.items():
            assert halves[name] == ([8] if shape == (8,) else [np.prod(shape) // 2]), halves
        assert list(held.values()) == list(halves.values()), held
    else:
        assert 0 < len(held) < len(whole), held
    dist.save_group_sharded_model(net, out + "_saved", adam)
    if rank == 0:
        saved = sampan.load(out + "_saved/model.pdopt")
        assert sum("moment1" in name for name in saved) == len(whole)
        for name, value in saved.items():
            if "moment1" in name and kind == "p_g_os":
                assert tuple(value.shape) in whole.values(), (name, value.shape)
    if kind == "p_g_os":
        # Saved, loaded before the next sharing, and trained on as before.
        dist.barrier()
        again = Words(False)
        again.set_state_dict(sampan.load(out + "_saved/model.pdmodel"))
        for old, new in zip(inner.parameters(), again.parameters()):
            new.name = old.name
        more = sampan.optimizer.AdamW(0.01, parameters=again.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.2))
        more.set_state_dict(sampan.load(out + "_saved/model.pdopt"))
        other, more, _ = dist.group_sharded_parallel(again, more, kind, segment_size=12)
        gathered, real = [], stage3._Cut.gathered
        stage3._Cut.gathered = lambda cut, part=None: gathered.append(part) or real(cut, part)
        for n, o in ((net, adam), (other, more)):
            loss = n(sampan.to_tensor(x), sampan.to_tensor(y))
            assert all(cut.whole is None for cut in n._cuts.values())
            gathered.clear()
            loss.backward()
            assert len(gathered) >= 3  # the graph kept none of the linear weights
            o.step()
            o.clear_grad()
        for (name, a), b in zip(inner.named_parameters(), again.parameters()):
            np.testing.assert_array_equal(a.numpy(), b.numpy(), err_msg=name)
        net.set_state_dict(sampan.load(out + "_saved/model.pdmodel"))
        inner = dict(net.state_dict())
found = {}
for name, parameter in inner.items() if isinstance(inner, dict) else inner.named_parameters():
    parts = [parameter.numpy()]
    if kind == "model" and size > 1 and name in axes:
        gathered = []
        dist.all_gather(gathered, parameter)
        parts = [np.concatenate([part.numpy() for part in gathered], axes[name])]
    found[name] = parts[0]
if rank == 0:
    np.savez(out, **found)
"""


def run(folder, kind, out, processes):
    (folder / "job.py").write_text(PROGRAM)
    launch = ["-m", "sampan.distributed.launch", "--nproc_per_node", str(processes)] if processes > 1 else []
    env = os.environ | {"PYTHONPATH": HOME}
    command = [sys.executable, *launch, "job.py", kind, out]
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(np.load(folder / f"{out}.npz"))


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return run(tmp_path_factory.mktemp("one"), "data", "one", 1)


@pytest.mark.parametrize("kind", ["data", "model", "sharding", "os", "os_g", "p_g_os"])
def test_two_processes_are_one(tmp_path, one, kind):
    two = run(tmp_path, kind, "two", 2)
    assert sorted(one) == sorted(two)
    for name, value in one.items():
        np.testing.assert_allclose(two[name], value, rtol=1e-5, atol=1e-6, err_msg=name)


def test_alone():
    fleet.init(is_collective=True)
    groups = fleet.get_hybrid_communicate_group()
    assert groups.get_model_parallel_world_size() == 1 and groups.get_data_parallel_rank() == 0
    assert fleet.worker_num() == 1 and fleet.is_first_worker()
    net = sampan.nn.Linear(2, 1)
    assert fleet.distributed_model(net) is net
    layer = fleet.meta_parallel.ColumnParallelLinear(2, 4, has_bias=True)
    assert layer(sampan.ones([3, 2])).shape == [3, 4]


def test_where_processes_lie():
    topology = fleet.CommunicateTopology(["data", "model"], [2, 3])
    assert topology.get_rank(data=1, model=2) == 5 and topology.get_coord(4) == (1, 1)
    assert topology.get_comm_list("data") == [[0, 3], [1, 4], [2, 5]]
    assert topology.get_axis_list("model", 1) == [1, 4] and topology.get_rank_from_stage(5, data=0) == 2


def test_what_cannot_be_is_told():
    strategy = fleet.DistributedStrategy()
    with pytest.raises(AttributeError, match="no setting 'no_such'"):
        strategy.no_such = 1
    with pytest.raises(ValueError, match="mp_degree"):
        strategy.hybrid_configs = {"mp_degree": 0}
    strategy.hybrid_configs = {"dp_degree": 1, "mp_degree": 2}
    with pytest.raises(ValueError, match="needs 2 processes, there are 1"):
        fleet.init(is_collective=True, strategy=strategy)
    net = sampan.nn.Linear(2, 1)
    sgd = sampan.optimizer.SGD(0.1, parameters=net.parameters())
    with pytest.raises(ValueError, match="os, os_g or p_g_os"):
        dist.group_sharded_parallel(net, sgd, "all")
    with pytest.raises(ValueError, match="Lamb looks at whole parameters"):
        dist.group_sharded_parallel(net, sampan.optimizer.Lamb(0.1, parameters=net.parameters()), "p_g_os")
