"""Two implementations side by side: sampan on both sides, so that nothing else is needed."""

import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest
import sampan
import sampan.nn.functional as F
from sampan import align, nn

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
X = np.random.default_rng(0).standard_normal((3, 3, 8, 8)).astype("float32")
Y = np.array([0, 1, 2])


class Net(nn.Layer):
    """A network with a residual sum, a normalisation, a pooling layer and functions between them."""

    def __init__(self, fault=""):
        super().__init__()
        self.fault = fault
        stride = 2 if fault == "stride" else 1
        self.stem = nn.Conv2D(3, 6, 3, stride=stride, padding=1)
        self.bn = nn.BatchNorm2D(6, epsilon=1e-2 if fault == "bn_epsilon" else 1e-5)
        self.body = nn.Conv2D(6, 6, 3, padding=1, groups=2, bias_attr=False if fault == "bias_missing" else None)
        self.pool = nn.AvgPool2D(3, 2, padding=1, exclusive=fault != "avgpool_exclusive")
        self.fc = nn.Linear(96, 12)
        self.act = nn.GELU(approximate=fault == "gelu_approximation")
        self.drop = nn.Dropout(0.3 if fault == "dropout_p" else 0.5)
        self.head = nn.Linear(12, 5)

    def forward(self, x):
        x = F.relu(self.bn(self.stem(x)))
        y = self.body(x)
        y = y if self.fault == "residual_missing" else y + x
        y = y if self.fault == "activation_missing" else F.relu(y)
        y = self.pool(y)
        if self.fault == "flatten_order":
            y = y.transpose([0, 2, 3, 1])
        y = sampan.flatten(y, 1)
        if self.fault == "gradient_stopped":
            y = y.detach()
        y = self.drop(self.act(self.fc(y)))
        return self.head(y * 2 if self.fault == "scale" else y)


def pair_of(fault):
    sampan.seed(3)
    one, other = Net(), Net(fault)
    align.copy_weights(one, other)
    if fault == "weights_not_loaded":
        other.head.weight.set_value(np.ones([12, 5], "float32"))
    one.eval()
    other.train() if fault == "train_eval_mode" else other.eval()
    return one, other


