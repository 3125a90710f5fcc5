"""Optimizers: steps against Paddle's numbers, groups and settings, states, optimizers of the user's own."""

import inspect

import numpy as np
import pytest

import sampan
from sampan import optimizer as O
from sampan.regularizer import L1Decay, L2Decay

# Three steps from [1, -2] with PaddlePaddle 3.3.1.
PADDLE = [
    ("SGD", {}, [0.925, -2.2750001]),
    ("Momentum", {"use_nesterov": True}, [0.7441, -2.6197002]),
    ("Adagrad", {}, [0.9228996, -2.24103]),
    ("Adam", {}, [0.8393237, -2.2741253]),
    ("AdamW", {"weight_decay": 0.1}, [0.811879, -2.2118011]),
    ("Adamax", {}, [0.856372, -2.2222817]),
    ("ASGD", {"batch_num": 2}, [0.8875, -2.1999998]),
    ("RAdam", {}, [0.8564382, -2.1838901]),
    ("NAdam", {}, [0.9082601, -2.2692034]),
    ("RMSProp", {"centered": True, "momentum": 0.5}, [0.4015949, -3.5750077]),
    ("Adadelta", {}, [0.9996846, -2.0014007]),
    ("Lamb", {}, [0.6713928, -2.6057062]),
    ("Rprop", {"learning_rate_range": (0.001, 0.5)}, [0.85, -2.3639998]),
]
GRADS = ([1.0, 0.5], [-0.5, 0.25], [0.25, 2.0])


def weight(values=(1.0, -2.0)):
    p = sampan.nn.Linear(1, len(values), bias_attr=False).weight
    p.set_value([list(values)])
    return p


def step(opt, *pairs):
    for p, g in pairs:
        p.grad = sampan.to_tensor([list(g)])
    opt.step()


@pytest.mark.parametrize("name, settings, expected", PADDLE, ids=[c[0] for c in PADDLE])
def test_three_steps_as_in_paddle(name, settings, expected):
    p = weight()
    opt = getattr(O, name)(learning_rate=0.1, parameters=[p], **settings)
    for g in GRADS:
        step(opt, (p, g))
    np.testing.assert_allclose(p.numpy()[0], expected, rtol=2e-6)


def test_signatures_and_private_names():
    names = list(inspect.signature(O.Adam).parameters)
    assert names[:5] == ["learning_rate", "beta1", "beta2", "epsilon", "parameters"]
    p = weight()
    opt = O.Adam(parameters=[p], beta1=0.8)
    assert isinstance(opt, O.Optimizer)
    assert opt._parameter_list == [p] == opt._param_groups and opt._learning_rate == 0.001 and opt._beta1 == 0.8
    step(opt, (p, [1.0, 1.0]))
    assert set(opt._accumulators) == {"moment1", "moment2", "beta1_pow_acc", "beta2_pow_acc"}
    np.testing.assert_allclose(opt._accumulators["moment1"][p.name].numpy(), [[0.2, 0.2]], rtol=1e-6)
    assert f"{p.name}_moment1_0" in opt.get_opti_var_name_list()


def test_parameters_as_generator_groups_and_nonsense():
    p, q = weight(), weight()
    opt = O.SGD(0.1, (x for x in [p, q]))
    step(opt, (p, [1.0, 1.0]), (q, [2.0, 2.0]))
    np.testing.assert_allclose(q.numpy(), [[0.8, -2.2]], rtol=1e-6)
    with pytest.raises(AttributeError, match="parameters is missing"):
        O.SGD(0.1)
    with pytest.raises(TypeError, match="Hint: put it into a list"):
        O.SGD(0.1, p)
    with pytest.raises(TypeError, match="a list of dicts makes groups"):
        O.SGD(0.1, {"params": [p]})
    with pytest.raises(ValueError, match="with `params`"):
        O.SGD(0.1, [{"parameters": [p]}])
    with pytest.raises(ValueError, match="more than one group"):
        O.SGD(0.1, [{"params": [p]}, {"params": [p]}])


