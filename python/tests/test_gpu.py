"""Devices: what there is without a GPU, and what a GPU does where there is one."""

import pathlib
import re

import numpy as np
import pytest

import sampan as paddle

DOCS = pathlib.Path(__file__).resolve().parent.parent.parent / "docs"
needs_gpu = pytest.mark.skipif(not paddle.device.is_available(), reason="there is no GPU")


@pytest.fixture
def gpu():
    paddle.set_device("gpu")
    yield
    paddle.set_device("cpu")


@pytest.mark.parametrize("page", ["gpu.md", "gpu.zh-CN.md"])
def test_the_program_of_the_guide(page, capsys):
    programs = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S)
    try:
        for program in programs:
            exec(compile(program, page, "exec"), {"__name__": page})
    finally:
        paddle.set_device("cpu")
    assert capsys.readouterr().out == "[3, 2] True\nTrue\n"


def test_both_guides_have_the_same_programs():
    pages = [re.findall(r"```\w+\n(.*?)```", (DOCS / name).read_text(), re.S) for name in ("gpu.md", "gpu.zh-CN.md")]
    assert pages[0] == pages[1]


@pytest.mark.skipif(paddle.device.is_available(), reason="there is a GPU")
def test_without_a_gpu_one_sentence_says_what_is_missing():
    for ask in (
        lambda: paddle.set_device("gpu"),
        lambda: paddle.ones([2]).cuda(),
        lambda: paddle.ones([2]).to("gpu:1"),
        lambda: paddle.nn.Linear(2, 2).cuda(),
        lambda: paddle.to_tensor([1.0], place="gpu"),
        lambda: paddle.zeros([2], device="gpu"),
        lambda: paddle.CUDAPlace(0),
        lambda: paddle.device.cuda.memory_allocated(),
        lambda: paddle.device.cuda.get_device_properties(0),
    ):
        with pytest.raises(ValueError, match=r"\(Unavailable\) gpu.* is not here: .*driver.* Devices here: cpu"):
            ask()
    assert paddle.get_device() == "cpu" and not paddle.is_compiled_with_cuda()
    assert (paddle.ones([2]) + 1).tolist() == [2.0, 2.0]


def test_names_of_devices():
    for wrong in ("abacus", "gpu:x", "cpu:-1"):
        with pytest.raises(ValueError, match="a device is written"):
            paddle.set_device(wrong)
    with paddle.device.device("cpu"):
        assert paddle.ones([1]).place == paddle.CPUPlace()
    x = paddle.ones([2], device="cpu")
    assert x.device == "cpu" and x.to("cpu") is x and x.cpu() is x


def test_precision_is_a_setting():
    from sampan.compat.base import core

    try:
        assert paddle.device.cuda.allow_tf32() == (False, True)
        assert paddle.device.cuda.allow_tf32(products=True) == (True, True)
        core.set_cublas_switch(False)
        core.set_cudnn_switch(False)
        assert paddle.device.cuda.allow_tf32() == (core.get_cublas_switch(), core.get_cudnn_switch()) == (False, False)
    finally:
        assert paddle.device.cuda.allow_tf32(False, True) == (False, True)


@needs_gpu
def test_training_is_the_same_on_both():
    def train(device):
        paddle.set_device(device)
        paddle.seed(3)
        net = paddle.vision.models.LeNet()
        optimizer = paddle.optimizer.Adam(1e-3, parameters=net.parameters(), grad_clip=paddle.nn.ClipGradByGlobalNorm(1.0))
        random = np.random.RandomState(0)
        x, y = random.randn(32, 1, 28, 28).astype("float32"), random.randint(0, 10, (32, 1))
        losses = []
        for _ in range(10):
            loss = paddle.nn.functional.cross_entropy(net(paddle.to_tensor(x)), paddle.to_tensor(y))
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            losses.append(float(loss))
        paddle.set_device("cpu")
        return losses

    assert train("gpu") == train("gpu")
    np.testing.assert_allclose(train("gpu"), train("cpu"), rtol=1e-3)


@needs_gpu
def test_tensors_move_with_their_gradients(gpu):
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False, place="cpu")
    y = (x.cuda() * 3).cpu()
    assert str(x.cuda().place) == "Place(gpu:0)" and str(y.place) == "Place(cpu)"
    y.sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and x.grad.device == "cpu"
    net = paddle.nn.Linear(2, 2).to("cpu")
    assert net.weight.device == "cpu" and net.to("gpu").weight.device == "gpu:0"


@needs_gpu
def test_a_wrong_label_names_itself_and_the_process_goes_on(gpu):
    with pytest.raises(IndexError, match="index 7 at position 2 of cross_entropy"):
        paddle.nn.functional.cross_entropy(paddle.randn([4, 3]), paddle.to_tensor([0, 1, 7, 2])).numpy()
    assert (paddle.ones([2]) + 1).tolist() == [2.0, 2.0]


@needs_gpu
def test_memory_is_counted(gpu):
    before = paddle.device.cuda.memory_allocated()
    x = paddle.zeros([1 << 20])
    assert paddle.device.cuda.memory_allocated() == before + (4 << 20)
    del x
    assert paddle.device.cuda.memory_allocated() == before <= paddle.device.cuda.max_memory_allocated()
    with pytest.raises(RuntimeError, match="memory is full"):
        paddle.zeros([1 << 42])
    assert "gpu:0" in paddle.device.cuda.memory_summary()


