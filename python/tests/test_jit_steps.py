"""Steps of training that `to_static(full_graph=True)` records: the same bits as without, whatever happens between them."""

import collections
import copy
import warnings

import numpy as np
import pytest

import sampan as paddle
from sampan import jit, nn

RANDOM = np.random.RandomState(0)
X = RANDOM.randn(8, 16, 12).astype("float32")
Y = RANDOM.randint(0, 5, (8, 16))


def network():
    paddle.seed(5)
    return nn.Sequential(nn.Linear(12, 32), nn.BatchNorm1D(32), nn.ReLU(), nn.Dropout(0.3), nn.Linear(32, 5))


def captured(function):
    return jit.to_static(function, full_graph=True)


def records(step) -> int:
    return len(step._captures(None))


def bits(net, *optimizers):
    tensors = list(net.state_dict().values())
    for opt in optimizers:
        tensors += [v for v in opt.state_dict().values() if isinstance(v, paddle.Tensor)]
    return [t.numpy().tobytes() for t in tensors]


def optimizers(net, which):
    parameters = net.parameters()
    if which == "schedule":
        schedule = paddle.optimizer.lr.StepDecay(0.1, step_size=3, gamma=0.5)
        return paddle.optimizer.Momentum(schedule, parameters=parameters, weight_decay=1e-3), schedule
    if which == "python schedule":

        class Own(paddle.optimizer.lr.LRScheduler):
            def get_lr(self):
                return 0.1 / (1 + self.last_epoch)

        schedule = Own(0.1)
        return paddle.optimizer.SGD(schedule, parameters=parameters), schedule
    if which == "warmup":
        schedule = paddle.optimizer.lr.LinearWarmup(0.1, 4, 0.0, 0.1)
        return paddle.optimizer.AdamW(schedule, parameters=parameters), schedule
    clip = {"global": nn.ClipGradByGlobalNorm(0.1), "norm": nn.ClipGradByNorm(0.05), "value": nn.ClipGradByValue(0.01)}
    return paddle.optimizer.Adam(0.01, parameters=parameters, grad_clip=clip.get(which)), None


@pytest.mark.parametrize("which", ["adam", "schedule", "python schedule", "warmup", "global", "norm", "value"])
def test_a_recorded_step_gives_the_same_bits(which):
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

        step = wrap(step)
        losses = [step(paddle.to_tensor(x), paddle.to_tensor(y)).numpy().tobytes() for x, y in zip(X, Y)]
        assert wrap is not captured or records(step) == 1
        return losses, bits(net, opt), paddle.get_rng_state()[0].current_seed(), paddle.rand([3]).tolist()

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert train(lambda f: f) == train(captured)


@pytest.mark.parametrize("dtype,level", [("float16", "O1"), ("float16", "O2"), ("bfloat16", "O1"), ("bfloat16", "O2")])
def test_mixed_precision_with_a_scaler(dtype, level):
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

        step = wrap(step)
        pairs = [(paddle.to_tensor(x), paddle.to_tensor(y)) for _ in range(3) for x, y in zip(X, Y)]
        losses = [step(x, y).numpy().tobytes() for x, y in pairs]
        assert wrap is not captured or records(step) >= 1
        scale = float(scaler.state_dict()["scale"][0]) if dtype == "float16" else 0.0
        return losses, bits(net, opt), scale

    assert train(lambda f: f) == train(captured)


def test_accumulation_modes_and_shapes_of_a_model():
    def train(flag):
        net = network()
        model = paddle.Model(net)
        opt = paddle.optimizer.Adam(0.01, parameters=net.parameters())
        model.prepare(opt, nn.CrossEntropyLoss(), paddle.metric.Accuracy(), capture=flag)
        paddle.seed(9)
        seen = []
        for _ in range(3):
            for i, (x, y) in enumerate(zip(X, Y)):
                n = 16 if i < 7 else 9
                seen.append(model.train_batch([x[:n]], [y[:n, None]], update=i % 3 == 2)[0][0].tobytes())
            seen.append(model.eval_batch([X[0]], [Y[0][:, None]])[0][0].tobytes())
        return seen, bits(net, opt)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert train(False) == train(True)


