"""The profiler: recordings by schedule, tables, traces, ranges, the timer."""

import json
import threading
import warnings

import numpy as np
import pytest
import sampan as sp
from sampan import profiler
from sampan.profiler import Profiler, ProfilerState, ProfilerTarget, RecordEvent, SortedKeys, SummaryView


class Digits(sp.io.Dataset):
    def __init__(self, size=24):
        self.size = size

    def __len__(self):
        return self.size

    def __getitem__(self, i):
        return np.full((1, 28, 28), i / 10, "float32"), np.array([i % 10], "int64")


def quiet(prof):
    pass


def train(prof, steps=4, net=None, **loader):
    net = net or sp.vision.models.LeNet()
    opt = sp.optimizer.Adam(parameters=net.parameters())
    for x, y in sp.io.DataLoader(Digits(4 * steps), batch_size=4, **loader):
        sp.nn.functional.cross_entropy(net(x), y).backward()
        opt.step()
        opt.clear_grad()
        prof.step(num_samples=4)


@pytest.fixture(scope="module")
def recorded():
    with Profiler(scheduler=(1, 3), on_trace_ready=quiet, profile_memory=True) as prof:
        train(prof)
    return prof


def kinds(result, kind):
    return [event["name"] for event in result.events() if event["kind"] == kind]


def test_a_step_of_lenet_has_its_ops_and_gradients(recorded):
    table = recorded.profiler_result.ops()
    for name in ("conv2d", "conv2d_grad", "max_pool2d", "linear_grad", "cross_entropy", "cross_entropy_grad"):
        assert any(line.split()[0] == name for line in table.splitlines() if line), name
    conv = next(line for line in table.splitlines() if line.startswith("conv2d_grad"))
    assert conv.split()[1] == "4"  # two layers, two steps


def test_the_schedule_chooses_the_steps(recorded):
    assert kinds(recorded.profiler_result, "step") == ["ProfileStep#1", "ProfileStep#2"]
    assert kinds(recorded.profiler_result, "optimizer") == ["Adam"] * 2
    assert kinds(recorded.profiler_result, "loader") == ["DataLoader"] * 2


def test_layers_have_paths(recorded):
    layers = [e["layer"] for e in recorded.profiler_result.events() if e["kind"] == "layer"]
    assert layers[:4] == ["LeNet", "LeNet.features", "LeNet.features.0", "LeNet.features.1"]
    gradients = {e["layer"] for e in recorded.profiler_result.events() if e["name"] == "conv2d_grad"}
    assert gradients == {"LeNet.features.0", "LeNet.features.3"}


def test_layers_written_in_python_have_paths():
    class Net(sp.nn.Layer):
        def __init__(self):
            super().__init__()
            self.body = sp.nn.Sequential(sp.nn.Linear(4, 4), sp.nn.ReLU())
            self.body.register_forward_post_hook(lambda layer, x, y: y * 2)

        def forward(self, x):
            return self.body(x)

    with Profiler(on_trace_ready=quiet) as prof:
        Net()(sp.ones([2, 4]))
    events = prof.profiler_result.events()
    layers = [(e["name"], e["layer"]) for e in events if e["kind"] == "layer"]
    body = [("Sequential", "Net.body"), ("Linear", "Net.body.0"), ("ReLU", "Net.body.1")]
    assert layers == [("Net", "Net"), *body]
    assert {e["name"]: e["layer"] for e in events if e["kind"] == "op"}["linear"] == "Net.body.0"


def test_the_summary_prints_what_is_asked_for(recorded, capsys):
    recorded.summary()
    everything = capsys.readouterr().out
    for part in ("Overview (time in ms)", "Layers (time in ms)", "Ops (time in ms)", "  conv_forward", "At most"):
        assert part in everything
    recorded.summary(SortedKeys.CPUMax, op_detail=False, thread_sep=True, time_unit="us", views=SummaryView.OperatorView)
    ops = capsys.readouterr().out
    assert ops.startswith("Ops (time in us)") and "conv_forward" not in ops and "Thread" in ops
    times = [float(line.split()[7]) for line in ops.splitlines()[4:-1] if len(line.split()) > 8]
    assert times == sorted(times, reverse=True)
    with pytest.warns(UserWarning, match="no GPU in this build"):
        recorded.summary(SortedKeys.GPUTotal, views=[SummaryView.ModelView])
    with pytest.raises(ValueError, match="time_unit must be one of"):
        recorded.summary(time_unit="h")
    with pytest.raises(TypeError, match="SortedKeys"):
        recorded.summary(sorted_by="total")


