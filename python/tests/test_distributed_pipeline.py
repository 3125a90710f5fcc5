"""Networks that are cut into stages: micro-batches through several processes train what whole batches train in one."""

import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

import sampan
from sampan.distributed import fleet
from sampan.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer, SharedLayerDesc
from sampan.distributed.fleet.meta_parallel.pipeline_layers import segments

HOME = str(pathlib.Path(sampan.__file__).parents[1])

PROGRAM = """
import sys
import numpy as np
import sampan
import sampan.distributed as dist
from sampan import nn
from sampan.distributed import fleet
from sampan.distributed.fleet.meta_parallel import LayerDesc, PipelineLayer, SharedLayerDesc

out, stages, copies, recompute = sys.argv[1], *map(int, sys.argv[2:])

class Block(nn.Layer):
    "Gives two tensors on, one of which has no gradient."
    def __init__(self, size):
        super().__init__()
        self.up, self.norm = nn.Linear(size, size), nn.LayerNorm(size)
    def forward(self, x):
        h, marks = x if isinstance(x, tuple) else (x, (x.detach() > 0).astype("int64"))
        return h + self.norm(nn.functional.gelu(self.up(h))) * (marks.astype(h.dtype) + 1), marks

def scores(layer, x):
    return nn.functional.linear(x[0], layer.weight.t())

strategy = fleet.DistributedStrategy()
strategy.hybrid_configs = {"dp_degree": copies, "pp_degree": stages}
strategy.pipeline_configs = {"accumulate_steps": 4, "micro_batch_size": 2}
fleet.init(is_collective=True, strategy=strategy)
layers = [
    SharedLayerDesc("words", nn.Embedding, None, "weight", 12, 8),
    LayerDesc(Block, 8), LayerDesc(Block, 8), LayerDesc(Block, 8),
    SharedLayerDesc("words", nn.Embedding, scores, "weight", 12, 8),
]
more = {"recompute_interval": 1, "recompute_ctx": {}} if recompute else {}
inner = PipelineLayer(layers, num_stages=stages, loss_fn=nn.CrossEntropyLoss(), seg_method="layer:Block|Embedding" if stages == 5 else "uniform", **more)
model = fleet.distributed_model(inner)
rate = sampan.optimizer.lr.StepDecay(0.01, 2)
adam = sampan.optimizer.AdamW(rate, parameters=model.parameters(), grad_clip=nn.ClipGradByGlobalNorm(0.2))
adam = fleet.distributed_optimizer(adam)
rng = np.random.RandomState(0)
groups = fleet.get_hybrid_communicate_group()
share, losses = groups.get_data_parallel_rank(), []
for _ in range(4):
    x, y = rng.randint(0, 12, (8 * copies, 5)), rng.randint(0, 12, (8 * copies, 5, 1))
    mine = slice(share * 8, share * 8 + 8)
    batch = [sampan.to_tensor(x[mine]), sampan.to_tensor(y[mine])]
    losses.append(model.train_batch(batch, adam, rate).item())
losses.append(model.eval_batch(batch, compute_loss=True).item())
outputs = model.eval_batch(batch)
assert len(outputs) == 4
if groups.get_stage_id() == stages - 1:
    assert outputs[0].shape == [2, 5, 12]
states: list = []
dist.all_gather_object(states, {k: v.numpy().tolist() for k, v in inner.state_dict().items()})
if dist.get_rank() == 0:
    shared = [np.array(s["shared_layers.words.weight"]) for s in states if "shared_layers.words.weight" in s]
    assert all((other == shared[0]).all() for other in shared)
    found = {k: np.array(v) for s in states for k, v in s.items()}
    np.savez(out, losses=losses, **found)
"""


def run(folder, processes, out, *arguments):
    (folder / "job.py").write_text(PROGRAM)
    launch = ["-m", "sampan.distributed.launch", "--nproc_per_node", str(processes)] if processes > 1 else []
    command = [sys.executable, *launch, "job.py", out, *map(str, arguments)]
    env = os.environ | {"PYTHONPATH": HOME, "SAMPAN_TIMEOUT": "60"}
    done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True, timeout=100)
    assert done.returncode == 0, done.stdout + done.stderr
    return dict(np.load(folder / f"{out}.npz"))


def whole(copies):
    """The same network, trained on whole batches without any of this."""
    nn = sampan.nn
    state = sampan.get_rng_state()
    built = []
    for index, make in enumerate([lambda: nn.Embedding(12, 8), *[lambda: (nn.Linear(8, 8), nn.LayerNorm(8))] * 3]):
        sampan.seed(1234 + index)
        built.append(make())
    sampan.set_rng_state(state)
    words, *blocks = built
    parameters = [*words.parameters(), *(p for block in blocks for layer in block for p in layer.parameters())]
    rate = sampan.optimizer.lr.StepDecay(0.01, 2)
    adam = sampan.optimizer.AdamW(rate, parameters=parameters, grad_clip=nn.ClipGradByGlobalNorm(0.2))

    def loss(x, y):
        h = words(sampan.to_tensor(x))
        marks = (h.detach() > 0).astype("float32") + 1
        for up, norm in blocks:
            h = h + norm(nn.functional.gelu(up(h))) * marks
        return nn.functional.cross_entropy(nn.functional.linear(h, words.weight.t()), sampan.to_tensor(y))

    rng = np.random.RandomState(0)
    losses = []
    for _ in range(4):
        x, y = rng.randint(0, 12, (8 * copies, 5)), rng.randint(0, 12, (8 * copies, 5, 1))
        value = loss(x, y)
        value.backward()
        losses.append(loss(x[:8], y[:8]).item())  # what the first of several copies says
        adam.step()
        adam.clear_grad()
        rate.step()
    losses.append(loss(x[:8], y[:8]).item())
    found = {"losses": np.array(losses), "shared_layers.words.weight": words.weight.numpy()}
    for index, (up, norm) in enumerate(blocks):
        for name, p in [
            ("up.weight", up.weight),
            ("up.bias", up.bias),
            ("norm.weight", norm.weight),
            ("norm.bias", norm.bias),
        ]:
            found[f"{index + 1}.{name}"] = p.numpy()
    return found


