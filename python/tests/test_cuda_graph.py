"""Steps that are recorded and started as a whole; without a GPU the functions are simply called."""

import warnings

import numpy as np
import pytest

import sampan as paddle
from sampan import nn
from sampan.device.cuda import cuda_graph

needs_gpu = pytest.mark.skipif(not paddle.device.is_available(), reason="there is no GPU")
RANDOM = np.random.RandomState(0)
X = RANDOM.randn(8, 16, 12).astype("float32")
Y = RANDOM.randint(0, 5, (8, 16))


@pytest.fixture
def gpu():
    paddle.set_device("gpu")
    yield
    paddle.set_device("cpu")


def network():
    paddle.seed(5)
    return nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1D(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 5))


def bits(net, opt=None):
    tensors = list(net.state_dict().values())
    if opt is not None:
        tensors += [v for v in opt.state_dict().values() if isinstance(v, paddle.Tensor)]
    return [t.numpy().tobytes() for t in tensors]


def test_without_a_gpu_functions_are_called():
    if paddle.device.is_available():
        pytest.skip("there is a GPU")
    calls = []

    @cuda_graph
    def step(x, scale=1.0, more=()):
        calls.append(scale)
        return {"sum": (x * scale).sum(), "more": [m + 1 for m in more]}

    for i in range(4):
        result = step(np.ones([2, 3], "float32"), scale=float(i), more=[paddle.ones([1])])
        assert float(result["sum"]) == 6.0 * i and result["more"][0].tolist() == [2.0]
    assert len(calls) == 4 and step.nodes() == []


def test_a_model_takes_the_flag_anywhere():
    net = nn.Linear(3, 2)
    model = paddle.Model(net)
    model.prepare(paddle.optimizer.SGD(0.1, parameters=net.parameters()), nn.MSELoss(), cuda_graph=True)
    batches = [(np.ones([4, 3], "float32"), np.zeros([4, 2], "float32"))] * 4
    losses = [model.train_batch([x], [y])[0] for x, y in batches]
    assert losses[3] < losses[0]


def optimizers(net, which):
    parameters = net.parameters()
    if which == "schedule":
        schedule = paddle.optimizer.lr.StepDecay(0.1, step_size=3, gamma=0.5)
        return paddle.optimizer.Momentum(schedule, parameters=parameters, weight_decay=1e-3), schedule
    if which == "warmup":
        schedule = paddle.optimizer.lr.LinearWarmup(0.1, 4, 0.0, 0.1)
        return paddle.optimizer.AdamW(schedule, parameters=parameters), schedule
    clip = {"global": nn.ClipGradByGlobalNorm(0.1), "norm": nn.ClipGradByNorm(0.05), "value": nn.ClipGradByValue(0.01)}
    return paddle.optimizer.Adam(0.01, parameters=parameters, grad_clip=clip.get(which)), None


@needs_gpu
@pytest.mark.parametrize("which", ["adam", "schedule", "warmup", "global", "norm", "value"])
def test_a_recorded_step_gives_the_same_bits(gpu, which):
    def train(wrap):
        net = network()
        opt, schedule = optimizers(net, which)
        paddle.seed(9)

        def step(x, y):
            loss = nn.functional.cross_entropy(net(x), y)
            loss.backward()
            opt.step()
            opt.clear_grad()
            if schedule is not None:
                schedule.step()
            return loss

        graphed = wrap(step)
        losses = [graphed(paddle.to_tensor(x), paddle.to_tensor(y)).numpy().tobytes() for x, y in zip(X, Y)]
        return losses, bits(net, opt), getattr(graphed, "nodes", list)()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plain, recorded = train(lambda f: f), train(cuda_graph)
    assert plain[:2] == recorded[:2]
    assert len(recorded[2]) == 1 and recorded[2][0] > 5


@needs_gpu
@pytest.mark.parametrize("dtype,level", [("float16", "O1"), ("float16", "O2"), ("bfloat16", "O1"), ("bfloat16", "O2")])
def test_mixed_precision_with_a_scaler(gpu, dtype, level):
    def train(wrap):
        net = network()
        opt = paddle.optimizer.Adam(0.01, parameters=net.parameters())
        if level == "O2":
            net, opt = paddle.amp.decorate(net, opt, level="O2", dtype=dtype)
        # So large that the first steps are left out.
        scaler = paddle.amp.GradScaler(enable=dtype == "float16", init_loss_scaling=2.0**26, incr_every_n_steps=2)
        paddle.seed(9)

        def step(x, y):
            with paddle.amp.auto_cast(level=level, dtype=dtype):
                loss = nn.functional.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            opt.clear_grad()
            return loss

        graphed = wrap(step)
        losses = [graphed(x, y).numpy().tobytes() for _ in range(3) for x, y in zip(map(paddle.to_tensor, X), map(paddle.to_tensor, Y))]
        scale = float(scaler.state_dict()["scale"][0]) if dtype == "float16" else 0.0
        return losses, bits(net, opt), scale, getattr(graphed, "nodes", list)()

    plain, recorded = train(lambda f: f), train(cuda_graph)
    assert plain[2] == recorded[2]
    assert plain[0] == recorded[0] and plain[1] == recorded[1]
    assert len(recorded[3]) == 1