FAULTS = {
    "stride": "stem",
    "bn_epsilon": "bn",
    "bias_missing": "body",
    "avgpool_exclusive": "pool",
    "gelu_approximation": "act",
    "residual_missing": None,
    "activation_missing": None,
    "flatten_order": "/flatten",
    "scale": "/multiply",
    "gradient_stopped": "pool",
    "dropout_p": "drop",
    "weights_not_loaded": "head",
    "train_eval_mode": "bn",
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_is_named(fault):
    one, other = pair_of(fault)
    report = align.align(one, other, X, labels=Y, criterion=F.cross_entropy)
    assert not report.ok
    first = report.findings[0]
    assert first.cause == fault, report.text()
    if FAULTS[fault]:
        assert first.candidate == FAULTS[fault], report.text()


def test_equal_models_are_aligned_also_in_training_mode():
    one, other = pair_of("")
    assert align.align(one, other, X, labels=Y, criterion=F.cross_entropy).ok
    report = align.align(one, other, X, labels=Y, criterion=F.cross_entropy, train=True)
    assert report.ok and "dropout" in report.text()


def test_several_faults_are_found_in_one_run():
    one, other = pair_of("bn_epsilon")
    other.pool = nn.AvgPool2D(3, 2, padding=1, exclusive=False)
    other.head.weight.set_value(np.ones([12, 5], "float32"))
    causes = {f.candidate: f.cause for f in align.align(one, other, X).findings}
    assert causes == {"bn": "bn_epsilon", "pool": "avgpool_exclusive", "head": "weights_not_loaded"}


def momentum(**settings):
    return lambda net: sampan.optimizer.Momentum(0.1, parameters=net.parameters(), **settings)


@pytest.mark.parametrize(
    ("settings", "cause"),
    [
        ({}, None),
        ({"use_nesterov": True}, "nesterov"),
        ({"weight_decay": 0.1}, "weight_decay"),
        ({"momentum": 0.5}, "momentum"),
        ({"grad_clip": nn.ClipGradByGlobalNorm(0.01)}, "gradient_clipping"),
    ],
)
def test_optimizers(settings, cause):
    one, other = pair_of("")
    before = one.stem.weight.numpy()
    pair = (momentum(), momentum(**settings))
    report = align.align(one, other, X, labels=Y, criterion=F.cross_entropy, optimizer=pair)
    assert (report.findings[0].cause if report.findings else None) == cause, report.text()
    assert np.array_equal(before, one.stem.weight.numpy()), "the models are as before"


def test_data_and_metric_and_loss():
    one, other = pair_of("")
    means = np.array([0.1, 0.2, 0.3], "float32").reshape(1, 3, 1, 1)
    report = align.align(one, other, X, data=([X], [X[:, ::-1].copy()]))
    assert report.findings[0].cause == "channel_order"
    report = align.align(one, other, X, data=([X], [(X - means) / 0.5]))
    assert report.findings[0].cause == "normalisation_constants"
    report = align.align(one, other, X, metric=(lambda out: 0.25, lambda out: 25.0))
    assert report.findings[0].cause == "metric_scale"
    smooth = lambda out, y: F.cross_entropy(out, y, label_smoothing=0.1)  # noqa: E731
    report = align.align(one, other, X, labels=Y, criterion=(F.cross_entropy, smooth))
    assert (report.findings[0].check, report.findings[0].cause) == ("loss", "label_smoothing")


def test_other_weights_are_compared_by_how_they_were_drawn():
    one, other = Net(), Net()
    other.fc.weight.set_value(np.random.default_rng(1).normal(0, 2, [96, 12]).astype("float32"))
    report = align.align(one, other, X)
    assert [f.candidate for f in report.findings if f.cause == "initializer"] == ["fc.weight"]
    assert "copy_weights" in report.text()


def test_recordings_are_files_that_numpy_reads(tmp_path):
    one, other = pair_of("avgpool_exclusive")
    for name, net in [("a", one), ("b", other)]:
        with align.record(net, optimizer=None) as recorder:
            F.cross_entropy(net(sampan.to_tensor(X)), sampan.to_tensor(Y)).backward()
        recorder.save(tmp_path / name)
    # Our own file, of which we know that it is only data.
    forward = np.load(tmp_path / "a" / "forward.npy", allow_pickle=True).item()
    assert forward["stem"].shape == (3, 6, 8, 8)
    report = align.compare(tmp_path / "a", tmp_path / "b")
    assert (report.first_forward, report.findings[0].cause) == ("pool", "avgpool_exclusive"), report.text()
    logs = report.logs(tmp_path / "log")
    assert (tmp_path / "log" / "forward_diff.log").read_text().endswith("diff check failed\n") and len(logs) >= 2
    report.html(tmp_path / "page.html")
    assert "<svg" in (tmp_path / "page.html").read_text()


def test_files_of_numpy_are_read_as_recordings(tmp_path):
    np.save(tmp_path / "forward_ref.npy", {"logits": X, "loss": np.array(1.5)})
    np.save(tmp_path / "forward_paddle.npy", {"logits": X, "loss": np.array(1.5)})
    assert align.compare(tmp_path / "forward_ref.npy", tmp_path / "forward_paddle.npy").ok
    np.save(tmp_path / "other.npy", {"logits": X * 2, "loss": np.array(1.5)})
    report = align.compare(tmp_path / "forward_ref.npy", tmp_path / "other.npy")
    assert not report.ok and report.findings[0].reference == "logits"


def test_bad_input_gets_a_sentence(tmp_path):
    with pytest.raises(TypeError, match="torch.nn.Module"):
        align.align(object(), Net(), X)
    with pytest.raises(Exception, match="there is no recording"):
        align.load(tmp_path / "nothing")
    (tmp_path / "text.npy").write_text("this is no array")
    with pytest.raises(Exception, match=r"text\.npy"):
        align.load(tmp_path / "text.npy")
    with pytest.raises(Exception, match="no such layer"):
        align.pair(Net(), Net(), "stam = stem")
    with pytest.raises(ValueError, match="no check"):
        align.align(Net(), Net(), X, checks=["backwards"])
    wrong = Net()
    wrong.head = nn.Linear(7, 5)
    report = align.align(Net(), wrong, X)
    assert not report.ok and "does not get to the end" in report.text()


def test_layers_that_run_twice_and_share_weights():
    class Twice(nn.Layer):
        def __init__(self):
            super().__init__()
            self.a = nn.Linear(4, 4)
            self.b = nn.Linear(4, 4)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(self.a(x)))

    one, other = Twice(), Twice()
    align.copy_weights(one, other)
    x = np.ones((2, 4), "float32")
    assert align.align(one, other, x).ok
    other.a.bias.set_value(np.ones(4, "float32"))
    report = align.align(one, other, x)
    assert report.first_forward == "a" and report.findings[0].cause == "weights_not_loaded"


