"""Tensors on a mesh of processes: whatever their placements, ops, gradients and training give what one process gives."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import sampan
import sampan.distributed as dist

HOME = str(pathlib.Path(sampan.__file__).parents[1])

OPS = """
import itertools
import sys
import numpy as np
import sampan
import sampan.distributed as dist
from sampan import nn
from sampan.nn import functional as F

sampan.set_default_dtype("float64")
two = sys.argv[1] == "two"
mesh = dist.ProcessMesh([0, 1] if two else [[0, 1], [2, 3]], dim_names=["x"] if two else ["x", "y"])
R, S, P = dist.Replicate(), dist.Shard, dist.Partial()
rng, choose = np.random.RandomState(0), np.random.RandomState(1)

def placements(rank):
    one = [R, P, *(S(d) for d in range(rank))]
    if two:
        return [[p] for p in one]
    # Along two axes, some of all pairs, others each time.
    pairs = [list(pair) for pair in itertools.product(one, one)]
    return [pairs[i] for i in choose.choice(len(pairs), 4, replace=False)]

def check(name, f, *shapes, ints=(), more=()):
    arrays = [rng.randint(0, 4, s) if i in ints else rng.rand(*s) + 0.1 for i, s in enumerate(shapes)]
    plain = [sampan.to_tensor(a, stop_gradient=i in ints) for i, a in enumerate(arrays)]
    expected = f(*plain)
    weight = sampan.to_tensor(rng.rand(*expected.shape))
    (expected * weight).sum().backward()
    for where in itertools.product(*(placements(len(s)) for s in shapes)):
        given = [dist.shard_tensor(t.detach(), mesh, p, stop_gradient=i in ints) for i, (t, p) in enumerate(zip(plain, where))]
        found = f(*given)
        assert found.is_dist() and found.shape == expected.shape, (name, where, found.shape)
        np.testing.assert_allclose(found.numpy(), expected.numpy(), 1e-10, 1e-12, err_msg=f"{name} {where} {found.placements}")
        (found * weight).sum().backward()
        for t, g, p in zip(plain, given, where):
            if not t.stop_gradient:
                np.testing.assert_allclose(g.grad.numpy(), t.grad.numpy(), 1e-9, 1e-12, err_msg=f"gradient of {name} {where}")

check("gelu", F.gelu, (5, 3))
check("add", lambda x, y: x + y, (4, 3), (3,))
check("sub", lambda x, y: 2.0 - x - y * 3, (5, 3), (5, 3))
check("div", lambda x, y: 1.5 / x + x / y, (4, 3), (4, 1))
check("matmul", lambda x, y: x @ y, (4, 5), (5, 3))
check("turned", lambda x, y: sampan.matmul(x, y, transpose_x=True, transpose_y=True), (5, 4), (3, 5))
check("many", lambda x, y: sampan.matmul(x, y), (2, 3, 4), (4, 2))
check("each", lambda x, y: sampan.bmm(x, y), (2, 3, 4), (2, 4, 2))
check("linear", lambda x, w: F.linear(x, w, sampan.to_tensor([1.0, 2.0, 3.0])), (4, 6), (6, 3))
check("sum", lambda x: x.sum(1), (4, 3))
check("mean", lambda x: x.mean(axis=0, keepdim=True), (5, 3))
check("all", lambda x: x.mean(), (4, 2))
check("max", lambda x: x.max(1), (4, 3))
check("softmax", lambda x: F.softmax(x, -1), (4, 4))
check("norm", lambda x, w: F.layer_norm(x, [4], w), (3, 4), (4,))
check("reshape", lambda x: x.reshape([2, 2, -1]), (4, 6))
check("flatten", lambda x: x.flatten(1), (4, 2, 2))
check("transpose", lambda x: x.transpose([1, 0, 2]).unsqueeze(0), (4, 2, 3))
check("embedding", lambda i, w: F.embedding(i, w), (4, 3), (4, 6), ints=(0,))
check("cross entropy", lambda x, y: F.cross_entropy(x, y), (4, 5), (4, 1), ints=(1,))
check("ignored", lambda x, y: F.cross_entropy(x, y, ignore_index=1, reduction="mean"), (6, 5), (6,), ints=(1,))
check("mse", lambda x, y: F.mse_loss(x, y), (4, 3), (4, 3))
check("conv", lambda x, w: F.conv2d(x, w, padding=1), (4, 2, 3, 3), (2, 2, 3, 3)) if two else None
check("concat", lambda x, y: sampan.concat([x, y], 1), (4, 2), (4, 3))
check("rows", lambda x: x[1:3, 0] + x[-1, 1], (4, 3))
check("column", lambda x: x[:, 1], (5, 3))
check("cumprod", lambda x: sampan.cumprod(x, 0), (4, 3))  # an op without a rule
check("attention", lambda q, k: F.scaled_dot_product_attention(q, k, k), (2, 3, 2, 4), (2, 3, 2, 4)) if two else None