def test_what_happens_between_steps_counts():
    def train(wrap):
        net = network()
        opt = paddle.optimizer.Adam(0.01, parameters=net.parameters())
        scale = [1.0]
        paddle.seed(9)

        def step(x, y):
            loss = nn.functional.cross_entropy(net(x), y) * scale[0]
            loss.backward()
            opt.step()
            opt.clear_grad()
            return {"loss": loss, "all": [loss * 2]}

        step = wrap(step)
        seen = []

        def go(n):
            for i in range(n):
                found = step(paddle.to_tensor(X[i]), paddle.to_tensor(Y[i]))
                seen.extend([found["loss"].numpy().tobytes(), found["all"][0].numpy().tobytes()])

        go(5)
        opt.set_lr(0.1)
        go(2)
        state, kept = {k: v.clone() for k, v in net.state_dict().items()}, opt.state_dict()
        go(2)
        net.set_state_dict(state)
        opt.set_state_dict(kept)
        go(4)
        net.eval()
        go(2)
        net.train()
        scale[0] = 2.0
        go(5)
        net[0].weight.stop_gradient = True
        go(4)
        net[3].p = 0.5
        go(4)
        return seen, bits(net, opt)

    assert train(lambda f: f) == train(captured)


def test_a_step_without_arguments_and_without_a_result():
    def train(wrap):
        net = network()
        opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
        x, y = paddle.to_tensor(X[0]), paddle.to_tensor(Y[0])
        paddle.seed(9)

        def step():
            nn.functional.cross_entropy(net(x), y).backward()
            opt.step()
            opt.clear_grad()

        step = wrap(step)
        for _ in range(6):
            assert step() is None
        x = paddle.to_tensor(X[1])
        for _ in range(4):
            step()
        assert wrap is not captured or records(step) == 2
        return bits(net, opt)

    assert train(lambda f: f) == train(captured)


def test_a_value_that_is_read_is_named():
    net = nn.Linear(12, 1)
    opt = paddle.optimizer.SGD(0.01, parameters=net.parameters())

    @captured
    def step(x):
        loss = net(x).square().mean()
        loss.backward()
        if float(loss) > 1e9:
            return loss * 0
        opt.step()
        opt.clear_grad()
        return loss

    with pytest.warns(RuntimeWarning, match=r"step runs as it stands, because a value is read.* at .*test_jit_steps.py:\d+"):
        losses = [float(step(paddle.to_tensor(X[0]))) for _ in range(5)]
    assert losses[4] < losses[0] and records(step) == 0


def test_tensors_that_outlive_a_step_are_not_lost():
    net, hidden = nn.Linear(12, 12), [paddle.zeros([16, 12])]

    @captured
    def step(x):
        loss = net(x + hidden[0]).square().mean()
        loss.backward()
        net.clear_gradients()
        hidden[0] = (hidden[0] + 1).detach()
        return loss

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        losses = [float(step(paddle.to_tensor(X[0]))) for _ in range(6)]
    assert hidden[0].tolist()[0][0] == 6.0
    plain = [float(net(paddle.to_tensor(X[0]) + float(i)).square().mean()) for i in range(6)]
    assert np.allclose(losses, plain, rtol=1e-5)


def test_tensors_from_the_host_are_no_constants():
    count = [0]

    @captured
    def step(x):
        count[0] += 1
        x = x * paddle.to_tensor(float(count[0]))
        x.stop_gradient = False
        x.sum().backward()
        return x

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert [float(step(paddle.ones([1]))) for _ in range(6)] == [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]


def test_what_makes_every_call_another_one_is_named():
    def told(wanted, make):
        net = nn.Linear(12, 1)
        step, change = make(net)
        with pytest.warns(RuntimeWarning, match=rf"step runs as it stands, because {wanted}") as said:
            for i in range(70):
                change(i)
                step(paddle.to_tensor(X[i % 8]))
        assert len(said) == 1 and records(step) == 0

    def by_itself(net):
        seen = []

        @captured
        def step(x):
            loss = net(x).mean()
            loss.backward()
            seen.append(loss)
            return loss

        return step, lambda i: None

    def by_others(net):
        table = {"scale": [1.0]}

        @captured
        def step(x):
            loss = net(x).mean() * table["scale"][0]
            loss.backward()
            return loss

        return step, lambda i: table["scale"].__setitem__(0, float(i))

    def by_a_tensor_in_a_list(net):
        state = [paddle.zeros([1])]

        @captured
        def step(x):
            loss = (net(x) + state[0]).mean()
            loss.backward()
            return loss

        # Alike in its values, and yet another one.
        return step, lambda i: state.__setitem__(0, paddle.zeros([1]))

    def by_an_attribute(net):
        net.count = 0

        @captured
        def step(x):
            net.count += 1
            loss = net(x).mean()
            loss.backward()
            return loss

        return step, lambda i: None

    line = r"\(.*test_jit_steps.py:\d+\) is different"
    told(rf"`seen` {line}", by_itself)
    told(rf"`table` {line}", by_others)
    told(rf"`state` {line}", by_a_tensor_in_a_list)
    told(rf"`count` {line}", by_an_attribute)