def test_groups_have_settings_of_their_own():
    p, q, r = weight(), weight(), weight()
    groups = [{"params": [p], "learning_rate": 0.5}, {"params": iter([q]), "weight_decay": L2Decay(0.5)}]
    opt = O.SGD(0.1, groups, weight_decay=0.0)
    step(opt, (p, [1.0, 1.0]), (q, [0.0, 0.0]))
    np.testing.assert_allclose(p.numpy(), [[0.95, -2.05]], rtol=1e-6)
    np.testing.assert_allclose(q.numpy(), [[0.95, -1.9]], rtol=1e-6)
    assert opt._param_groups[0]["params"] == [p] and p.optimize_attr == {"learning_rate": 0.5}
    p.optimize_attr["learning_rate"] = 0.0
    step(opt, (p, [1.0, 1.0]))
    np.testing.assert_allclose(p.numpy(), [[0.95, -2.05]], rtol=1e-6)
    q.clear_grad()
    opt._add_param_group({"params": [r], "learning_rate": 2.0})
    step(opt, (r, [1.0, 1.0]))
    np.testing.assert_allclose(r.numpy(), [[0.8, -2.2]], rtol=1e-6)
    with pytest.raises(ValueError, match="trained already"):
        opt._add_param_group({"params": [r]})


def test_settings_of_one_parameter():
    p = weight()
    assert p.optimize_attr == {"learning_rate": 1.0} and p.regularizer is None and p.need_clip
    p.optimize_attr["learning_rate"] = 0.5
    p.regularizer = L1Decay(0.2)
    p.need_clip = False
    assert p.optimize_attr["learning_rate"] == 0.5 and p.regularizer == L1Decay(0.2) and not p.need_clip
    step(O.SGD(0.1, [p], weight_decay=100.0), (p, [1.0, 1.0]))
    np.testing.assert_allclose(p.numpy(), [[1 - 0.05 * 1.2, -2 - 0.05 * 0.8]], rtol=1e-6)
    p.trainable = False
    assert p.stop_gradient


def test_limits_on_gradients_are_those_of_the_core():
    class Limit:
        _core = sampan._registry.classes("nn")["ClipGradByGlobalNorm"].make(1.0)[0]

    p, q = weight((0.0, 0.0)), weight((0.0, 0.0))
    opt = O.SGD(1.0, [{"params": [p]}, {"params": [q], "grad_clip": None}], grad_clip=Limit())
    step(opt, (p, [3.0, 4.0]), (q, [3.0, 4.0]))
    np.testing.assert_allclose(p.numpy(), [[-0.6, -0.8]], rtol=1e-6)
    np.testing.assert_allclose(q.numpy(), [[-3.0, -4.0]])


def test_functions_as_arguments():
    p, q = weight(), weight()
    p.name, q.name = "keep.w", "decay.w"
    opt = O.AdamW(0.1, parameters=[p, q], weight_decay=0.5, apply_decay_param_fun=lambda name: name == "decay.w")
    step(opt, (p, [0.0, 0.0]), (q, [0.0, 0.0]))
    np.testing.assert_allclose(p.numpy(), [[1.0, -2.0]])
    np.testing.assert_allclose(q.numpy(), [[0.95, -1.9]], rtol=1e-6)

    def fails(_):
        raise KeyError("mine")

    opt = O.AdamW(0.1, parameters=[p], apply_decay_param_fun=fails)
    with pytest.raises(KeyError, match="mine"):
        step(opt, (p, [1.0, 1.0]))


def test_gradients_are_cleared_to_zero_or_forgotten():
    p = weight()
    opt = O.SGD(0.1, [p])
    p.grad = sampan.ones([1, 2])
    opt.clear_grad()
    assert p.grad.tolist() == [[0.0, 0.0]]
    opt.clear_gradients(set_to_zero=False)
    assert p.grad is None


def test_minimize_takes_the_gradients_that_backward_left():
    p = weight()
    opt = O.SGD(0.1, parameters=[p])
    loss = (p * 3.0).sum()
    loss.backward()
    ops, pairs = opt.minimize(loss)
    assert ops == [] and pairs[0][0] is p and pairs[0][1].tolist() == [[3.0, 3.0]]
    np.testing.assert_allclose(p.numpy(), [[0.7, -2.3]], rtol=1e-6)
    opt.apply_gradients([(p, sampan.ones([1, 2]))])
    np.testing.assert_allclose(p.numpy(), [[0.6, -2.4]], rtol=1e-6)
    assert p.grad.tolist() == [[3.0, 3.0]]


def test_learning_rate():
    p = weight()
    opt = O.SGD(0.1, [p])
    opt.set_lr(0.2)
    assert opt.get_lr() == 0.2 == opt._learning_rate
    with pytest.raises(TypeError, match="got StepDecay"):
        opt.set_lr(O.lr.StepDecay(0.1, 1))
    schedule = O.lr.StepDecay(0.5, 1)
    opt.set_lr_scheduler(schedule)
    schedule.step()
    assert opt.get_lr() == 0.05
    with pytest.raises(RuntimeError, match="set_lr_scheduler"):
        opt.set_lr(0.1)


