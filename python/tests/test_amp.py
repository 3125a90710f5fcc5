"""Mixed precision: which op computes in which dtype, scaled losses, decorated networks, checks of numbers."""

import numpy as np
import pytest

import sampan
from sampan import amp

F = sampan.nn.functional


def dtype(t):
    return str(t.dtype).rpartition(".")[2]


@pytest.mark.parametrize("low", ["float16", "bfloat16"])
def test_levels(low):
    x = sampan.ones([2, 2])
    found = {}
    for level in ("O0", "O1", "O2", "OD"):
        with amp.auto_cast(level=level, dtype=low):
            m = x @ x
            found[level] = [dtype(t) for t in (m, m + m, m + x, m.exp(), F.softmax(m))]
    wide = "float32"
    assert found == {
        "O0": [wide] * 5,
        "O1": [low, low, wide, wide, wide],
        "O2": [low, low, wide, low, low],
        "OD": [low, wide, wide, wide, wide],
    }
    assert dtype(x @ x) == wide


def test_level_o2_without_promotion():
    x = sampan.ones([2, 2])
    with amp.auto_cast(level="O2", use_promote=False):
        assert dtype(x + x) == "float16"
        assert dtype(F.embedding(sampan.to_tensor([0]), x)) == "float32"
        y = sampan.zeros([2, 2])
        y.add_(x @ x)
        assert dtype(y) == "float32"


def test_lists_of_the_user_by_names_of_ops_and_of_paddles_kernels():
    x, layer = sampan.ones([2, 2]), sampan.nn.Linear(2, 2)
    with amp.auto_cast(custom_white_list=["elementwise_add"], custom_black_list={"matmul_v2", "linear"}):
        assert [dtype(t) for t in (x + x, x @ x, layer(x))] == ["float16", "float32", "float32"]
    with pytest.raises(ValueError, match="'matmul' is on both lists"):
        amp.auto_cast(custom_white_list=["matmul"], custom_black_list=["matmul_v2"])
    with pytest.raises(TypeError, match="custom_white_list is a list"):
        amp.auto_cast(custom_white_list="matmul")
    with pytest.raises(ValueError, match="level is"):
        amp.auto_cast(level="O3")
    with pytest.raises(ValueError, match="dtype is 'float16' or 'bfloat16'"):
        amp.auto_cast(dtype="float32")


def test_nesting_decorating_and_leaving_by_an_exception():
    x = sampan.ones([2, 2])

    @amp.auto_cast(dtype="bfloat16")
    def product(a):
        with amp.auto_cast(enable=False):
            assert not amp.is_autocast_enabled() and dtype(a @ a) == "float32"
        assert amp.get_autocast_dtype() == "bfloat16"
        return a @ a

    assert dtype(product(x)) == "bfloat16"
    with pytest.raises(KeyError), amp.auto_cast():
        raise KeyError
    assert not amp.is_autocast_enabled() and amp.get_autocast_dtype() == "float32"


def test_gradients_arrive_in_the_precision_of_the_parameter():
    layer = sampan.nn.Linear(3, 2)
    with amp.auto_cast():
        loss = layer(sampan.ones([4, 3])).mean()
    assert dtype(loss) == "float32"
    loss.backward()
    assert dtype(layer.weight.grad) == "float32"
    np.testing.assert_allclose(layer.weight.grad.numpy(), 0.5)


def with_gradients(values):
    p = sampan.nn.Linear(1, len(values), bias_attr=False).weight
    p.set_value([[0.0] * len(values)])
    p.grad = sampan.to_tensor([values])
    return p, sampan.optimizer.SGD(1.0, parameters=[p])