def test_what_was_different_every_time_and_is_no_more_is_recorded():
    net, seen = nn.Linear(12, 1), []

    @captured
    def step(x):
        loss = net(x).mean() + len(seen)
        loss.backward()
        net.clear_gradients()
        return loss

    x = paddle.to_tensor(X[0])
    plain = float(net(x).mean())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for i in range(300):
            assert float(step(x)) == pytest.approx(plain + len(seen), rel=1e-5)
            if i < 150:
                seen.append(i)
    assert records(step) == 1


def test_lists_that_change_now_and_then_are_followed():
    net, table = nn.Linear(12, 1), {"scale": [1.0]}

    @captured
    def step(x):
        loss = net(x).mean() * table["scale"][0]
        loss.backward()
        net.clear_gradients()
        return loss

    x = paddle.to_tensor(X[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in (1.0, 2.0, 4.0):
            table["scale"][0] = scale
            assert {float(step(x)) for _ in range(5)} == {float(net(x).mean()) * scale}
    assert records(step) == 3


class Config(dict):
    """Settings with dots, as programs write them; nothing but reading them is allowed."""

    loss = property(lambda self: self["loss"])

    def no(self, *args):
        raise AssertionError("nobody asks")

    __iter__ = __eq__ = __copy__ = __reduce_ex__ = keys = values = items = no


class Names(list):
    pass


Settings = collections.namedtuple("Settings", "loss")


@pytest.mark.parametrize(
    "table, inner",
    [
        (Config(loss={"w": 1.0}), lambda t: t.loss),
        ({"a": Config(loss=Config(w=1.0))}, lambda t: t["a"].loss),
        (collections.OrderedDict(loss={"w": 1.0}), lambda t: t["loss"]),
        (collections.defaultdict(dict, loss={"w": 1.0}), lambda t: t["loss"]),
        (Settings({"w": 1.0}), lambda t: t.loss),
        (Names([Names([{"w": 1.0}])]), lambda t: t[0][0]),
        (collections.deque([{"w": 1.0}]), lambda t: t[0]),
        ({"a": {"b": {"c": {"d": {"w": 1.0}}}}}, lambda t: t["a"]["b"]["c"]["d"]),
    ],
)
def test_lists_of_other_classes_are_looked_into(table, inner):
    net, x = nn.Linear(12, 1), paddle.to_tensor(X[0])

    @captured
    def step(x):
        loss = net(x).mean() * inner(table)["w"]
        loss.backward()
        net.clear_gradients()
        return loss

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for scale in (1.0, 2.0, 4.0):
            dict.__setitem__(inner(table), "w", scale)
            assert {float(step(x)) for _ in range(5)} == {float(net(x).mean()) * scale}
    assert records(step) == 3


def test_sets_are_compared_and_tensors_in_lists_are_the_same_ones():
    net, x, names = nn.Linear(12, 1), paddle.to_tensor(X[0]), {"a"}
    held = collections.OrderedDict(scale=[paddle.to_tensor(2.0)])

    @captured
    def step(x):
        loss = net(x).mean() * len(names) * held["scale"][0]
        loss.backward()
        net.clear_gradients()
        return loss

    once = float(net(x).mean())
    assert {float(step(x)) for _ in range(5)} == {once * 2}
    names.add("b")
    assert {float(step(x)) for _ in range(5)} == {once * 4}
    assert records(step) == 2
    held["scale"][0] = paddle.to_tensor(2.0)
    assert {float(step(x)) for _ in range(5)} == {once * 4}
    assert records(step) == 3


def test_outputs_stay_and_wrong_labels_are_named():
    net = nn.Linear(3, 3)

    @captured
    def step(x, y):
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        net.clear_gradients()
        return loss

    good, x = paddle.to_tensor([0, 1, 2, 0]), paddle.ones([4, 3])
    kept = [step(x * float(i), good) for i in range(6)]
    assert len({k.numpy().tobytes() for k in kept}) == 6 and records(step) == 1
    with pytest.raises(IndexError, match="7"):
        step(x, paddle.to_tensor([0, 1, 7, 0]))
    assert step(x, good).numpy().tobytes() == kept[1].numpy().tobytes()


def test_two_networks_and_methods():
    class Trainer:
        def __init__(self):
            paddle.seed(1)
            self.factor = 1.0
            self.a, self.b = nn.Linear(12, 12), nn.Linear(12, 1)
            self.first = paddle.optimizer.Adam(0.01, parameters=self.a.parameters())
            self.second = paddle.optimizer.SGD(0.01, parameters=self.b.parameters())

        def step(self, x):
            out = self.b(self.a(x))
            loss = out.square().mean() * self.factor
            loss.backward()
            self.first.step()
            self.first.clear_grad()
            again = self.b(self.a(x).detach()).mean()
            again.backward()
            self.second.step()
            self.second.clear_grad()
            return loss, again

    def train(wrap):
        trainer = Trainer()
        step = wrap(trainer.step)
        seen = [[t.numpy().tobytes() for t in step(paddle.to_tensor(x))] for x in X]
        trainer.factor = 3.0
        seen += [[t.numpy().tobytes() for t in step(paddle.to_tensor(x))] for x in X]
        return seen, bits(trainer.a, trainer.first), bits(trainer.b, trainer.second)

    assert train(lambda f: f) == train(captured)


@pytest.mark.parametrize("which", ["encoder", "lstm", "gru"])
def test_sequences(which):
    def make():
        paddle.seed(3)
        if which == "encoder":
            return nn.TransformerEncoder(nn.TransformerEncoderLayer(12, 2, 24), 2)
        return nn.LSTM(12, 5) if which == "lstm" else nn.GRU(12, 5, num_layers=2, dropout=0.2)

    def train(wrap):
        net = make()
        opt = paddle.optimizer.AdamW(0.01, parameters=net.parameters())

        def step(x):
            out = net(x)
            out = out if which == "encoder" else out[0]
            loss = (out * out).mean()
            loss.backward()
            opt.step()
            opt.clear_grad()
            return loss

        step = wrap(step)
        losses = [step(paddle.to_tensor(x[None])).numpy().tobytes() for x in X]
        assert wrap is not captured or records(step) == 1
        return losses, bits(net, opt), paddle.rand([2]).tolist()

    assert train(lambda f: f) == train(captured)


def test_a_recorded_function_is_copied_and_switched_off():
    net = network()
    opt = paddle.optimizer.SGD(0.1, parameters=net.parameters())
    # Not a list, whose changes would make every call another one.
    calls = np.zeros(1, int)

    @captured
    def step(x, y):
        calls[0] += 1
        loss = nn.functional.cross_entropy(net(x), y)
        loss.backward()
        opt.step()
        opt.clear_grad()
        return loss

    x, y = paddle.to_tensor(X[0]), paddle.to_tensor(Y[0])
    for _ in range(6):
        step(x, y=y)
    assert calls[0] == 3 and records(step) == 1
    other = copy.copy(step)
    other(x, y=y)
    assert calls[0] == 4 and records(step) == 1, "a copy records for itself"
    jit.enable_to_static(False)
    try:
        step(x, y=y)
        assert calls[0] == 5
    finally:
        jit.enable_to_static(True)
    step(x, y=y)
    assert calls[0] == 5
    with pytest.raises(TypeError, match="argument"):
        step(x, y, x)


def test_a_sparse_table_and_batches_of_one():
    numbers = [[0], [1, 2], [2], [2, 2], [4], [0, 3], [1]]

    def train(wrap):
        paddle.seed(5)
        net = nn.Sequential(nn.Embedding(5, 12, sparse=True), network())
        opt = paddle.optimizer.Adam(0.1, parameters=net.parameters(), lazy_mode=True)

        def step(ids):
            y = net(ids)
            loss = nn.functional.binary_cross_entropy_with_logits(y, nn.functional.sigmoid(2 * y))
            loss.backward()
            opt.step()
            opt.clear_grad()
            return loss

        step = wrap(step)
        losses = [step(paddle.to_tensor(ids)).numpy().tobytes() for ids in numbers]
        assert wrap is not captured or records(step) == 2
        return losses, bits(net, opt)

    assert train(lambda f: f) == train(captured)
