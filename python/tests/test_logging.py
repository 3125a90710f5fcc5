"""Curves, pictures and comparisons through the tools people use."""

import glob
import os
import sys

import numpy as np
import pytest

import sampan
from sampan import compat, nn
from sampan.compat.tb_paddle import SummaryWriter


def test_visualdl_takes_tensors(tmp_path):
    visualdl = pytest.importorskip("visualdl")
    with visualdl.LogWriter(logdir=os.fspath(tmp_path)) as writer:
        loss = nn.Linear(2, 1)(sampan.ones([1, 2])).mean()
        for step in range(3):
            writer.add_scalar("loss", loss, step)
        writer.add_scalar(tag="acc", step=0, value=sampan.to_tensor([0.5]))
        writer.add_histogram("weight", nn.Linear(4, 4).weight, 0)
        writer.add_image("picture", sampan.rand([3, 8, 8]), 0, dataformats="CHW")
        path = writer.file_name
    reader = visualdl.LogReader(file_path=path)
    assert [point.value for point in reader.get_data("scalar", "loss")] == pytest.approx([loss.item()] * 3)
    assert reader.get_data("scalar", "acc")[0].value == 0.5


def test_the_callback_writes_for_visualdl(tmp_path):
    visualdl = pytest.importorskip("visualdl")
    model = sampan.Model(nn.Linear(3, 1))
    model.prepare(sampan.optimizer.SGD(0.1, parameters=model.parameters()), nn.MSELoss())
    data = [(np.ones([4, 3], "float32"), np.ones([4, 1], "float32"))] * 3
    model.fit(data, data, epochs=2, verbose=0, callbacks=sampan.callbacks.VisualDL(log_dir=os.fspath(tmp_path)))
    (path,) = glob.glob(os.fspath(tmp_path / "*.log"))
    reader = visualdl.LogReader(file_path=path)
    assert [point.id for point in reader.get_data("scalar", "train/loss")] == [1, 2, 3, 4, 5, 6]
    assert [point.id for point in reader.get_data("scalar", "eval/loss")] == [0, 1]


def test_tensorboard_takes_tensors(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.summary import Writer

    writer = Writer(os.fspath(tmp_path))
    writer.add_scalar("loss", sampan.to_tensor(0.5), step=3)
    writer.close()
    assert glob.glob(os.fspath(tmp_path / "*tfevents*"))


def test_tensorboard_reads_what_tb_paddle_writes(tmp_path):
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    with SummaryWriter(logdir=os.fspath(tmp_path)) as writer:
        for step in range(3):
            writer.add_scalar("train/loss", sampan.to_tensor([0.5]) / (step + 1), step * 100)
        writer.add_scalars("both", {"a": 1, "b": np.float32(2)}, 0)
        writer.add_histogram("weights", sampan.arange(10).astype("float32"), 0)
        writer.add_image("picture", sampan.rand([3, 4, 5]), 0)
        writer.add_text("note", "hello", 0)
    events = EventAccumulator(os.fspath(tmp_path)).Reload()
    points = events.Scalars("train/loss")
    assert [p.step for p in points] == [0, 100, 200]
    assert [p.value for p in points] == pytest.approx([0.5, 0.25, 0.5 / 3])
    assert events.Scalars("both/b")[0].value == 2.0
    picture = events.Images("picture")[0]
    assert (picture.height, picture.width) == (4, 5)
    assert events.Histograms("weights")[0].histogram_value.num == 10


def test_tb_paddle_is_found_where_it_is_not_installed():
    compat.install_as_paddle()
    try:
        from tb_paddle import SummaryWriter as found
    finally:
        compat.uninstall()
        sys.modules.pop("tb_paddle", None)
    assert found.__name__ == "SummaryWriter"


def test_reprod_log_compares_tensors(tmp_path):
    code = f"""
import sampan.compat
sampan.compat.install_as_paddle()
import paddle
from reprod_log import ReprodDiffHelper, ReprodLogger
for name, bias in (("a", 0.0), ("b", 0.0), ("c", 1.0)):
    paddle.seed(7)
    logger = ReprodLogger()
    logger.add("logits", (paddle.rand([2, 3]) + bias).numpy())
    logger.save(r"{tmp_path}/" + name + ".npy")
helper = ReprodDiffHelper()
for other in "bc":
    info = [helper.load_info(rf"{tmp_path}/{{name}}.npy") for name in ("a", other)]
    helper.compare_info(*info)
    print(helper.report())
"""
    pytest.importorskip("reprod_log", exc_type=ImportError)
    import pathlib
    import subprocess

    env = os.environ | {"PYTHONPATH": os.fspath(pathlib.Path(sampan.__file__).parents[1])}
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=env, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "diff check passed" in done.stdout + done.stderr and "diff check failed" in done.stdout + done.stderr