def test_training_is_bisected():
    def factory(fault):
        def make():
            _, net = pair_of("")
            net.eval()
            rate = sampan.optimizer.lr.PiecewiseDecay([3], [0.05, 0.5 if fault else 0.05])
            optimizer = sampan.optimizer.SGD(rate, parameters=net.parameters())

            def train(steps):
                for _ in range(steps):
                    F.cross_entropy(net(sampan.to_tensor(X)), sampan.to_tensor(Y)).backward()
                    optimizer.step()
                    optimizer.clear_grad()
                    rate.step()

            return net, optimizer, train

        return make

    assert align.bisect(factory(False), factory(False), steps=5) is None
    report = align.bisect(factory(False), factory(True), steps=6)
    assert report.data["parts_at"] == 4
    assert report.findings[0].cause.startswith("lr_"), report.text()


def test_torch_as_the_reference():
    torch = pytest.importorskip("torch", reason="PyTorch is not installed")
    reference = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.Flatten(), torch.nn.Linear(144, 144), torch.nn.Linear(144, 5)
    )
    ours = nn.Sequential(nn.Conv2D(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 144), nn.Linear(144, 5))
    align.copy_weights(reference, ours)
    criteria = (torch.nn.functional.cross_entropy, F.cross_entropy)
    optimizers = (
        lambda net: torch.optim.AdamW(net.parameters(), 1e-3),
        lambda net: sampan.optimizer.AdamW(1e-3, parameters=net.parameters()),
    )
    assert align.align(reference, ours, X, labels=Y, criterion=criteria, optimizer=optimizers).ok
    ours[3].weight.set_value(ours[3].weight.numpy().T.copy())
    report = align.align(reference, ours, X, labels=Y, criterion=criteria)
    assert (report.findings[0].candidate, report.findings[0].cause) == ("3", "linear_transposed"), report.text()


@pytest.mark.parametrize("page", ["align.md", "align.zh-CN.md"])
def test_the_guide_runs_and_says_what_the_report_says(page, tmp_path, monkeypatch, capsys):
    text = (ROOT / "docs" / page).read_text()
    monkeypatch.chdir(tmp_path)
    names = {"__name__": "guide"}
    for program in re.findall(r"```python\n(.*?)```", text, re.S):
        exec(compile(program, page, "exec"), names)
    promised = set(re.findall(r"^\| `(bn|features\.1|/flatten|optimizer)` \| `(\w+)` \|", text, re.M))
    assert len(promised) == 4
    printed = capsys.readouterr().out
    for candidate, cause in promised:
        assert re.search(rf"^{re.escape(candidate)} {cause} ", printed, re.M), printed