# Any placement becomes any other, and the gradient takes the way back.
value = rng.rand(5, 6)
for a, b in itertools.product(placements(2), placements(2)):
    x = dist.shard_tensor(value, mesh, a, stop_gradient=False)
    y = dist.reshard(x, mesh, b)
    assert y.placements == b
    np.testing.assert_allclose(y.numpy(), value, 1e-12, err_msg=f"{a} {b}")
    (y * y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * value, 1e-12, err_msg=f"{a} {b}")

# Dropout draws the mask of the whole.
sampan.seed(3)
plain = F.dropout(sampan.ones([6, 4]), 0.5)
for where in placements(2):
    sampan.seed(3)
    assert (F.dropout(dist.shard_tensor(sampan.ones([6, 4]), mesh, where), 0.5).numpy() == plain.numpy()).all()

x = dist.shard_tensor(np.arange(10.0).reshape(5, 2), mesh, [S(0)])
rank = dist.get_rank()
assert x._local_shape == ([3, 2] if rank < len(mesh.process_ids) // 2 else [2, 2]) and x.shape == [5, 2] and len(x) == 5
assert float(x.sum()) == 45 and x.size == 10 and "GlobalDenseTensor" in repr(x) and (x > 3).numpy().sum() == 6
x.set_value(np.ones([5, 2]))
x.scale_(2.0)
assert (x.numpy() == 2).all() and x.placements[0] == S(0)
other = dist.ProcessMesh(mesh.mesh[::-1].copy(), dim_names=mesh.dim_names)
try:
    x + dist.shard_tensor(np.ones([5, 2]), other, [S(0)])
    raise AssertionError("two meshes")
except ValueError as error:
    assert "different meshes" in str(error)
try:
    sampan.save({"x": x}, "x.pdparams")
    raise AssertionError("a part was saved as the whole")
except TypeError as error:
    assert "unshard_dtensor" in str(error)
layer = dist.shard_layer(nn.Linear(4, 2), mesh, lambda name, l, m: setattr(l, "weight", dist.shard_tensor(l.weight, m, [S(0)])))
layer.set_state_dict({"weight": np.arange(8.0).reshape(4, 2), "bias": np.ones(2)})
assert layer.weight.numpy().tolist() == np.arange(8.0).reshape(4, 2).tolist() and layer.weight._local_shape == [2, 2]
plain = dist.unshard_dtensor(x)
assert not plain.is_dist() and plain.shape == [5, 2]
local = dist.dtensor_from_local(sampan.full([2, 3], float(rank)), mesh, [S(0)])
assert local.shape == [4, 3] and dist.dtensor_to_local(local).shape == [2, 3]
assert dist.dtensor_from_fn(sampan.zeros, mesh, [S(1)], [2, 4]).shape == [2, 4]
"""

TRAIN = """
import sys
import numpy as np
import sampan
import sampan.distributed as dist
from sampan import nn

kind, out = sys.argv[1:]
size = dist.get_world_size()

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.words, self.up, self.down = nn.Embedding(12, 8), nn.Linear(8, 16), nn.Linear(16, 8)
        self.norm, self.drop, self.out = nn.LayerNorm(8), nn.Dropout(0.1), nn.Linear(8, 12)
        self.batch = nn.BatchNorm1D(8)
    def forward(self, x):
        h = self.batch(self.words(x).reshape([-1, 8])).reshape([-1, 5, 8])
        h = self.norm(h + self.drop(self.down(nn.functional.gelu(self.up(h)))))
        return self.out(h)

sampan.set_default_dtype("float64")
sampan.seed(1)
net = Net()
net.train()
mesh = None
if kind != "one":
    mesh = dist.ProcessMesh([[0, 1], [2, 3]] if kind == "both" else [0, 1], dim_names=["dp", "mp"] if kind == "both" else ["dp"])
    cut = {"both": 1, "mp": 0, "plain": 0}.get(kind)
    def place(name, layer, mesh):
        if cut is None or name not in ("up", "down", "words"):
            return
        where = [dist.Replicate() for _ in range(mesh.ndim)]
        where[cut] = dist.Shard(0 if name == "down" else 1)
        layer.weight = dist.shard_tensor(layer.weight, mesh, where)
        if name == "up":
            where[cut] = dist.Shard(0)
            layer.bias = dist.shard_tensor(layer.bias, mesh, where)
    assert dist.shard_layer(net, mesh, place) is net
rate = sampan.optimizer.lr.StepDecay(0.01, 2)
adam = sampan.optimizer.AdamW(rate, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.5))
if mesh is not None:
    stage = {"stage1": dist.ShardingStage1, "stage2": dist.ShardingStage2, "stage3": dist.ShardingStage3}.get(kind)
    adam = adam if kind == "plain" else dist.shard_optimizer(adam, stage and stage("dp"))
    if kind == "stage3":
        assert net.out.weight._local_shape == [4, 12], net.out.weight._local_shape