def test_a_step_with_an_infinite_gradient_is_skipped_and_the_scale_falls(capsys):
    scaler = amp.GradScaler(init_loss_scaling=8.0, decr_every_n_nan_or_inf=2, incr_every_n_steps=2)
    for _ in range(2):
        p, opt = with_gradients([float("inf"), 1.0])
        scaler.step(opt)
        scaler.update()
        assert p.tolist() == [[0.0, 0.0]]
    assert scaler.state_dict()["scale"].tolist() == [4.0]
    assert "decrease to: 8.0*0.5" in capsys.readouterr().out
    for _ in range(2):
        p, opt = with_gradients([8.0, 4.0])
        scaler.step(opt)
        scaler.update()
        assert p.tolist() == [[-2.0, -1.0]]
    assert scaler.state_dict()["scale"].tolist() == [8.0] and scaler.state_dict()["incr_count"] == 0


def test_unscale_step_and_update_come_in_order():
    scaler = amp.GradScaler(init_loss_scaling=2.0)
    p, opt = with_gradients([4.0, 2.0])
    assert scaler.scale(sampan.to_tensor(3.0)).item() == 6.0
    scaler.unscale_(opt)
    assert p.grad.tolist() == [[2.0, 1.0]]
    with pytest.raises(RuntimeError, match="unscale_.. was called"):
        scaler.unscale_(opt)
    scaler.step(opt)
    assert p.tolist() == [[-2.0, -1.0]]
    with pytest.raises(RuntimeError, match="step.. was called"):
        scaler.step(opt)
    with pytest.raises(RuntimeError, match="after step"):
        scaler.unscale_(opt)
    scaler.update()
    p.grad = sampan.to_tensor([[2.0, 2.0]])
    scaler.minimize(opt, p.sum())
    assert p.tolist() == [[-3.0, -2.0]]


def test_two_optimizers_share_a_scaler():
    scaler = amp.GradScaler(init_loss_scaling=2.0)
    (p, good), (q, bad) = with_gradients([2.0]), with_gradients([float("nan")])
    scaler.unscale_(good)
    scaler.unscale_(bad)
    scaler.step(good)
    scaler.step(bad)
    assert p.item() == -1.0 and q.item() == 0.0


def test_settings_and_state_of_a_scaler():
    scaler = amp.GradScaler(init_loss_scaling=16.0, incr_ratio=3.0)
    assert (scaler.is_enable(), scaler.get_incr_ratio(), scaler.get_init_loss_scaling()) == (True, 3.0, 16.0)
    scaler.set_decr_ratio(0.25)
    again = amp.GradScaler()
    again.load_state_dict(scaler.state_dict())
    assert again.state_dict() == scaler.state_dict() and again.get_decr_ratio() == 0.25
    with pytest.raises(ValueError, match="above 1"):
        amp.GradScaler(incr_ratio=1.0)
    with pytest.raises(RuntimeError, match="state is empty"):
        again.load_state_dict({})
    off = amp.GradScaler(enable=False)
    x = sampan.ones([1])
    assert off.scale(x) is x and off.state_dict() == {} and not off.is_enable()


def test_a_scaler_has_nothing_to_do_for_bfloat16():
    scaler = amp.GradScaler()
    with amp.auto_cast(dtype="bfloat16"):
        loss = sampan.ones([1])
    with pytest.warns(UserWarning, match="range of float32"):
        assert scaler.scale(loss).item() == 1.0
    with amp.auto_cast():
        pass
    assert not scaler.is_enable()


@pytest.mark.parametrize("low", ["float16", "bfloat16"])
def test_training_at_o2_with_master_weights(low):
    sampan.seed(1)
    net = sampan.nn.Sequential(
        sampan.nn.Conv2D(1, 4, 3),
        sampan.nn.BatchNorm2D(4),
        sampan.nn.ReLU(),
        sampan.nn.Flatten(),
        sampan.nn.Linear(144, 3),
    )
    opt = sampan.optimizer.AdamW(1e-2, parameters=net.parameters())
    net, opt = amp.decorate(net, opt, level="O2", dtype=low)
    assert [dtype(p) for p in net.parameters()] == [low, low, *["float32"] * 4, low, low]
    scaler = amp.GradScaler(init_loss_scaling=256.0, use_dynamic_loss_scaling=False)
    x, y = sampan.randn([16, 1, 8, 8]), sampan.randint(0, 3, [16])
    losses = []
    for _ in range(12):
        with amp.auto_cast(level="O2", dtype=low):
            loss = F.cross_entropy(net(x), y)
        scaler.scale(loss).backward()
        scaler.step(opt)
        scaler.update()
        opt.clear_grad()
        losses.append(loss.item())
    assert losses[-1] < losses[0] / 4
    first = net.parameters()[0]
    assert dtype(opt._master_weights[first.name]) == "float32"
    np.testing.assert_array_equal(opt._master_weights[first.name].astype(low).numpy(), first.numpy())