def test_both_parts_of_complex_numbers_count(tmp_path):
    for name, value in [("p", 1 + 1j), ("q", 1 + 9j), ("r", 1 + 1j)]:
        np.save(tmp_path / f"{name}.npy", {"a": np.full(3, value)})
    assert not align.compare(tmp_path / "p.npy", tmp_path / "q.npy").ok
    assert align.compare(tmp_path / "p.npy", tmp_path / "r.npy").ok
    for name, value in [("big", 2**60), ("bigger", 2**60 + 1)]:
        np.save(tmp_path / f"{name}.npy", {"a": np.array([value])})
    assert not align.compare(tmp_path / "big.npy", tmp_path / "bigger.npy").ok


def test_nothing_compared_is_not_aligned(tmp_path):
    np.save(tmp_path / "p.npy", {"a": np.ones(3)})
    with pytest.raises(KeyError, match="nothing in common for optimizer"):
        align.compare(tmp_path / "p.npy", tmp_path / "p.npy", checks=["optimizer"])
    for bad in (float("nan"), -1.0):
        with pytest.raises(ValueError, match="tolerance"):
            align.compare(tmp_path / "p.npy", tmp_path / "p.npy", tolerance=bad)


def test_models_keep_their_modes():
    a, b = (nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.Linear(4, 2)) for _ in range(2))
    align.copy_weights(a, b)
    a[1].eval()
    modes = [[layer.training for layer in net.sublayers(include_self=True)] for net in (a, b)]
    assert align.align(a, b, np.ones((2, 3), "float32"), train=False).ok
    assert [[layer.training for layer in net.sublayers(include_self=True)] for net in (a, b)] == modes


def test_a_tied_target_takes_one_weight_alone():
    one, tied = (nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3)) for _ in range(2))
    tied[2].weight = tied[0].weight
    kept = tied[0].weight.numpy().copy()
    for give in (align.copy_weights, align.convert_weights):
        with pytest.raises(ValueError, match="one parameter"):
            give(one, tied)
        assert np.array_equal(tied[0].weight.numpy(), kept)
    one[2].weight.set_value(one[0].weight)
    for give in (align.copy_weights, align.convert_weights):
        give(one, tied)
        assert np.array_equal(tied[2].weight.numpy(), one[0].weight.numpy())


def test_nan_on_one_side_fails_every_check_it_reaches():
    one, other = nn.Linear(4, 3), nn.Linear(4, 3)
    align.copy_weights(one, other)
    spoilt = other.weight.numpy()
    spoilt[0, 0] = np.nan
    other.weight.set_value(sampan.to_tensor(spoilt))
    optimizer = lambda net: sampan.optimizer.SGD(0.1, parameters=net.parameters())  # noqa: E731
    report = align.align(one, other, np.ones((2, 4), "float32"), criterion=lambda y: y.mean(), optimizer=optimizer)
    assert report.findings[0].cause == "not_finite"
    failed = {line.split()[1] for line in report.text().splitlines() if line.strip().startswith("FAIL")}
    assert {"forward", "loss", "training"} <= failed, report.text()


def test_gradients_and_random_numbers_are_afterwards_as_they_were():
    one, other = pair_of("")
    other.head(sampan.ones([1, 12])).sum().backward()
    kept = other.head.weight.grad.numpy()
    sampan.seed(7)
    wanted = sampan.rand([3]).numpy()
    for more in ({}, {"optimizer": momentum()}):
        sampan.seed(7)
        align.align(one, other, X, labels=Y, criterion=F.cross_entropy, train=True, **more)
        assert one.head.weight.grad is None and other.stem.weight.grad is None
        np.testing.assert_array_equal(other.head.weight.grad.numpy(), kept)
        np.testing.assert_array_equal(sampan.rand([3]).numpy(), wanted)