def test_shapes_and_flops(capsys):
    with Profiler(on_trace_ready=quiet, record_shapes=True, with_flops=True) as prof:
        sp.nn.functional.linear(sp.ones([2, 3]), sp.ones([3, 4]))
    event = next(e for e in prof.profiler_result.events() if e["name"] == "linear")
    assert event["inputs"] == [("x", [2, 3], "float32"), ("weight", [3, 4], "float32")]
    assert event["flops"] == 2 * 2 * 3 * 4
    prof.summary(views=SummaryView.OperatorView)
    assert "x=[2, 3] float32, weight=[3, 4] float32" in capsys.readouterr().out


def test_the_trace_is_written_at_the_end_of_each_round(tmp_path):
    states = profiler.make_scheduler(closed=0, ready=1, record=1, repeat=2)
    folder = tmp_path / "log"
    with Profiler(scheduler=states, on_trace_ready=profiler.export_chrome_tracing(str(folder), "worker")) as prof:
        train(prof, steps=5)
    files = sorted(folder.iterdir())
    assert len(files) == 2 and all(f.name.startswith("worker_time_") for f in files)
    for number, file in zip((1, 3), files):
        trace = json.loads(file.read_text())
        slices = [line for line in trace["traceEvents"] if line["ph"] == "X"]
        assert all({"name", "cat", "ts", "dur", "pid", "tid"} <= line.keys() for line in slices)
        assert {"conv2d", "conv2d_grad", f"ProfileStep#{number}"} <= {line["name"] for line in slices}
    result = profiler.load_profiler_result(files[1])
    assert result.ops() == prof.profiler_result.ops()


def test_events_of_the_user():
    @RecordEvent("decorated")
    def decorated(n):
        return decorated(n - 1) if n else 0

    with Profiler(on_trace_ready=quiet) as prof:
        with RecordEvent("block"):
            sp.ones([2])
        first, second = RecordEvent("first"), RecordEvent("second")
        first.begin(), second.begin(), first.end(), second.end()
        second.end()  # once is enough
        decorated(1)
        with pytest.raises(KeyError), RecordEvent("raises"):
            raise KeyError
        with RecordEvent("eye", profiler.TracerEventType.Optimization):
            sp.eye(2)
        with pytest.warns(UserWarning, match="not for users"), RecordEvent("x", profiler.TracerEventType.Kernel):
            pass
    found = kinds(prof.profiler_result, "range")
    assert sorted(found) == ["block", "decorated", "decorated", "first", "raises", "second"]
    assert kinds(prof.profiler_result, "optimizer") == ["eye"]
    assert "block" in prof.profiler_result.ranges()


def test_nothing_is_recorded_without_a_profiler():
    with RecordEvent("outside"):
        sp.ones([2]).exp()
    with Profiler(on_trace_ready=quiet) as prof:
        pass
    assert [e["kind"] for e in prof.profiler_result.events()] == ["step"]


def test_other_threads_are_recorded():
    with Profiler(on_trace_ready=quiet) as prof:
        thread = threading.Thread(target=lambda: sp.ones([2]).exp())
        thread.start()
        thread.join()
    events = [e for e in prof.profiler_result.events() if e["name"] == "exp"]
    assert [e["thread"] for e in events] == ["thread 1"]


def test_forked_workers_do_not_disturb():
    with Profiler(on_trace_ready=quiet) as prof:
        train(prof, steps=2, num_workers=1)
    assert kinds(prof.profiler_result, "step") == ["ProfileStep#0", "ProfileStep#1"]
    assert len(kinds(prof.profiler_result, "loader")) == 3  # the last one finds the end


def test_schedules():
    states = profiler.make_scheduler(closed=1, ready=1, record=2, repeat=2, skip_first=1)
    short = {"CLOSED": "-", "READY": "r", "RECORD": "R", "RECORD_AND_RETURN": "!"}
    assert "".join(short[states(i).name] for i in range(11)) == "--rR!-rR!--"
    with pytest.raises(ValueError, match="record must be an integer of at least 1, got 0"):
        profiler.make_scheduler(closed=1, ready=1, record=0)
    with pytest.warns(UserWarning, match="ready=0"):
        profiler.make_scheduler(closed=0, ready=0, record=1)
    steps = [ProfilerState.RECORD, ProfilerState.CLOSED]
    with pytest.warns(UserWarning, match="what was recorded is dropped"):
        with Profiler(scheduler=lambda step: steps[min(step, 1)], on_trace_ready=quiet) as prof:
            prof.step()
    assert prof.profiler_result is None


