"""Tensors that go from one mesh to another, and networks cut into the stages of a pipeline by a plan."""

import pathlib
import sys

import pytest

import sampan
import sampan.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_distributed_auto import run  # noqa: E402

BETWEEN = """
import itertools
import numpy as np
import sampan
import sampan.distributed as dist

sampan.set_default_dtype("float64")
rank = dist.get_rank()
R, S, P = dist.Replicate(), dist.Shard, dist.Partial()
meshes = [dist.ProcessMesh(m, n) for m, n in (
    ([0, 1], ["x"]), ([2, 3], ["x"]), ([1, 2], ["x"]), ([3], ["x"]), ([[0, 1], [2, 3]], ["x", "y"]), ([3, 2, 1, 0], ["y"]),
)]
values, weight = np.random.RandomState(0).rand(5, 6), np.random.RandomState(1).rand(5, 6)
places = {1: [[R], [S(0)], [S(1)], [P]], 2: [[S(0), S(0)], [R, P], [S(1), R]]}
for old, new in itertools.permutations(meshes, 2):
    for before, after in itertools.product(places[old.ndim], places[new.ndim]):
        x = dist.shard_tensor(values, old, before, stop_gradient=False)
        y = dist.reshard(x * 2, new, after)
        assert y.process_mesh == new and y.placements == after and y.shape == [5, 6]
        assert y._is_initialized() == (rank in new.process_ids)
        if y._is_initialized():
            np.testing.assert_allclose(y.numpy(), values * 2)
        (y * weight).sum().backward()
        if x._is_initialized():
            np.testing.assert_allclose(x.grad.numpy(), weight * 2, err_msg=f"{old} {before} {new} {after}")
x = dist.shard_tensor(values, meshes[3], [R])
if rank == 0:
    assert "without values in this process" in repr(x)
    try:
        x.numpy()
        raise SystemExit("values from nowhere")
    except RuntimeError as e:
        assert "process 0 has no values of a tensor on another mesh" in str(e)
"""

STAGES = """
import sys
import numpy as np
import sampan
import sampan.distributed as dist
from sampan import nn

sampan.set_default_dtype("float64")
processes = np.arange(dist.get_world_size()).reshape(-1, 2)
mesh = dist.ProcessMesh(processes, dim_names=["other", "pp"])

class Block(nn.Layer):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
    def forward(self, x, scale):
        return x + self.down(nn.functional.gelu(self.up(x))) * scale

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embed, self.blocks = nn.Embedding(12, 8), nn.LayerList([Block() for _ in range(3)])
        self.norm, self.head = nn.LayerNorm(8), nn.Linear(8, 12)
    def forward(self, ids):
        x = self.embed(ids)
        scale = x.abs().mean([1, 2], keepdim=True)
        for block in self.blocks:
            x = block(x, scale=scale)
        return self.head(self.norm(x))

def made():
    sampan.seed(5)
    net = Net()
    return net, sampan.optimizer.AdamW(0.01, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.5))

def loss_of(out, labels):
    return nn.functional.cross_entropy(out, labels)

rng = np.random.RandomState(0)
batches = [[sampan.to_tensor(rng.randint(0, 12, s)) for s in ((4, 6), (4, 6, 1))] for _ in range(4)]

def train(net, adam, **pipeline):
    model = dist.to_static(net, None, loss_of, adam, dist.Strategy({"pipeline": pipeline}) if pipeline else None)
    return [float(model(*batch)) for batch in batches]

net, adam = made()
expected = train(net, adam)
values = {k: v.numpy() for k, v in net.state_dict().items()}
up, down = dist.ColWiseParallel(), dist.RowWiseParallel()
cut = {"blocks.1": dist.SplitPoint.END}
plans = {
    "row": ({"pp_config": {"split_spec": "blocks"}}, {"enable": True, "accumulate_steps": 2}),
    "point": ({"pp_config": {"split_spec": cut}}, {"enable": True, "accumulate_steps": 4, "schedule_mode": "FThenB"}),
    "one": ({"pp_config": {"split_spec": {"norm": dist.SplitPoint.BEGINNING}}}, {}),
    "global": ({"pp_config": {"split_spec": "blocks", "global_spec": ["norm", "blocks.0"]}}, {"enable": True, "accumulate_steps": 2}),
}
if len(processes) > 1:
    plans = {"all": ({
        "pp_config": {"split_spec": "blocks"},
        "mp_config": {"parallelize_plan": {"blocks.*.up": up, "blocks.*.down": down}},
    }, {"enable": True, "accumulate_steps": 2})}
    mesh = dist.ProcessMesh(processes, dim_names=["mp", "pp"])
for name, (config, pipeline) in plans.items():
    net, adam = dist.parallelize(*made(), mesh=mesh, config=config)
    np.testing.assert_allclose(train(net, adam, **pipeline), expected, 1e-9, err_msg=name)
    dist.save_state_dict({"net": net.state_dict(), "adam": adam.state_dict()}, name)
    for key, value in dist.load_merged_state_dict(name, "net").items():
        np.testing.assert_allclose(value.numpy(), values[key], 1e-7, 1e-9, err_msg=f"{name} {key}")
    assert net.embed.weight.process_mesh.process_ids == [int(row[0]) for row in processes]
    assert net.head.weight.process_mesh.process_ids == [int(row[1]) for row in processes]
    # It goes on from there, in other stages.
    other, _ = dist.parallelize(*made(), mesh=mesh, config={"pp_config": {"split_spec": {"blocks.0": dist.SplitPoint.END}}})
    dist.load_state_dict({"net": other.state_dict()}, name)
    mine = [(k, p) for k, p in other.state_dict().items() if p._is_initialized()]
    assert mine and all(np.allclose(p.numpy(), values[k]) for k, p in mine)
"""

