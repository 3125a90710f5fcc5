"""Networks put on a mesh by a plan train as one process trains them; states go to disk and to other placements."""

import pathlib
import sys

import pytest

import sampan
import sampan.distributed as dist

sys.path.insert(0, str(pathlib.Path(__file__).parent))
from test_distributed_auto import run  # noqa: E402

PLANS = """
import numpy as np
import sampan
import sampan.distributed as dist
from sampan import nn

sampan.set_default_dtype("float64")
rank, size = dist.get_rank(), dist.get_world_size()
mesh = dist.ProcessMesh([[0, 1]], dim_names=["dp", "mp"])

class Block(nn.Layer):
    def __init__(self):
        super().__init__()
        self.norm, self.up, self.down = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)
    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(self.norm(x))))

class Net(nn.Layer):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(12, 8)
        self.blocks = nn.LayerList([Block(), Block()])
        self.head = nn.Linear(8, 12)
    def forward(self, ids):
        x = self.embed(ids)
        for block in self.blocks:
            x = block(x)
        return self.head(x)

def made():
    sampan.seed(5)
    net = Net()
    return net, sampan.optimizer.AdamW(0.01, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(1.0))

rng = np.random.RandomState(0)
batches = [(rng.randint(0, 12, (4, 6)), rng.randint(0, 12, (4, 6, 1))) for _ in range(4)]

def train(net, optimizer, whole=lambda loss: loss):
    losses = []
    for ids, labels in batches:
        loss = nn.functional.cross_entropy(net(sampan.to_tensor(ids)), sampan.to_tensor(labels))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        losses.append(float(loss))
    return losses

net, adam = made()
expected = train(net, adam)
values = {k: v.numpy() for k, v in net.state_dict().items()}
layers = {"blocks.*.up": dist.ColWiseParallel(), "blocks.*.down": dist.RowWiseParallel()}
seen = []

def watch(process_mesh):
    def hook(layer, inputs, outputs=None):
        seen.append(process_mesh.dim_names)
        return None
    return hook

plans = {
    "layers": layers,
    "all": layers | {"embed": dist.ColWiseParallel(gather_output=True), "head.weight": dist.ColWiseParallel(gather_output=True)},
    "rows": {"embed": dist.RowWiseParallel(), "blocks.[01].up": dist.RowWiseParallel(is_input_parallel=False)},
    "sequence": layers | {
        "embed": dist.SequenceParallelBegin(),
        "head": dist.SequenceParallelEnd(),
    },
    "one layer": layers | {"blocks.0.norm": dist.SequenceParallelEnable()},
    "hooks": {"head": [dist.PrepareLayerInput(watch), dist.PrepareLayerOutput(watch)]},
}
for name, plan in plans.items():
    for level in (0, 1, 2, 3):
        net, adam = made()
        config = {"mp_config": {"parallelize_plan": plan}, "dp_config": {"sharding_level": level}}
        net, adam = dist.parallelize(net, adam, mesh=mesh, config=config)
        np.testing.assert_allclose(train(net, adam), expected, 1e-9, err_msg=f"{name} {level}")
        for key, value in net.state_dict().items():
            np.testing.assert_allclose(value.numpy(), values[key], 1e-7, 1e-9, err_msg=f"{name} {level} {key}")
    if name == "layers":
        up = net.blocks[0].up
        assert up.weight._local_shape == [8, 8] and up.bias._local_shape == [8] and up.weight.shape == [8, 16]
assert seen and seen[0] == ["dp", "mp"]

# States on disk, cut otherwise when they come back.
dist.save_state_dict({"net": net.state_dict()}, "saved")
other, _ = dist.parallelize(Net(), mesh=mesh, config={"mp_config": {"parallelize_plan": layers}})
dist.load_state_dict({"net": other.state_dict()}, "saved")
for key, value in other.state_dict().items():
    assert (value.numpy() == net.state_dict()[key].numpy()).all(), key
plain = Net()
dist.load_state_dict({"net": plain.state_dict()}, "saved")
assert (plain.head.weight.numpy() == net.head.weight.numpy()).all()

# One call is one step.
net, adam = made()
net, adam = dist.parallelize(net, adam, mesh=mesh, config={"mp_config": {"parallelize_plan": layers}})
strategy = dist.Strategy({"gradient_merge": {"enable": True, "k_steps": 2}})
model = dist.to_static(net, None, lambda out, y: nn.functional.cross_entropy(out, y), adam, strategy)
before = net.head.bias.numpy()
model(*map(sampan.to_tensor, batches[0]))
assert (net.head.bias.numpy() == before).all()
model(*map(sampan.to_tensor, batches[1]))
assert (net.head.bias.numpy() != before).any()
model.eval()
loss = model(*map(sampan.to_tensor, batches[0]))
assert loss.stop_gradient and net.head.bias.grad is None or not net.head.bias.grad.numpy().any()
model.predict()
assert model(sampan.to_tensor(batches[0][0]))["outs"][0].shape == [4, 6, 12]
state = model.state_dict()
assert any("moment1" in name for name in state) and "head.weight" in state
"""


def test_plans_train_as_one_process_does(tmp_path):
    run(tmp_path, PLANS, 2)


def test_one_call_is_one_step():
    sampan.seed(0)
    net = sampan.nn.Linear(3, 1)
    sgd = sampan.optimizer.SGD(0.1, parameters=net.parameters())
    model = dist.to_static(net, None, sampan.nn.MSELoss(), sgd)
    x, y = sampan.ones([4, 3]), sampan.zeros([4, 1])
    losses = [model(x, y).item() for _ in range(5)]
    assert losses == sorted(losses, reverse=True) and losses[-1] < losses[0]


def test_what_a_plan_cannot_do_is_told():
    net = sampan.nn.Linear(2, 2)
    mesh = dist.ProcessMesh([0], dim_names=["dp"])
    with pytest.raises(ValueError, match="an axis named 'pp'"):
        dist.parallelize(net, mesh=mesh, config={"pp_config": {"split_spec": "layers"}})
    with pytest.raises(ValueError, match="an axis named 'mp'"):
        dist.parallelize(net, mesh=mesh, config={"mp_config": {"parallelize_plan": {}}})
    with pytest.raises(ValueError, match="sharding_level is 0, 1, 2 or 3"):
        sgd = sampan.optimizer.SGD(0.1, parameters=net.parameters())
        dist.parallelize(net, sgd, mesh, {"dp_config": {"sharding_level": 7}})
    with pytest.raises(TypeError, match="a function of a mesh"):
        dist.PrepareLayerInput(None)
    with pytest.raises(FileNotFoundError, match="save_state_dict writes it"):
        dist.load_state_dict({}, "nowhere")
