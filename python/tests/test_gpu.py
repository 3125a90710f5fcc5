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
    (program,) = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.S)
    try:
        exec(compile(program, page, "exec"), {"__name__": page})
    finally:
        paddle.set_device("cpu")
    assert capsys.readouterr().out == "[3, 2] True\n"


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