SEQUENCES = """
import numpy as np
import sampan
import sampan.distributed as dist
from sampan import nn

sampan.set_default_dtype("float64")
mesh = dist.ProcessMesh([0, 1], dim_names=["sep"])

class Heads(nn.Layer):
    def forward(self, q, k, v):
        return nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True)

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(8, 24)
        self.heads, self.out = Heads(), nn.Linear(8, 1)
    def forward(self, x):
        q, k, v = (part.reshape([2, 6, 4, 2]) for part in self.inner(x).split(3, axis=-1))
        return self.out(self.heads(q, k, v).reshape([2, 6, 8]))

x = sampan.to_tensor(np.random.RandomState(0).rand(2, 6, 8))
def grads(net):
    net(x).square().mean().backward()
    return [p.grad.numpy() for p in net.parameters()]

sampan.seed(1)
net = Net()
expected = grads(net)
for backend in ("p2p", "all2all"):
    sampan.seed(1)
    plan = {"inner": dist.PrepareContextParallel(backend), "heads": dist.ContextParallel(backend)}
    net, _ = dist.parallelize(Net(), mesh=mesh, config={"cp_config": {"parallelize_plan": plan}})
    seen = []
    net.heads.register_forward_pre_hook(lambda _, args: seen.append([t._local_shape for t in args]))
    net.out.register_forward_pre_hook(lambda _, args: seen.append(args[0]._local_shape))
    for found, want in zip(grads(net), expected):
        np.testing.assert_allclose(found, want, 1e-9, 1e-12)
    # Each process has some positions, and between them some heads of all.
    assert seen == [[[2, 6, 2, 2]] * 3, [2, 3, 8]], seen

# Columns of convolutions, with batches cut along another axis of the mesh or not.
pictures = sampan.to_tensor(np.random.RandomState(0).rand(2, 3, 5, 9), stop_gradient=False)
def columns(layers, mesh=None):
    sampan.seed(2)
    net = nn.Sequential(*(make() for make in layers))
    x, pictures.grad = pictures, None
    if mesh is not None:
        plan = {name: dist.ConvParallel() for name, layer in net.named_sublayers() if isinstance(layer, nn.Conv2D)}
        net, _ = dist.parallelize(net, mesh=mesh, config={"mp_config": {"parallelize_plan": plan}})
        x = dist.shard_tensor(pictures, mesh, [dist.Shard(0)], stop_gradient=False)
    y = net(x)
    (y * y).sum().backward()
    return y, x.grad, [p.grad for p in net.parameters()]
shapes = [
    [lambda: nn.Conv2D(3, 4, 3, padding=1)],
    [lambda: nn.Conv2D(3, 4, (2, 3), stride=(1, 3))],
    [lambda: nn.Conv2D(3, 6, 5, padding=2, stride=2, groups=3, bias_attr=False), nn.ReLU, lambda: nn.Conv2D(6, 2, 3, padding=1)],
]
for layers in shapes:
    expected = columns(layers)
    for mesh in ([[0, 1]], [[0], [1]]):
        found = columns(layers, dist.ProcessMesh(mesh, dim_names=["dp", "mp"]))
        assert found[0].placements == [dist.Shard(0), dist.Shard(3)]
        for a, b in zip([*found[:2], *found[2]], [*expected[:2], *expected[2]]):
            np.testing.assert_allclose(a.numpy(), b.numpy(), 1e-9, 1e-12)

loader = [[sampan.to_tensor(np.random.RandomState(i).rand(4, 8)), sampan.ones([4, 1])] for i in range(3)]
def trained(net, adam, batches):
    for x, y in batches:
        nn.functional.mse_loss(net(x), y).backward()
        adam.step()
        adam.clear_grad()
    return [p.numpy() for p in net.parameters()]
def made():
    sampan.seed(3)
    net = nn.Linear(8, 1)
    return net, sampan.optimizer.Adam(0.1, parameters=net.parameters())
expected = trained(*made(), loader)
for found, want in zip(trained(*dist.to_distributed(*made(), loader, 2)), expected):
    np.testing.assert_allclose(found, want, 1e-9)
"""