class Attention(nn.Layer):
    """A causal mask in one of several ways, and a fault elsewhere."""

    def __init__(self, way, fault=""):
        super().__init__()
        self.way, self.fault = way, fault
        self.table, self.qkv = nn.Embedding(20, 16), nn.Linear(16, 48)
        self.norm = nn.LayerNorm(16, epsilon=1e-2 if fault == "layernorm_epsilon" else 1e-5)
        self.head = nn.Linear(16, 16)

    def masked(self, scores):
        shape = scores.shape[-2:]
        lower = sampan.tril(sampan.ones(shape))
        if self.way == "fill":
            return scores.masked_fill(sampan.triu(sampan.ones(shape, "bool"), 1), float("-inf"))
        if self.way == "infinite":
            return scores + sampan.triu(sampan.full(shape, float("-inf")), 1)
        if self.way == "product":
            return scores + (1 - lower) * -1e4
        if self.way == "where":
            return sampan.where(lower.expand(scores.shape) == 1, scores, sampan.full(scores.shape, -1e9))
        return scores + sampan.triu(sampan.full(shape, -1e9), 1)

    def forward(self, ids):
        x = self.table(ids)
        q, k, v = self.qkv(x).chunk(3, -1)
        if self.fault == "scale":
            q = q * 1.5
        if self.way == "built in":
            q, k, v = (t.unsqueeze(2) for t in (q, k, v))
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True).squeeze(2)
        elif self.way == "given":
            q, k, v = (t.unsqueeze(2) for t in (q, k, v))
            mask = sampan.tril(sampan.ones([ids.shape[1]] * 2, "bool"))
            y = F.scaled_dot_product_attention(q, k, v, attn_mask=mask).squeeze(2)
        else:
            scores = self.masked(sampan.matmul(q, k, transpose_y=True) * 0.25)
            y = sampan.matmul(F.softmax(scores, -2 if self.fault == "softmax_axis" else -1), v)
        return self.head(F.gelu(self.norm(x + y), approximate=self.fault == "gelu_approximation"))


WAYS = ["fill", "infinite", "product", "where", "huge", "built in", "given"]


@pytest.mark.parametrize("way", WAYS[1:])
@pytest.mark.parametrize("fault", ["", "layernorm_epsilon", "gelu_approximation", "softmax_axis", "scale"])
def test_a_mask_that_is_written_otherwise_is_no_difference(way, fault):
    whole = way in ("built in", "given")
    if whole and fault == "softmax_axis":
        pytest.skip("there the softmax is not the user's")
    one, other = Attention("given" if way == "built in" else "built in" if whole else "fill"), Attention(way, fault)
    align.copy_weights(one, other)
    report = align.align(one, other, np.random.default_rng(0).integers(0, 20, (2, 7)))
    assert [f.cause for f in report.findings] == ([fault] if fault else []), report.text()


def test_a_mask_that_is_another_one_is_a_difference():
    one, other = Attention("fill"), Attention("infinite")
    other.masked = lambda scores: scores + sampan.triu(sampan.full(scores.shape[-2:], -1e9), 2)
    align.copy_weights(one, other)
    report = align.align(one, other, np.random.default_rng(0).integers(0, 20, (2, 7)))
    assert len(report.findings) == 1 and report.findings[0].cause == "attention_mask", report.text()


