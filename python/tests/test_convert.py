"""Weights of one framework as another's: pairs, transposes, formats, and what is refused."""

import pathlib
import re

import numpy as np
import pytest

import sampan
from sampan import nn
from sampan.align import convert_weights


class Small(nn.Layer):
    """What a file of PyTorch's `Small` below is for."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(6, 8)
        self.rnn = nn.LSTM(8, 4, direction="bidirect")
        self.attention = nn.MultiHeadAttention(8, 2)
        self.norm = nn.LayerNorm([3, 8])
        self.fc = nn.Linear(8, 8)
        self.last = nn.Linear(8, 8, bias_attr=False)

    def forward(self, x):
        x = self.rnn(self.table(x))[0]
        return self.last(self.fc(self.norm(self.attention(x, x, x))))


def torch_state():
    """The keys and shapes that PyTorch would have, with random values."""
    draw = np.random.default_rng(0).standard_normal
    shapes = {"emb.weight": (6, 8)}
    for end in ("", "_reverse"):
        shapes |= {f"lstm.weight_ih_l0{end}": (16, 8), f"lstm.weight_hh_l0{end}": (16, 4)}
        shapes |= {f"lstm.bias_ih_l0{end}": (16,), f"lstm.bias_hh_l0{end}": (16,)}
    shapes |= {"mha.in_proj_weight": (24, 8), "mha.in_proj_bias": (24,)}
    shapes |= {"mha.out_proj.weight": (8, 8), "mha.out_proj.bias": (8,), "ln.weight": (3, 8), "ln.bias": (3, 8)}
    shapes |= {"fc.weight": (8, 8), "fc.bias": (8,), "head.weight": (8, 8)}
    return {key: (draw(shape) * 0.3).astype("float32") for key, shape in shapes.items()}


def test_layers_are_paired_and_matrices_turned_by_their_class():
    state, net = torch_state(), Small()
    done = convert_weights(state, net, source_layout="torch")
    rows = {row["target"]: row for row in done.rows}
    assert rows["table.weight"]["how"] == "as it is"
    assert rows["attention.k_proj.weight"]["how"] == "part 2 of 3, transposed"
    assert rows["norm.weight"]["how"] == "reshaped"
    np.testing.assert_array_equal(net.fc.weight.numpy(), state["fc.weight"].T)
    np.testing.assert_array_equal(net.last.weight.numpy(), state["head.weight"].T)
    np.testing.assert_array_equal(net.table.weight.numpy(), state["emb.weight"])
    np.testing.assert_array_equal(net.attention.v_proj.weight.numpy(), state["mha.in_proj_weight"][16:].T)
    assert not done.unused and not done.missing
    assert "lstm.weight_ih_l0" in str(done) and "38" not in repr(done)


@pytest.mark.parametrize("end", ["pth", "pdparams", "safetensors", "npz"])
def test_files_of_every_format_come_back(tmp_path, end):
    state, net = torch_state(), Small()
    path = tmp_path / f"net.{end}"
    convert_weights(state, net, source_layout="torch", to=path, target_layout="paddle")
    other = Small()
    convert_weights(path, other, source_layout="paddle")
    for key, value in net.state_dict().items():
        np.testing.assert_array_equal(other.state_dict()[key].numpy(), value.numpy(), err_msg=key)
    assert not [p for p in tmp_path.iterdir() if p != path]


def test_a_pth_file_lies_as_pytorchs_do(tmp_path):
    net = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1D(3))
    path = tmp_path / "net.pth"
    convert_weights(net, to=path)
    state = sampan.load(str(path))
    assert set(state) == {"0.weight", "0.bias", "1.weight", "1.bias", "1.running_mean", "1.running_var"}
    np.testing.assert_array_equal(state["0.weight"].numpy(), net[0].weight.numpy().T)


def test_a_zoo_model_by_name_and_a_file_without_names(tmp_path):
    net = sampan.vision.models.squeezenet1_1()
    path = tmp_path / "net.pdiparams"
    convert_weights(net, net, to=path)
    tensors = sampan.load(str(path))
    assert len(tensors) == 52
    with pytest.raises(ValueError, match="without names"):
        convert_weights(path, net)
    other = sampan.vision.models.squeezenet1_1()
    # Names of tensors count up in a process; the order of a file is that of the model it was saved from.
    convert_weights(path, other, source_model=net)
    np.testing.assert_array_equal(other._conv9.weight.numpy(), net._conv9.weight.numpy())


def test_what_nothing_decides_is_an_error_that_lists_the_choices():
    class Two(nn.Layer):
        def __init__(self):
            super().__init__()
            self.x, self.y, self.z = (nn.Linear(2, 2) for _ in range(3))

    state = {f"{n}.{k}": np.ones((2, 2) if k == "weight" else 2, "float32") * i for i, n in enumerate("ab") for k in ("weight", "bias")}
    with pytest.raises(ValueError, match=r"x \(weight \[2, 2\], bias \[2\]\) could be a or b"):
        convert_weights(state, Two(), source_layout="torch")
    net = Two()
    done = convert_weights(state, net, source_layout="torch", mapping={"a": "z", "b": "x", None: "y"})
    assert done.left == ["y.weight", "y.bias"] and float(net.x.bias.numpy()[0]) == 1.0
    done = convert_weights(state, net, source_layout="torch", mapping="a = z\nb = x", partial=True)
    assert done.missing == ["y.weight", "y.bias"]
    for mapping, words in [
        ("a = z", "could be"),
        ("a = q", "which the target lacks"),
        ("a = z\nb = x\nc = y", "line 3"),
        ("nonsense", "SOURCE = TARGET"),
    ]:
        with pytest.raises(ValueError, match=words):
            convert_weights(state, Two(), source_layout="torch", mapping=mapping)


def test_a_square_matrix_without_a_class_is_not_guessed(tmp_path):
    state = {"a.weight": np.arange(9, dtype="float32").reshape(3, 3)}
    with pytest.raises(ValueError, match="nothing tells which"):
        convert_weights(state, to=tmp_path / "a.pdparams", source_layout="torch")
    assert not (tmp_path / "a.pdparams").exists()
    done = convert_weights(state, source_layout="torch", target_layout="paddle", mapping="transpose a.weight")
    np.testing.assert_array_equal(done.state["a.weight"].numpy(), state["a.weight"].T)
    with pytest.raises(ValueError, match="does not tell"):
        convert_weights(state, nn.Sequential(nn.Linear(3, 3, bias_attr=False)))


def test_bad_input_gets_a_sentence(tmp_path):
    cut = tmp_path / "cut.pth"
    convert_weights(torch_state(), to=cut, source_layout="torch")
    cut.write_bytes(cut.read_bytes()[:-300])
    kept = tmp_path / "kept.pdparams"
    kept.write_bytes(b"before")
    for source, options, words in [
        (cut, {}, "cut short"),
        (tmp_path / "no.pth", {}, "No such file"),
        ({"a": 3}, {}, "no partner|no weights"),
        (torch_state(), {"target": "resnet999"}, "neither a file nor a network"),
        (torch_state(), {"source_layout": "jax"}, "torch's or as paddle's"),
        (torch_state(), {"source_layout": "torch", "to": tmp_path / "a.txt"}, "does not tell the format"),
        (torch_state(), {"source_layout": "torch", "to": tmp_path / "a.onnx"}, "no ONNX file"),
        (7, {}, "expected a path"),
    ]:
        options = {"target": Small(), **options}
        with pytest.raises((ValueError, TypeError, RuntimeError, OSError), match=words):
            convert_weights(source, **options)
    assert kept.read_bytes() == b"before"


def test_a_checkpoint_with_several_dicts_asks_which(tmp_path):
    path = tmp_path / "all.pth"
    one = {"0.weight": sampan.ones([2, 3]), "0.bias": sampan.ones([2])}
    sampan.save({"model": one, "ema": {k: v * 2 for k, v in one.items()}, "epoch": 3}, str(path))
    net = nn.Sequential(nn.Linear(3, 2))
    with pytest.raises(ValueError, match="model, ema"):
        convert_weights(path, net)
    convert_weights(path, net, key="ema")
    assert float(net[0].bias.numpy()[0]) == 2.0


def test_live_models_of_pytorch():
    torch = pytest.importorskip("torch", reason="a live PyTorch model is converted")
    theirs = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(16, 16))
    theirs[1].running_mean.normal_(0, 0.1)
    theirs.eval()
    ours = nn.Sequential(nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4), nn.Flatten(), nn.Linear(16, 16))
    ours.eval()
    done = convert_weights(theirs, ours)
    assert done.dropped == [["1.num_batches_tracked", "a counter that only PyTorch keeps"]]
    x = np.random.default_rng(1).standard_normal((2, 3, 4, 4)).astype("float32")
    with torch.no_grad():
        want = theirs(torch.from_numpy(x)).numpy()
    np.testing.assert_allclose(ours(sampan.to_tensor(x)).numpy(), want, atol=1e-5)
    other = torch.nn.Sequential(torch.nn.Conv2d(3, 4, 3), torch.nn.BatchNorm2d(4), torch.nn.Flatten(), torch.nn.Linear(16, 16))
    convert_weights(ours, other)
    with torch.no_grad():
        np.testing.assert_allclose(other.eval()(torch.from_numpy(x)).numpy(), want, atol=1e-6)


def test_pytorch_reads_what_we_write(tmp_path):
    torch = pytest.importorskip("torch", reason="PyTorch reads the file")
    state = {"a": sampan.randn([2, 3]), "b": sampan.to_tensor([1, 2]), "c": sampan.zeros([0, 2]), "d": sampan.to_tensor(2.5)}
    sampan.save(state, str(tmp_path / "a.pth"))
    for options in ({}, {"weights_only": True}, {"mmap": True}):
        read = torch.load(tmp_path / "a.pth", **options)
        assert list(read) == list(state)
        for key, value in state.items():
            np.testing.assert_array_equal(read[key].numpy(), value.numpy())


def test_the_program_of_the_page(tmp_path, monkeypatch, capsys):
    docs = pathlib.Path(__file__).resolve().parents[2] / "docs"
    pages = [re.findall(r"```python\n(.*?)```", (docs / name).read_text(), re.S) for name in ("convert.md", "convert.zh-CN.md")]
    assert pages[0] == pages[1] and len(pages[0]) == 1
    monkeypatch.chdir(tmp_path)
    exec(compile(pages[0][0], "convert.md", "exec"), {"__name__": "convert"})
    assert "fc1.weight -> 0.weight" in capsys.readouterr().out
    assert (tmp_path / "net.pth").exists()