TIED = """
import numpy as np
import sampan
import sampan.distributed as dist
from sampan import nn

sampan.set_default_dtype("float64")

class Head(nn.Layer):
    def __init__(self, weight):
        super().__init__()
        self.weight = weight
    def forward(self, x):
        return sampan.matmul(x, self.weight, transpose_y=True)

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embed, self.middle = nn.Embedding(12, 8), nn.Linear(8, 8)
        self.head = Head(self.embed.weight)
    def forward(self, ids):
        return self.head(self.middle(self.embed(ids)))

def made():
    sampan.seed(5)
    net = Net()
    return net, sampan.optimizer.AdamW(0.01, parameters=net.parameters())

rng = np.random.RandomState(0)
batches = [[sampan.to_tensor(rng.randint(0, 12, s)) for s in ((4, 6), (4, 6, 1))] for _ in range(3)]
def train(net, adam):
    losses = []
    for ids, labels in batches:
        loss = nn.functional.cross_entropy(net(ids), labels)
        loss.backward()
        adam.step()
        adam.clear_grad()
        losses.append(float(loss))
    return losses
expected = train(*made())

def cut(name, layer, mesh):
    if isinstance(layer, Head):
        layer.weight = dist.shard_tensor(layer.weight, mesh, [dist.Shard(0)])
def sharded(shard_fn):
    net, adam = made()
    before = {p.name: p for p in net.parameters()}
    net = dist.shard_layer(net, dist.ProcessMesh([0, 1], dim_names=["x"]), shard_fn)
    adam = sampan.optimizer.AdamW(0.01, parameters=net.parameters())
    return net, dist.shard_optimizer(adam)
def planned(**config):
    return dist.parallelize(*made(), mesh=dist.ProcessMesh([[0, 1]], dim_names=["pp" if "pp_config" in config else "dp", "mp"]), config=config)
def by(**plan):
    return {"mp_config": {"parallelize_plan": plan}}
for net, adam in (
    sharded(None),
    sharded(cut),
    planned(**by(embed=dist.RowWiseParallel())),
    planned(**by(head=dist.RowWiseParallel())),
    planned(dp_config={"sharding_level": 1}),
    dist.to_distributed(*made(), batches, 2)[:2],
):
    assert net.head.weight is net.embed.weight and len(net.parameters()) == 3
    np.testing.assert_allclose(train(net, adam), expected, 1e-9)
    assert net.head.weight is net.embed.weight
stages = dist.ProcessMesh([0, 1], dim_names=["pp"])
split = {"middle": dist.SplitPoint.BEGINNING}
both = {"split_spec": split, "global_spec": ["embed", "head"]}
net, adam = dist.parallelize(*made(), mesh=stages, config={"pp_config": both})
assert net.head.weight is net.embed.weight
np.testing.assert_allclose(train(net, adam), expected, 1e-9)
for make, said in (
    (lambda: dist.parallelize(*made(), mesh=stages, config={"pp_config": {"split_spec": split}}), "embed.weight and head.weight are one parameter, and cannot lie on different meshes"),
    (lambda: planned(**by(embed=dist.RowWiseParallel(), head=dist.ColWiseParallel())), "cannot be cut in different ways"),
):
    try:
        make()
        raise SystemExit("untied")
    except ValueError as e:
        assert said in str(e), e
"""