@pytest.mark.parametrize(
    ("fault", "cause"),
    [
        ("keep", "gradients_not_cleared"),
        ("skip", "step_skipped"),
        ("twice", "gradients_accumulated"),
        ("write", "weights_written"),
        ("rate", "lr_per_epoch_or_step"),
        ("loss", ""),
        ("halves", None),
    ],
)
def test_bisect_names_what_the_loop_does_otherwise(fault, cause):
    def training(fault=""):
        def factory():
            sampan.seed(5)
            net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3))
            rate = sampan.optimizer.lr.StepDecay(0.5, 3, 0.1) if fault == "rate" else 0.5
            optimizer = sampan.optimizer.SGD(rate, parameters=net.parameters())
            x, y = sampan.to_tensor(X[:, 0, 0, :4]), sampan.to_tensor(Y)

            def train(steps):
                for n in range(steps):
                    loss = F.cross_entropy(net(x), y)
                    loss = loss * 2.5 if fault == "loss" and n >= 3 else loss
                    for part in (loss / 2, loss / 2) if fault == "halves" else [loss] * (2 if fault == "twice" and n == 3 else 1):
                        part.backward(retain_graph=True)
                    if not (fault == "skip" and n == 3):
                        optimizer.step()
                    if not (fault == "keep" and n == 3):
                        optimizer.clear_grad()
                    if fault == "write" and n == 3:
                        net[0].weight.set_value(net[0].weight * 1.1)
                    if fault == "rate":
                        rate.step()

            return net, optimizer, train

        return factory

    report = align.bisect(training(), training(fault), steps=8)
    if cause is None:
        assert report is None
        return
    assert [f.cause for f in report.findings] == [cause], report.text()
    assert report.data["parts_at"] in (3, 4) and not any(f.where == "layer" for f in report.findings)


WRONG = {
    "optimizer": {"labels": Y, "criterion": F.cross_entropy, "optimizer": (1, 2)},
    "what the function for optimizer makes": {"labels": Y, "criterion": F.cross_entropy, "optimizer": lambda net: 3},
    "an optimizer needs a criterion": {"optimizer": momentum()},
    "data": {"data": 3},
    "metric": {"metric": "top1"},
    "training": {"training": 3, "optimizer": momentum()},
    "steps is 1 or more": {"steps": 0},
    "batches": {"batches": "x"},
    "train": {"train": "yes"},
    "mapping": {"mapping": 3},
    "checks": {"checks": 3},
    "tolerance": {"tolerance": "x"},
}


@pytest.mark.parametrize("word", WRONG)
def test_a_wrong_argument_is_one_sentence(word):
    one, other = pair_of("")
    with pytest.raises((TypeError, ValueError), match=re.escape(f"align: {word}")) as caught:
        align.align(one, other, X, **WRONG[word])
    assert "\n" not in str(caught.value)


def test_wrong_paths_and_functions_are_one_sentence(tmp_path):
    one, other = pair_of("")
    report = align.align(one, other, X)
    with pytest.raises(OSError, match=r"html: the page cannot be written to .*nodir"):
        report.html(tmp_path / "nodir" / "x.html")
    for call in (report.html, report.logs, align.load):
        with pytest.raises(TypeError, match="the path is a str or os.PathLike, not int"):
            call(3)
    for sides in ((one, other), (lambda: 1, lambda: 2)):
        with pytest.raises(TypeError, match=r"bisect: each side is a function .* gives \(model, optimizer, train\)"):
            align.bisect(*sides)
    with pytest.raises(TypeError, match="record: at is the numbers of the steps"):
        align.record(one, at="x")


def test_a_loader_without_batches_is_named():
    one, other = pair_of("")
    assert "gives no batches" in align.align(one, other, X, data=([], [])).text()


def test_the_command_of_the_module_is_that_of_the_program(tmp_path):
    one, other = pair_of("bn_epsilon")
    for name, net in (("one", one), ("other", other)):
        with align.record(net) as recorder:
            net(sampan.to_tensor(X))
        recorder.save(tmp_path / name)

    def run(*words):
        return subprocess.run([sys.executable, "-m", "sampan", *words], cwd=tmp_path, capture_output=True, text=True)

    same, parted = run("align", "one", "one"), run("align", "one", "other", "--check", "forward")
    assert same.returncode == 0 and "aligned" in same.stdout, same.stderr
    assert parted.returncode == 1 and "bn_epsilon" in parted.stdout
    lost = run("align", "one", "nowhere")
    assert lost.returncode == 1 and lost.stderr.startswith("error: ") and "Traceback" not in lost.stderr
    assert run("align").returncode == 2 and "Usage: python -m sampan align" in run("align").stderr
    sampan.save(one.state_dict(), str(tmp_path / "net.pdparams"))
    done = run("convert", "net.pdparams", "--to", "net.safetensors", "--quiet")
    assert done.returncode == 0 and (tmp_path / "net.safetensors").is_file(), done.stderr
    assert "align" in run("--help").stdout and "convert" in run().stdout


