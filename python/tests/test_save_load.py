"""`save` and `load`: several values in one file, names, protocols, what cannot be saved. What comes back as a tensor and
what as an array is in `scripts/semantics/files.py`."""

import io
import pickle

import numpy as np
import pytest

import sampan

W = sampan.to_tensor([1.0, 2.0])


def test_values_one_after_the_other_in_a_file(tmp_path):
    with open(tmp_path / "two", "wb") as file:
        sampan.save({"w": W}, file)
        sampan.save([1, np.arange(2), W], file)
    with open(tmp_path / "two", "rb") as file:
        assert sampan.load(file)["w"].tolist() == [1.0, 2.0]
        number, array, tensor = sampan.load(file)
        assert number == 1 and isinstance(array, np.ndarray) and isinstance(tensor, sampan.Tensor)
        with pytest.raises(ValueError, match="seek"):
            sampan.load(file)


def test_a_file_that_cannot_go_back():
    class Pipe:
        def __init__(self, data):
            self.read, self.seekable = lambda: data, lambda: False

    file = io.BytesIO()
    sampan.save({"w": W}, file)
    assert sampan.load(Pipe(file.getvalue()))["w"].tolist() == [1.0, 2.0]


@pytest.mark.parametrize("ending", [".safetensors", ".npz"])
def test_other_formats_from_memory(ending, tmp_path):
    path = tmp_path / f"x{ending}"
    sampan.save({"w": W, "a": np.arange(2)}, path)
    found = sampan.load(io.BytesIO(path.read_bytes()))
    assert found["w"].tolist() == [1.0, 2.0] and found["a"].tolist() == [0, 1]


@pytest.mark.parametrize("protocol", [2, 3, 4])
def test_protocols(protocol, tmp_path):
    path = tmp_path / "x.pdparams"
    sampan.save({"w": W, "a": np.arange(2)}, path, protocol)
    assert path.read_bytes()[1] == protocol
    found = sampan.load(str(path))
    assert isinstance(found["a"], np.ndarray) and found["w"].tolist() == [1.0, 2.0]
    with pytest.raises(ValueError, match="protocol"):
        sampan.save({}, path, 1)


def test_names_of_tensors(tmp_path):
    path, one = tmp_path / "old.pdparams", np.ones(1, "float32")
    for value in ({"w": one, "StructuredToParameterName@@": {"w": "linear_0.w_0"}}, {"w": ("linear_0.w_0", one)}):
        path.write_bytes(pickle.dumps(value, 2))
        assert sampan.load(path)["w"].name == "linear_0.w_0"
    sampan.save({"w": sampan.load(path)["w"]}, path)
    kept = sampan.load(path, keep_name_table=True)
    assert kept["StructuredToParameterName@@"] == {"w": "linear_0.w_0"} and len(sampan.load(path)) == 1


def test_keys_that_would_not_come_back():
    with pytest.raises(TypeError, match="keys of a dict"):
        sampan.save({(1, 2): W}, io.BytesIO())