batches = []
rng = np.random.RandomState(0)
for _ in range(3):
    batches.append([sampan.to_tensor(rng.randint(0, 12, (8, 5))), sampan.to_tensor(rng.randint(0, 12, (8, 5, 1)))])
if mesh is not None:
    batches = dist.shard_dataloader(batches, mesh, shard_dims=None if kind == "mp" else "dp")
    assert len(batches) == 3
loss_fn, losses = nn.CrossEntropyLoss(), []
for x, y in batches:
    loss = loss_fn(net(x), y)
    loss.backward()
    adam.step()
    adam.clear_grad()
    rate.step()
    losses.append(loss.item())
if kind == "stage1":
    held = [n for n in adam.state_dict() if "moment1" in n]
    assert 0 < len(held) < len([p for p in net.parameters() if not p.stop_gradient])
if kind == "both":
    states = adam.state_dict()
    moment = states[net.up.weight.name + "_moment1_0"]
    assert moment.shape == [8, 16] and moment._local_shape == [8, 8] and moment.placements == net.up.weight.placements
found = {k: v.numpy() for k, v in net.state_dict().items()}
if dist.get_rank() == 0:
    np.savez(out, losses=losses, **found)
"""


def run(folder, text, processes, *arguments):
    (folder / "job.py").write_text(text)
    launch = ["-m", "sampan.distributed.launch", "--nproc_per_node", str(processes)] if processes > 1 else []
    env = os.environ | {"PYTHONPATH": HOME, "SAMPAN_TIMEOUT": "60"}
    done = subprocess.run(
        [sys.executable, *launch, "job.py", *arguments],
        cwd=folder,
        env=env,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


@pytest.mark.parametrize("which, processes", [("two", 2), ("four", 4)])
def test_ops_of_any_placement(tmp_path, which, processes):
    run(tmp_path, OPS, processes, which)


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return dict(np.load(run(tmp_path_factory.mktemp("one"), TRAIN, 1, "one", "out") / "out.npz"))


@pytest.mark.parametrize("kind", ["dp", "mp", "both", "stage1", "stage2", "stage3", "plain"])
def test_training_is_that_of_one_process(tmp_path, one, kind):
    found = dict(np.load(run(tmp_path, TRAIN, 4 if kind == "both" else 2, kind, "out") / "out.npz"))
    assert sorted(found) == sorted(one)
    for name, value in one.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


LOCAL = """
import numpy as np
import sampan
import sampan.distributed as dist
from sampan.distributed import fleet

dist.init_parallel_env()
rank = dist.get_rank()
mesh = dist.ProcessMesh([0, 1], dim_names=["x"])

def masked(x):
    mask = sampan.zeros_like(x)
    if rank == 0:
        mask[1:3] = 1
    else:
        mask[4:7] = 1
    return (x * mask).sum() / mask.sum()

# The values are those of Paddle 3.3.1.
part = sampan.arange(0, 10, dtype="float32") + rank
x = dist.dtensor_from_local(part, mesh, [dist.Shard(0)])
total = [dist.Partial(dist.ReduceType.kRedSum)]
found = dist.local_map(masked, out_placements=[total], in_placements=[[dist.Shard(0)]], process_mesh=mesh)(x)
assert found._local_value().item() == (1.5, 6.0)[rank] and found.item() == 7.5
try:
    dist.local_map(masked, [total], [[dist.Replicate()]])(x)
    raise SystemExit("other placements went unnoticed")
except ValueError as error:
    assert "reshard_inputs=True" in str(error), error