@needs_gpu
def test_accumulation_modes_shapes_and_arrays(gpu):
    def train(flag):
        net = network()
        model = paddle.Model(net)
        opt = paddle.optimizer.Adam(0.01, parameters=net.parameters())
        model.prepare(opt, nn.CrossEntropyLoss(), paddle.metric.Accuracy(), cuda_graph=flag)
        paddle.seed(9)
        seen = []
        for epoch in range(3):
            for i, (x, y) in enumerate(zip(X, Y)):
                n = 16 if i < 7 else 9
                seen.append(model.train_batch([x[:n]], [y[:n, None]], update=i % 3 == 2)[0][0].tobytes())
            seen.append(model.eval_batch([X[0]], [Y[0][:, None]])[0][0].tobytes())
        return seen, bits(net, opt)

    assert train(False) == train(True)


@needs_gpu
def test_outputs_stay_and_hosts_writes_count(gpu):
    weight = paddle.ones([3])

    @cuda_graph
    def double(x):
        return x * weight * 2

    kept = [double(np.full([3], i, "float32")) for i in range(6)]
    assert [k.tolist()[0] for k in kept] == [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]
    weight.set_value(np.full([3], 10, "float32"))
    assert double(np.ones([3], "float32")).tolist() == [20.0] * 3
    assert len(double.nodes()) == 1


@needs_gpu
def test_a_value_that_is_read_is_named_and_nothing_is_wrong(gpu):
    net = nn.Linear(3, 1)

    @cuda_graph
    def step(x):
        loss = net(x).mean()
        if float(loss) > 1e9:
            return loss * 0
        return loss

    with pytest.warns(UserWarning, match=r"not recorded but called: a value is read on the host at .*test_cuda_graph.py:\d+"):
        values = [float(step(np.full([2, 3], i, "float32"))) for i in range(5)]
    assert np.allclose(values, [float(net(paddle.full([2, 3], float(i))).mean()) for i in range(5)])


@needs_gpu
def test_a_read_that_comes_late_goes_back(gpu):
    net = nn.Linear(3, 1)
    opt = paddle.optimizer.Adam(0.1, parameters=net.parameters())
    calls = []

    def step(x):
        calls.append(1)
        loss = net(paddle.nn.functional.dropout(x, 0.5)).mean()
        loss.backward()
        opt.step()
        opt.clear_grad()
        if len(calls) > 2:
            float(loss)
        return loss

    def train(wrap):
        calls.clear()
        net.set_state_dict({k: paddle.ones(v.shape) for k, v in net.state_dict().items()})
        opt.set_state_dict(paddle.optimizer.Adam(0.1, parameters=net.parameters()).state_dict())
        paddle.seed(1)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            graphed = wrap(step)
            return [graphed(paddle.full([2, 3], float(i))).numpy().tobytes() for i in range(6)], bits(net)

    assert train(lambda f: f) == train(cuda_graph)


@needs_gpu
def test_frozen_layers_and_modes_are_recorded_apart(gpu):
    net = network()
    opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())

    @cuda_graph
    def step(x, y):
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    def go(n):
        return [step(X[i], Y[i]) for i in range(n)]

    go(4)
    net[0].weight.stop_gradient = True
    before = net[0].weight.numpy()
    go(3)
    assert (net[0].weight.numpy() == before).all() and len(step.nodes()) == 2
    net.eval()
    first, second = step(X[0], Y[0]), step(X[0], Y[0])
    assert float(second) < float(first) and len(step.nodes()) == 3


@needs_gpu
def test_wrong_labels_are_still_named(gpu):
    @cuda_graph
    def loss(x, y):
        return nn.functional.cross_entropy(x, y)

    good = np.zeros([4], "int64")
    for _ in range(4):
        loss(np.zeros([4, 3], "float32"), good)
    with pytest.raises(IndexError, match="index 7 at position 2 of cross_entropy"):
        loss(np.zeros([4, 3], "float32"), np.array([0, 1, 7, 2]))
        paddle.device.synchronize()
    assert np.isfinite(float(loss(np.zeros([4, 3], "float32"), good)))


@needs_gpu
def test_events_measure(gpu):
    begin, end = paddle.device.Event(enable_timing=True), paddle.device.Event(enable_timing=True)
    x = paddle.randn([2000, 2000])
    begin.record()
    for _ in range(20):
        x = x @ x * 1e-3
    end.record()
    end.synchronize()
    assert end.query() and 0 < begin.elapsed_time(end) < 10_000