@pytest.mark.parametrize("stages, copies, recompute", [(1, 1, 0), (2, 1, 0), (3, 1, 1), (2, 2, 0)])
def test_stages_train_what_one_process_trains(tmp_path, stages, copies, recompute):
    found, expected = run(tmp_path, stages * copies, "out", stages, copies, recompute), whole(copies)
    assert sorted(found) == sorted(expected)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-5, err_msg=name)


def test_where_a_network_is_cut():
    layers = [LayerDesc(sampan.nn.ReLU) for _ in range(7)]
    # What Paddle 3.3.1's SegmentLayers answers.
    assert segments(layers, 2, "uniform") == [0, 3, 7]
    assert segments(layers, 3, "uniform") == [0, 2, 4, 7]
    assert segments(layers, 4, "uniform") == [0, 1, 3, 5, 7]
    mixed = [LayerDesc(sampan.nn.Linear, 1, 1) if i in (1, 2, 4, 5) else LayerDesc(sampan.nn.ReLU) for i in range(7)]
    assert segments(mixed, 2, "layer:Linear") == [0, 3, 7]
    assert segments(mixed, 2, [0, 5]) == segments(mixed, 2, [0, 5, 7]) == [0, 5, 7]
    for method, what in [("layer:Conv", "0 layers match"), ([0, 9], "does not cut"), ("even", "uniform, layer:Name")]:
        with pytest.raises(ValueError, match=what):
            segments(mixed, 2, method)
    with pytest.raises(ValueError, match="1 layers cannot be cut into 2"):
        segments(mixed[:1], 2, "uniform")


def test_what_cannot_be_is_told():
    with pytest.raises(TypeError, match="subclass of nn.Layer"):
        LayerDesc(sampan.nn.ReLU())
    assert repr(LayerDesc(sampan.nn.Linear, 1, out_features=2)) == "Linear(1, out_features=2)"
    with pytest.raises(ValueError, match="num_stages or topology"):
        PipelineLayer([LayerDesc(sampan.nn.ReLU)])
    with pytest.raises(NotImplementedError, match="one forward, one backward"):
        PipelineLayer([LayerDesc(sampan.nn.ReLU)], num_stages=1, num_virtual_pipeline_stages=2)
    strategy = fleet.DistributedStrategy()
    strategy.pipeline_configs = {"accumulate_steps": 2, "micro_batch_size": 3}
    fleet.init(is_collective=True, strategy=strategy)
    words = SharedLayerDesc("one", sampan.nn.Linear, None, ["weight", "bias"], 2, 2)
    model = fleet.distributed_model(PipelineLayer([words, words], num_stages=1, loss_fn=sampan.nn.MSELoss()))
    sgd = sampan.optimizer.SGD(0.1, parameters=model.parameters())
    assert len(model.parameters()) == 2
    x = sampan.ones([6, 2])
    with pytest.raises(ValueError, match="micro_batch_size 3 [*] accumulate_steps 2 samples, inputs have 5"):
        model.train_batch([x[:5], x], sgd)
    with pytest.raises(ValueError, match="no loss function 1"):
        model.train_batch([x, x], sgd, loss_fn_idx=1)
    with pytest.raises(RuntimeError, match="train_batch"):
        model(x)
    each = model.train_batch([x, x], sgd, return_micro_batch_loss=True)
    assert each.shape == [2] and model.train_batch([x, x], sgd).item() < each.sum().item()


def test_recompute_of_layers_in_a_row():
    from sampan.distributed.fleet.utils import recompute_sequential

    sampan.seed(1)
    net = sampan.nn.Sequential(*[sampan.nn.Linear(3, 3) for _ in range(5)])
    x = sampan.randn([2, 3])
    expected = net(x)
    expected.sum().backward()
    grads = [p.grad.numpy() for p in net.parameters()]
    for segments in (1, 2, 5, 9):
        net.clear_gradients()
        found = recompute_sequential({"segments": segments}, net, x)
        found.sum().backward()
        assert (found == expected).all().item()
        for p, grad in zip(net.parameters(), grads):
            np.testing.assert_array_equal(p.grad.numpy(), grad)


def test_recompute_is_the_function():
    from sampan.distributed.fleet.utils import recompute

    sampan.seed(3)
    net = sampan.nn.Sequential(sampan.nn.Linear(4, 4), sampan.nn.Dropout(0.5), sampan.nn.Linear(4, 2))
    grads = []
    for call in (
        net,
        lambda x: recompute(net, x),
        lambda x: recompute(lambda a, scale: (net(a * scale),), x, scale=1.0)[0],
    ):
        sampan.seed(5)
        x = sampan.ones([3, 4])
        x.stop_gradient = False
        call(x).square().sum().backward()
        grads.append([x.grad.numpy(), *(p.grad.numpy() for p in net.parameters())])
        net.clear_gradients()
    for first, *others in zip(*grads):
        for other in others:
            np.testing.assert_array_equal(first, other)
    with pytest.raises(TypeError, match="gives a tensor"):
        recompute(lambda x: 3, sampan.ones([1]))