whole = dist.local_map(lambda t: t.sum(), [[dist.Replicate()]], [[dist.Replicate()]], reshard_inputs=True)(x)
assert whole.item() == 100.0

class Masked(dist.LocalLayer):
    def forward(self, x):
        return masked(x)

x.stop_gradient = False
out = Masked([(mesh, total)], [None])(x)
assert out.item() == 7.5
dist.reshard(out, mesh, [dist.Replicate()]).backward()
grad = dist.unshard_dtensor(x.grad).numpy()
assert np.allclose(grad[[1, 2, 14, 15, 16]], [0.5, 0.5, 1 / 3, 1 / 3, 1 / 3]) and abs(grad.sum() - 2) < 1e-6, grad

strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = {"dp_degree": 1, "mp_degree": 2}
fleet.init(is_collective=True, strategy=strategy)
ones, fill = sampan.ones([4, 8]), sampan.ParamAttr(initializer=sampan.nn.initializer.Constant(0.5))
for axis in (0, 1):
    assert (dist.split(ones, (8, 6), "linear", axis, 2, weight_attr=fill) == 4.0).all().item()
assert (dist.split(sampan.arange(8), (8, 6), "embedding", 0, 2, weight_attr=fill) == 0.5).all().item()
"""


def test_parts_by_hand(tmp_path):
    run(tmp_path, LOCAL, 2)


def test_meshes_and_placements():
    # What Paddle 3.3.1 answers.
    mesh = dist.ProcessMesh([[2, 4, 5], [0, 1, 3]], dim_names=["x", "y"])
    assert repr(mesh) == "shape [2, 3], process_ids [2, 4, 5, 0, 1, 3], dim_names ['x', 'y']"
    assert (mesh.shape, mesh.ndim, mesh.get_dim_size("y")) == ([2, 3], 2, 3)
    assert mesh.get_rank_by_dim_and_process_id("y", 1) == 1 and mesh[0].process_ids == [2, 4, 5]
    assert mesh.get_mesh_with_dim("y").process_ids == [2, 0, 4, 1, 5, 3] and mesh.get_mesh_with_dim(
        "y", 1
    ).process_ids == [4, 1]
    assert dist.ProcessMesh(shape=[2], process_ids=[0, 1]) == dist.ProcessMesh([0, 1]) and mesh != dist.ProcessMesh([0])
    assert [repr(p) for p in (dist.Shard(0), dist.Replicate(), dist.Partial(), dist.Partial(dist.ReduceType.kRedMax))] == [
        "Shard(dim=0)", "Replicate()", "Partial(reduce_type=SUM)", "Partial(reduce_type=MAX)"
    ]  # fmt: skip
    assert dist.Shard(1).get_dim() == 1 and dist.Shard(0).is_shard() and not dist.Shard(0).is_shard(1)
    assert dist.Shard(1) == dist.Shard(1) and dist.Shard(1) != dist.Replicate() and dist.Partial().is_partial()


def test_what_cannot_be_is_told():
    with pytest.raises(ValueError, match="do not name 2 axes"):
        dist.ProcessMesh([[0, 1]], dim_names=["x"])
    with pytest.raises(ValueError, match="must be different"):
        dist.ProcessMesh([0, 0])
    mesh = dist.ProcessMesh([0], dim_names=["x"])
    with pytest.raises(ValueError, match="Shard[(]dim=2[)] of a tensor with 2 axes"):
        dist.shard_tensor(sampan.ones([2, 2]), mesh, [dist.Shard(2)])
    with pytest.raises(ValueError, match="one of Shard"):
        dist.shard_tensor(sampan.ones([2]), mesh, [dist.Replicate()] * 2)
    with pytest.raises(RuntimeError, match="the mesh has process 1, but there are 1"):
        dist.shard_tensor(sampan.ones([2]), dist.ProcessMesh([1]), [])
    x = dist.shard_tensor(sampan.ones([2]), mesh, [dist.Shard(0)])
    with pytest.raises(ValueError, match="distributed already"):
        dist.shard_tensor(x, mesh, [])
    with pytest.raises(TypeError, match="shard_tensor makes one"):
        dist.reshard(sampan.ones([2]), mesh, [])
    lamb = sampan.optimizer.Lamb(0.1, parameters=dist.shard_layer(sampan.nn.Linear(2, 2), mesh).parameters())
    with pytest.raises(ValueError, match="Lamb looks at whole parameters"):
        dist.shard_optimizer(lamb)
    dist.set_mesh(mesh)
    assert dist.get_mesh() is mesh