def test_lbfgs_whose_closure_uses_the_optimizer():
    p = weight()
    opt = O.LBFGS(parameters=[p], line_search_fn="strong_wolfe")

    def closure():
        opt.clear_grad()
        assert opt.get_lr() == 1.0
        loss = ((p - 3.0) ** 2).sum()
        loss.backward()
        return loss

    first = opt.step(closure)
    assert first.item() == 29.0
    np.testing.assert_allclose(p.numpy(), [[3.0, 3.0]], rtol=1e-5)
    with pytest.raises(RuntimeError, match="closure"):
        opt.step()
    with pytest.raises(TypeError, match="must return the loss"):
        opt.step(lambda: None)


def network():
    return sampan.nn.Sequential(sampan.nn.Linear(3, 4), sampan.nn.Tanh(), sampan.nn.Linear(4, 1))


@pytest.mark.parametrize("as_numpy", [False, True])
def test_a_resumed_run_repeats_the_bits(tmp_path, as_numpy):
    sampan.seed(3)
    x, net = sampan.randn([8, 3]), network()

    def make(net):
        schedule = O.lr.LinearWarmup(O.lr.CosineAnnealingDecay(0.05, 6), 2, 0.0, 0.05)
        return O.AdamW(schedule, parameters=net.parameters(), weight_decay=0.1), schedule

    def train(net, opt, schedule, n):
        for _ in range(n):
            (net(x) ** 2).mean().backward()
            opt.step()
            opt.clear_grad()
            schedule.step()

    opt, schedule = make(net)
    train(net, opt, schedule, 4)
    sampan.save(net.state_dict(), str(tmp_path / "net.pdparams"))
    sampan.save(opt.state_dict(), str(tmp_path / "net.pdopt"))
    train(net, opt, schedule, 3)

    again = network()
    opt2, schedule2 = make(again)
    again.set_state_dict(sampan.load(str(tmp_path / "net.pdparams")))
    opt2.set_state_dict(sampan.load(str(tmp_path / "net.pdopt"), return_numpy=as_numpy))
    train(again, opt2, schedule2, 3)
    assert schedule2() == schedule()
    for p, q in zip(net.parameters(), again.parameters()):
        np.testing.assert_array_equal(p.numpy(), q.numpy())


def test_a_state_that_does_not_fit():
    opt = O.Adam(parameters=[weight()])
    with pytest.raises(KeyError, match="fits neither by name nor by order"):
        opt.set_state_dict({"other_moment1_0": sampan.ones([3])})


class Heavy(O.Optimizer):
    """Momentum, written in Python."""

    def _create_accumulators(self, block, parameters):
        for p in parameters:
            self._add_accumulator("velocity", p)

    def _append_optimize_op(self, block, param_and_grad):
        p, g = param_and_grad
        velocity = self._get_accumulator("velocity", p)
        velocity.set_value(velocity * 0.9 + g)
        p.set_value(p - self._create_param_lr(param_and_grad) * velocity)


def test_an_optimizer_of_the_user_with_decay_groups_and_state():
    def make(cls, p, q, **more):
        groups = [{"params": [p]}, {"params": [q], "weight_decay": 0.5, "learning_rate": 0.3}]
        return cls(learning_rate=0.1, parameters=groups, weight_decay=L1Decay(0.1), **more)

    (p, q), (p2, q2) = (weight(), weight()), (weight(), weight())
    mine, theirs = make(Heavy, p, q), make(O.Momentum, p2, q2)
    for g in GRADS[:2]:
        step(mine, (p, g), (q, g))
        step(theirs, (p2, g), (q2, g))
    state = {k: v.numpy() for k, v in mine.state_dict().items()}
    assert len(state) == 2
    restored = make(Heavy, p, q)
    restored.set_state_dict(state)
    step(restored, (p, GRADS[2]), (q, GRADS[2]))
    step(theirs, (p2, GRADS[2]), (q2, GRADS[2]))
    np.testing.assert_allclose(p.numpy(), p2.numpy(), rtol=1e-6)
    np.testing.assert_allclose(q.numpy(), q2.numpy(), rtol=1e-6)
    with pytest.raises(NotImplementedError, match="_append_optimize_op"):
        step(O.Optimizer(0.1, [p]), (p, [1.0, 1.0]))