class Blocks(nn.Layer):
    def __init__(self, count, name):
        super().__init__()
        self.stem = nn.Linear(8, 16)
        block = lambda: nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16), nn.LayerNorm(16))  # noqa: E731
        self.add_sublayer(name, nn.LayerList([block() for _ in range(count)]))
        self.name, self.head = name, nn.Linear(16, 5)

    def forward(self, x):
        x = self.stem(x)
        for block in getattr(self, self.name):
            x = x + block(x)
        return self.head(x)


@pytest.mark.parametrize(("ours", "theirs"), [(2, 3), (3, 2), (2, 4)])
def test_a_block_that_only_one_side_has_is_named_as_one(ours, theirs):
    one, other = Blocks(ours, "blocks"), Blocks(theirs, "layers")
    align.copy_weights(one, other)
    report = align.align(one, other, X[:, 0, 0])
    (found,) = report.findings
    extra = theirs > ours
    assert found.cause == ("block_extra" if extra else "block_missing"), report.text()
    side, count = ("candidate" if extra else "reference"), ("one more block" if theirs - ours < 2 else "2 more blocks")
    assert f"the {side} has {count} than the" in found.sentence
    assert (found.candidate or found.reference) in ("layers.2", "blocks.2") and "Sequential: Linear, ReLU" in found.sentence


OUTPUTS = {
    "numbers": (lambda y: (y, 3), lambda y: (y, 4), "the output at [1] is 3 in the reference and 4 in the candidate"),
    "a number": (lambda y: float(y.sum()), lambda y: float(y.sum()) + 1, "the output is "),
    "texts": (lambda y: {"a": [y, "x"]}, lambda y: {"a": [y, "z"]}, 'the output at [\'a\'][1] is "x" in the reference and "z"'),
    "nothing": (lambda y: (y, None), lambda y: (y, y), "the output at [1] is None in the reference and a tensor"),
    "arrays": (lambda y: (y, y.numpy()), lambda y: (y, y.numpy() * 2), "the output at [1] is an array that differs"),
    "objects": (lambda y: (y, object()), lambda y: (y, object()), "the output at [1] is a object, which is not compared"),
    "one side": (lambda y: {"a": y, "n": 1}, lambda y: {"a": y}, "is 1 in the reference alone; it is not compared"),
    "tensors": (lambda y: (y, y * 2), lambda y: (y,), "the reference gives 2 tensors and the candidate 1"),
}


class Given(nn.Layer):
    def __init__(self, make):
        super().__init__()
        self.fc, self.make = nn.Linear(4, 3), make

    def forward(self, x):
        return self.make(self.fc(x))


@pytest.mark.parametrize("kind", OUTPUTS)
def test_outputs_that_are_no_tensors_are_compared_or_named(kind):
    first, second, said = OUTPUTS[kind]
    one, other = Given(first), Given(second)
    align.copy_weights(one, other)
    report = align.align(one, other, X[:, 0, 0, :4])
    assert said in report.text(), report.text()
    assert report.ok == ("compared" in said or "tensors" in said)
    assert align.align(one, one, X[:, 0, 0, :4]).ok


def test_statistics_after_a_fault_are_not_faults_of_their_own():
    def net(slope):
        return nn.Sequential(nn.Conv2D(3, 4, 3), nn.LeakyReLU(slope), nn.Conv2D(4, 4, 3), nn.BatchNorm2D(4), nn.Flatten(), nn.Linear(64, 5))

    one, other = net(0.2), net(0.01)
    align.copy_weights(one, other)
    report = align.align(one, other, X, labels=Y, criterion=F.cross_entropy, optimizer=momentum(), train=True)
    assert [f.cause for f in report.findings] == ["activation_slope"], report.text()