def test_master_grad_keeps_what_float16_cannot_hold():
    for master_grad, expected in ((False, 1.0), (True, 1.0 - 2.0**-26)):
        net = sampan.nn.Linear(1, 1, bias_attr=False)
        net.weight.set_value([[0.0]])
        opt = sampan.optimizer.SGD(1.0, parameters=net.parameters())
        amp.decorate(net, opt, level="O2", master_grad=master_grad)
        scaler = amp.GradScaler(init_loss_scaling=2.0**16)
        net.weight.grad = sampan.to_tensor([[2.0**-10]], "float16")
        scaler.step(opt)
        assert 1.0 + opt._master_weights[net.weight.name].item() == expected


def test_decorate_leaves_layers_alone_and_saves_in_another_dtype():
    class Inner(sampan.nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = sampan.nn.Linear(2, 2)

    net = sampan.nn.Sequential(Inner(), sampan.nn.Linear(2, 2), sampan.nn.LayerNorm(2))
    assert amp.decorate(net, level="O1") is net and dtype(net[1].weight) == "float32"
    amp.decorate(net, level="O2", excluded_layers=[net[0]], save_dtype="float32")
    assert [dtype(layer.weight) for layer in (net[0].fc, net[1], net[2])] == ["float32", "float16", "float32"]
    assert {dtype(t) for t in net.state_dict().values()} == {"float32"}
    with pytest.raises(TypeError, match="models is a Layer"):
        amp.decorate(3, level="O2")


def test_numbers_that_are_not_finite(capsys):
    debugging = amp.debugging
    stats, values = debugging.check_numerics(sampan.to_tensor([1.0, 0.0, -3.0]), "op", "x")
    assert stats.tolist() == [0, 0, 1] and values.numpy() == pytest.approx([1.0, -3.0, -2 / 3])
    with pytest.raises(FloatingPointError, match="1 NaN and 1 infinite"):
        debugging.check_numerics(sampan.to_tensor([float("nan"), float("inf")]), "op", "x")
    bad = sampan.to_tensor([-1.0])
    debugging.enable_tensor_checker(debugging.TensorCheckerConfig(True))
    try:
        with pytest.raises(FloatingPointError, match="log"):
            sampan.log(bad)
    finally:
        debugging.disable_tensor_checker()
    sampan.log(bad)
    mode = debugging.DebugMode.CHECK_NAN_INF
    debugging.enable_tensor_checker(debugging.TensorCheckerConfig(True, mode, skipped_op_list=["sqrt"]))
    sampan.log(bad), sampan.sqrt(bad)
    debugging.disable_tensor_checker()
    lines = [line for line in capsys.readouterr().out.splitlines() if "PRECISION" in line]
    assert len(lines) == 1 and "log: output 0 of shape [1] float32 has 1 NaN" in lines[0]


def test_counting_calls_by_precision(capsys):
    x = sampan.ones([2, 2])
    with amp.debugging.collect_operator_stats(), amp.auto_cast():
        x @ x
        x + x
    out = capsys.readouterr().out
    rows = {line.split()[0]: line.split("|")[1:] for line in out.splitlines() if line.startswith("  ")}
    assert [int(c) for c in rows["matmul"]] == [1, 0, 0, 0] and [int(c) for c in rows["add"]] == [0, 0, 1, 0]