def test_wrong_arguments(tmp_path):
    with pytest.raises(ValueError, match="scheduler must be a function of the step, or a pair"):
        Profiler(scheduler=(3, 1))
    with pytest.raises(TypeError, match="on_trace_ready must be a function"):
        Profiler(on_trace_ready="trace.json")
    with pytest.raises(TypeError, match="targets must hold ProfilerTarget"):
        Profiler(targets=["cpu"])
    with pytest.warns(UserWarning, match="there is no GPU in this build"):
        assert Profiler(targets=[ProfilerTarget.CPU, ProfilerTarget.GPU]).targets == {ProfilerTarget.CPU}
    with pytest.raises(NotImplementedError, match="export_chrome_tracing"):
        profiler.export_protobuf(str(tmp_path))
    prof = Profiler()
    with pytest.raises(NotImplementedError, match="protobuf"):
        prof.export("x.pb", format="pb")
    with pytest.raises(ValueError, match="format must be 'json'"):
        prof.export("x.txt", format="txt")
    with pytest.raises(ValueError, match="path names no file"):
        prof.export()
    with pytest.warns(UserWarning, match="nothing was recorded yet"):
        prof.summary()
    with pytest.raises(ValueError, match="num_samples"):
        prof.step(num_samples="many")
    with pytest.raises(TypeError, match="name must be a str"):
        RecordEvent(3)
    with pytest.raises(NotImplementedError, match="protobuf"):
        profiler.load_profiler_result("x.pb")


def test_one_recording_at_a_time():
    with Profiler(on_trace_ready=quiet):
        with pytest.raises(RuntimeError, match="the profiler is recording already"):
            Profiler(on_trace_ready=quiet).start()
        Profiler(on_trace_ready=quiet).stop()  # was never started, and stops nobody else's
        assert sp._core._profiler_on()
    lost = Profiler(on_trace_ready=quiet)
    lost.start()
    lost.stop()
    lost.start()
    assert sp._core._profiler_on()
    del lost
    assert not sp._core._profiler_on()


def test_files_that_cannot_be_written_or_read(recorded, tmp_path):
    file = tmp_path / "file"
    file.write_text("not a trace")
    with pytest.raises(RuntimeError, match="cannot make the folder"):
        profiler.export_chrome_tracing(str(file / "below"))
    with pytest.raises(OSError, match="below"):
        recorded.export(str(file / "below" / "trace.json"))
    with pytest.raises(ValueError, match="no trace that this profiler wrote"):
        profiler.load_profiler_result(file)
    with pytest.raises(OSError, match="nowhere"):
        profiler.load_profiler_result(tmp_path / "nowhere")
    assert [f.name for f in tmp_path.iterdir()] == ["file"]


def test_the_timer(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    prof = Profiler(timer_only=True)
    prof.start()
    for i, _ in enumerate(sp.io.DataLoader(Digits(13 * 4), batch_size=4)):
        prof.step(num_samples=4)
        if i == 2:
            info = prof.step_info(unit="images")
            for _ in sp.io.DataLoader(Digits(4), batch_size=4):
                pass
        if i == 5:  # an evaluation is not counted
            assert profiler.benchmark().current_event.reader_average.times == 3
    assert info.startswith(" reader_cost: ") and " batch_cost: " in info and info.endswith(" images/s")
    prof.stop()
    printed = capsys.readouterr().out
    lines = printed.splitlines()
    assert "Perf Summary" in lines[0] and lines[1].startswith("Reader Ratio: ")
    assert lines[2] == "Time Unit: s, IPS Unit: images/s"
    assert [line.split("|")[1].strip() for line in lines[3:]] == ["", "reader_cost", "batch_cost", "ips"]
    assert len({len(line) for line in lines[3:]}) == 1
    assert not list(tmp_path.iterdir())
    with pytest.raises(RuntimeError, match="was not started"):
        prof.step_info()


def test_the_timer_counts_steps_without_samples():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        prof = Profiler(timer_only=True)
        prof.start()
        prof.step()
        assert prof.step_info().endswith(" steps/s")
        prof.stop()


def test_the_functions_of_paddle_2(tmp_path, capsys):
    from sampan.utils import profiler as old

    with old.profiler("CPU", "calls", str(tmp_path / "profile"), "OpDetail"):
        sp.ones([2, 2]).matmul(sp.ones([2, 2]))
        old.reset_profiler()
        sp.ones([2, 2]).exp()
    printed = capsys.readouterr().out
    assert "exp" in printed and "matmul" not in printed
    assert "exp" in profiler.load_profiler_result(tmp_path / "profile").ops()
    with pytest.raises(ValueError, match="state must be one of"):
        old.start_profiler("TPU")


def test_a_config_file(tmp_path):
    file = tmp_path / "profiler.json"
    file.write_text(json.dumps({"targets": ["cpu"], "scheduler": [2, 4], "timer_only": True}))
    prof = profiler.profiler.get_profiler(str(file))
    assert prof.timer_only and prof.scheduler(3) is ProfilerState.RECORD_AND_RETURN
    file.write_text(json.dumps({"speed": 1}))
    with pytest.raises(ValueError, match="speed"):
        profiler.profiler.get_profiler(str(file))