@needs_gpu
def test_memory_is_shared_with_torch(gpu):
    torch = pytest.importorskip("torch")
    if not torch.cuda.is_available():
        pytest.skip("PyTorch has no GPU")
    ours = paddle.arange(12, dtype="float32").reshape([3, 4])
    theirs = torch.from_dlpack(ours)
    theirs += 1
    torch.cuda.synchronize()
    assert ours.numpy().tolist() == (np.arange(12).reshape(3, 4) + 1).tolist()
    theirs += 1
    torch.cuda.synchronize()
    assert float(ours[0, 0]) == 2.0
    seen = torch.as_tensor(ours.T, device="cuda")
    assert seen.shape == (4, 3) and seen.data_ptr() == ours.data_ptr()
    source = torch.arange(6, device="cuda").reshape(2, 3).t()
    back = paddle.utils.dlpack.from_dlpack(source)
    assert back.place.is_gpu_place() and back.tolist() == source.tolist()
    back += 10
    paddle.device.synchronize()
    assert paddle.to_tensor(source).tolist() == source.tolist()
    del source
    assert back.shape == [3, 2]


@needs_gpu
def test_amp_trains_on_a_gpu(gpu):
    for dtype in ("float16", "bfloat16"):
        paddle.seed(1)
        net = paddle.vision.models.LeNet()
        opt = paddle.optimizer.Adam(2e-3, parameters=net.parameters())
        net, opt = paddle.amp.decorate(net, opt, level="O2", dtype=dtype)
        scaler = paddle.amp.GradScaler(init_loss_scaling=1024, enable=dtype == "float16")
        x, y = paddle.randn([32, 1, 28, 28]), paddle.randint(0, 10, [32, 1])
        losses = []
        for _ in range(20):
            with paddle.amp.auto_cast(level="O2", dtype=dtype):
                loss = paddle.nn.functional.cross_entropy(net(x), y)
            scaler.scale(loss).backward()
            scaler.step(opt)
            scaler.update()
            opt.clear_grad()
            losses.append(float(loss))
        assert losses[-1] < 0.7 * losses[0], (dtype, losses)


class Residual(paddle.nn.Layer):
    """Convolutions large enough that the channels of their images lie side by side on a GPU, and what reads such images."""

    def __init__(self):
        super().__init__()
        self.first = paddle.nn.Conv2D(64, 64, 3, padding=1, bias_attr=False)
        self.norm = paddle.nn.BatchNorm2D(64)
        self.second = paddle.nn.Conv2D(64, 96, 3, stride=2, padding=1)
        self.beside = paddle.nn.Conv2D(64, 96, 1, stride=2)
        self.pool = paddle.nn.AvgPool2D(3, 2, 1)
        self.out = paddle.nn.Linear(96, 5)

    def forward(self, x):
        # Smooth, so that what rounding does stays small.
        y = paddle.tanh(self.norm(self.first(x)))
        y = paddle.tanh(self.second(y) + self.beside(x))
        y = paddle.concat([self.pool(y), self.pool(y * 2)], axis=2) - y.mean([2, 3], keepdim=True)
        return self.out(y.flatten(2).mean(-1))


@needs_gpu
@pytest.mark.parametrize("dtype, tolerance", [("float32", 4e-3), ("bfloat16", 4e-2)])
def test_images_with_channels_side_by_side(gpu, dtype, tolerance):
    net = Residual()
    x = np.random.RandomState(1).randn(24, 64, 40, 40).astype("float32")

    def results(device):
        net.to(device)
        net.clear_gradients()
        net.train()
        given = paddle.to_tensor(x, place=device, stop_gradient=False)
        with paddle.amp.auto_cast(enable=dtype != "float32", dtype=dtype):
            y = net(given)
        (y.astype("float32") ** 2).sum().backward()
        laid = net.first(given)
        found = {"y": y, "dx": given.grad}
        found |= {name: p.grad for name, p in net.named_parameters() if p.grad is not None}
        assert len(found) == 11
        return {name: t.astype("float32").numpy() for name, t in found.items()}, laid.is_contiguous()

    here, contiguous = results("gpu")
    assert not contiguous
    there, contiguous = results("cpu")
    assert contiguous
    for name, value in there.items():
        error = np.linalg.norm(here[name] - value) / np.linalg.norm(value)
        assert error < tolerance, (name, error)
    again, _ = results("gpu")
    assert all(np.array_equal(here[name], again[name]) for name in here)


@needs_gpu
def test_images_with_channels_side_by_side_are_tensors_as_any_other(gpu):
    conv = paddle.nn.Conv2D(64, 64, 3, padding=1)
    y = conv(paddle.randn([24, 64, 40, 40])).detach()
    z = y.contiguous()
    assert not y.is_contiguous() and z.is_contiguous()
    assert paddle.equal_all(y, z) and np.array_equal(y.numpy(), z.numpy())
    for f in (
        lambda t: t.reshape([24, -1]),
        lambda t: t[:, 3:9, ::2, 1],
        lambda t: t.transpose([0, 2, 3, 1]),
        lambda t: t.sum([0, 2, 3]),
        lambda t: t.argmax(1),
        lambda t: paddle.nn.functional.softmax(t, axis=1),
        lambda t: paddle.nn.functional.interpolate(t, scale_factor=2),
        lambda t: paddle.nn.functional.pad(t, [1, 2, 0, 1]),
        lambda t: t + paddle.ones([64, 1, 1]),
        lambda t: paddle.nn.functional.avg_pool2d(t, 2),
        lambda t: t.astype("float16"),
        lambda t: paddle.where(t > 0, t, -t),
        lambda t: t.clone(),
    ):
        assert np.array_equal(f(y).numpy(), f(z).numpy())
    w = y.clone()
    w[:, 0] = 1.0
    w *= 2
    w.add_(paddle.ones_like(w))
    v = z.clone()
    v[:, 0] = 1.0
    assert np.array_equal(w.numpy(), v.numpy() * 2 + 1)
    assert np.array_equal(paddle.to_tensor(y.numpy()).numpy(), y.numpy())
