"""ONNX files: written, read, trained and saved again."""

import pathlib

import numpy as np
import pytest
import sampan
from sampan import nn
from sampan.static import InputSpec


def net():
    sampan.seed(1)
    return nn.Sequential(nn.Conv2D(1, 4, 3, padding=1), nn.BatchNorm2D(4), nn.ReLU(), nn.AdaptiveAvgPool2D(1), nn.Flatten(), nn.Linear(4, 3))


@pytest.mark.parametrize("opset", [9, 13, 17, 21])
def test_written_and_read(tmp_path, opset):
    model = net()
    model.train()
    path = str(tmp_path / "folder" / "net")
    sampan.onnx.export(model, path, input_spec=[InputSpec([None, 1, None, None], "float32", "image")], opset_version=opset)
    assert model.training
    read = sampan.onnx.load(path + ".onnx")
    model.eval()
    for shape in ([2, 1, 8, 8], [3, 1, 6, 9]):
        x = sampan.randn(shape)
        np.testing.assert_allclose(read(x).numpy(), model(x).numpy(), atol=1e-5)


def test_read_models_train_and_are_saved(tmp_path):
    model, path = net(), str(tmp_path / "net")
    spec = [InputSpec([None, 1, 8, 8], "float32", "x")]
    sampan.onnx.export(model, path, input_spec=spec)
    read = sampan.onnx.load(path + ".onnx")
    optimizer = sampan.optimizer.SGD(0.1, parameters=read.parameters())
    x, before = sampan.randn([4, 1, 8, 8]), None
    for _ in range(3):
        loss = (read(x) ** 2).mean()
        assert before is None or float(loss) < before
        before = float(loss)
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
    sampan.jit.save(read, path + "-again", input_spec=spec)
    np.testing.assert_allclose(sampan.jit.load(path + "-again")(x).numpy(), read(x).numpy(), atol=1e-6)


def test_a_run_has_a_bound_on_memory():
    # A loop that doubles its tensor forty times.
    path = pathlib.Path(__file__).parent / "fixtures" / "doubling.onnx"
    model = sampan.onnx.load(path, memory_limit=1 << 20)
    with pytest.raises(MemoryError, match=r"out of memory.* may hold 1.0 MiB at once"):
        model(sampan.ones([4]))


def test_mistakes(tmp_path):
    spec = [InputSpec([None, 4])]
    with pytest.raises(ValueError, match="opset 30"):
        sampan.onnx.export(nn.Linear(4, 2), str(tmp_path / "a"), input_spec=spec, opset_version=30)
    with pytest.raises(ValueError, match="no config 'strange'"):
        sampan.onnx.export(nn.Linear(4, 2), str(tmp_path / "a"), input_spec=spec, strange=1)
    with pytest.raises(ValueError, match="nothing is known of the inputs"):
        sampan.onnx.export(nn.Linear(4, 2), str(tmp_path / "a"))
    with pytest.raises(NotImplementedError, match="erfinv.*has no form in ONNX"):
        sampan.onnx.export(lambda x: sampan.erfinv(x), str(tmp_path / "a"), input_spec=spec)
    (tmp_path / "bad.onnx").write_bytes(b"\x08\x07:\xff\xff")
    with pytest.raises(ValueError):
        sampan.onnx.load(tmp_path / "bad.onnx")


def test_backend_names():
    from sampan.onnx import backend

    assert backend.supports_device("CPU") and not backend.supports_device("CUDA")
    assert all(hasattr(backend, name) for name in ("prepare", "run_model", "run_node", "is_compatible"))