HALVES = """
import numpy as np
import sampan
import sampan.distributed as dist
from sampan import nn

rank = dist.get_rank()
# Process 2 is none of the mesh: it runs the same program, and computes nothing.
mesh = dist.ProcessMesh([0, 1], dim_names=["pp"])
x, y = sampan.to_tensor(np.random.RandomState(0).rand(4, 8).astype("float32")), sampan.zeros([4, 8])
def made(mesh):
    sampan.seed(1)
    net = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8))
    sgd = sampan.optimizer.SGD(0.1, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(10.0))
    if mesh is not None:
        net, sgd = dist.parallelize(net, sgd, mesh=mesh, config={"pp_config": {"split_spec": {"1": dist.SplitPoint.BEGINNING}}})
    told = {"amp": {"enable": True, "dtype": "float16", "init_loss_scaling": 1024.0}}
    pipeline = {"pipeline": {"enable": True, "accumulate_steps": 2}} if mesh is not None else {}
    return net, dist.to_static(net, None, nn.MSELoss(), sgd, dist.Strategy(told | pipeline))
net, alone = made(None)
expected = [float(alone(x, y)) for _ in range(3)]
after = net[1].weight.numpy()

net, model = made(mesh)
assert (net._stages.own is None) == (rank == 2)
# A gradient of the second stage is no number once: neither stage steps then, and both halve the scale.
spoil = [True]
if rank == 1:
    net[1].weight.register_hook(lambda grad: grad * float("inf") if spoil else grad)
here = net[rank].weight if rank < 2 else None
before = here.numpy() if rank < 2 else None
losses = [model(x, y)]
assert rank == 2 or (here.numpy() == before).all()
assert model._scaler.state_dict()["scale"] == 512, model._scaler.state_dict()
spoil.clear()
losses += [model(x, y) for _ in range(3)]
assert all(loss._is_initialized() == (rank < 2) for loss in losses)
if rank < 2:
    np.testing.assert_allclose([float(loss) for loss in losses[1:]], expected, 2e-3)
    assert (here.numpy() != before).any()
if rank == 1:
    np.testing.assert_allclose(here.numpy(), after, 1e-3, 1e-4)

# Columns that the last process would have none of are computed whole.
mesh = dist.ProcessMesh([0, 1, 2], dim_names=["mp"])
conv = nn.Conv2D(2, 3, 3, padding=1)
pictures = sampan.to_tensor(np.random.RandomState(0).rand(1, 2, 3, 4).astype("float32"))
want = conv(pictures).numpy()
conv, _ = dist.parallelize(nn.Sequential(conv), mesh=mesh, config={"mp_config": {"parallelize_plan": {"0": dist.ConvParallel()}}})
np.testing.assert_allclose(conv(pictures).numpy(), want, 1e-5, 1e-6)
"""


def test_from_mesh_to_mesh(tmp_path):
    run(tmp_path, BETWEEN, 4)


@pytest.mark.parametrize("processes", [2, 4])
def test_stages_train_as_one_process_does(tmp_path, processes):
    run(tmp_path, STAGES, processes)


def test_shared_weights_stay_one(tmp_path):
    run(tmp_path, TIED, 2)


def test_stages_in_half_precision_and_processes_outside_of_them(tmp_path):
    run(tmp_path, HALVES, 3)


def test_sequences_and_batches_are_cut(tmp_path):
    run(tmp_path, SEQUENCES, 2)


def test_what_a_cut_cannot_be_is_told():
    net = sampan.nn.Sequential(sampan.nn.Linear(2, 2), sampan.nn.Linear(2, 2))
    mesh = dist.ProcessMesh([0], dim_names=["pp"])
    for spec, kind, text in (
        ("layers", ValueError, "names 0 layers, for 1 stages"),
        ({"7": dist.SplitPoint.END}, ValueError, "no layer is called"),
        ({"0": dist.SplitPoint.END}, ValueError, "into 2 stages, the axis pp of the mesh has 1"),
        (3, TypeError, "split_spec is the name of a row"),
    ):
        with pytest.raises(kind, match=text):
            dist.parallelize(net, mesh=mesh, config={"pp_config": {"split_spec": spec}})
    with pytest.raises(ValueError, match="schedule_mode is one of 1F1B, FThenB"):
        dist.to_static(net, strategy=dist.Strategy({"pipeline": {"enable": True, "schedule_mode": "VPP"}}))
    with pytest.raises(ValueError, match="backend is p2p or all2all"):
        dist.ContextParallel("ring")
    with pytest.raises(ValueError, match="there are 1 processes"):
        dist.to_distributed(net, None, [], 4)


def test_how_a_tensor_lies_by_names():
    mesh = dist.ProcessMesh([[0, 1], [2, 3]], dim_names=["x", "y"])
    told = dist.DistAttr(mesh, [None, "x"])
    assert told.dims_mapping == [-1, 0] and told.placements == [dist.Shard(1), dist.Replicate()]
    with pytest.raises(ValueError, match="no axis 'z'"):
        dist.DistAttr(mesh, ["z"])
