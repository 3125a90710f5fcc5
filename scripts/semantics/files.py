"""What comes back from a file as a tensor, what as an array, and several values in one file."""
import io
import pickle

import numpy as np

from . import case


def _told(value):
    """The value, with a word for what is a tensor and what an array."""
    if isinstance(value, dict):
        return {str(k): _told(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(_told, value)]
    if isinstance(value, np.ndarray):
        return ["array", value]
    return ["tensor", value] if hasattr(value, "stop_gradient") else value


def _values(paddle):
    w, a = paddle.to_tensor([1.0, 2.0]), np.arange(2)
    return {
        "tensor": w,
        "array": a,
        "dict": {"w": w, "a": a},
        "dict of arrays": {"a": a, "n": 3},
        "tuple": (w, a, "x", None),
        "list of arrays": [a, {"a": a}],
        "nested": {"model": {"w": w}, "list": [a, (1, w)], 3: 1.5},
        "state": {"w": w, "LR_Scheduler": {"last_epoch": 3}},
        "half": {"w": w.astype("float16"), "b": w.astype("bfloat16")},
        "empty": {"w": paddle.zeros([0, 3])},
        "no axes": [paddle.to_tensor(3.0), True, 1.5],
    }


_NAMES = ["tensor", "array", "dict", "dict of arrays", "tuple", "list of arrays", "nested", "state", "half", "empty", "no axes"]


@case(each=_NAMES)
def there_and_back(paddle, name):
    value, read = _values(paddle)[name], []
    for options in ({}, {"return_numpy": True}):
        file = io.BytesIO()
        paddle.save(value, file)
        file.seek(0)
        read.append(_told(paddle.load(file, **options)))
    return read


@case(each=[2, 3, 4])
def protocols(paddle, protocol):
    file = io.BytesIO()
    paddle.save({"w": paddle.to_tensor([1.0])}, file, protocol)
    return file.getvalue()[1], _told(paddle.load(io.BytesIO(file.getvalue())))


def one_after_the_other(paddle):
    file, values = io.BytesIO(), _values(paddle)
    file.write(b"head")
    for name in _NAMES:
        paddle.save(values[name], file)
    file.write(b"tail")
    file.seek(4)
    return [_told(paddle.load(file)) for _ in _NAMES], len(file.read())


_OLD = {
    "pair": {"w": ("linear_0.w_0", np.ones(2, "float32"))},
    "pair alone": ("linear_0.w_0", np.ones(2, "float32")),
    "pairs in lists": [("n", np.ones(2, "float32")), {"b": ("n", np.ones(1))}],
    "pair and array": {"w": ("n", np.ones(2, "float32")), "a": np.ones(1)},
    "three": {"w": ("a", np.ones(1), "b")},
    "arrays": {"w": np.ones(2, "float32"), "model": {"b": np.ones(1)}},
    "names": {"w": np.ones(2, "float32"), "StructuredToParameterName@@": {"w": "linear_0.w_0"}},
    "optimizer": {"LR_Scheduler": {"last_epoch": 3, "last_lr": 0.1}, "w_moment1_0": np.ones(1), "global_step": 5},
    "parts": {
        "w@@.0": np.ones(2, "float32"), "w@@.1": np.zeros(2, "float32"),
        "UnpackBigParamInfor@@": {"w": {"OriginShape": (2, 2), "slices": ["w@@.0", "w@@.1"]}},
        "StructuredToParameterName@@": {"w": "n"},
    },
}


@case(each=list(_OLD))
def files_of_older_versions(paddle, name):
    """As Python's own pickle writes them, in every protocol."""
    read = [_told(paddle.load(io.BytesIO(pickle.dumps(_OLD[name], p)))) for p in (2, 3, 4, 5)]
    assert all(str(r) == str(read[0]) for r in read)
    return read[0], _told(paddle.load(io.BytesIO(pickle.dumps(_OLD[name], 2)), return_numpy=True))


def names_are_kept(paddle):
    x, layer = paddle.to_tensor([1.0]), paddle.nn.Linear(1, 1, paddle.ParamAttr("own.weight"), False)
    x.name, read = "own", []
    for value in ([x], {"x": x}, layer.state_dict()):
        file = io.BytesIO()
        paddle.save(value, file)
        file.seek(0)
        found = paddle.load(file, keep_name_table=True)
        read.append(found.get("StructuredToParameterName@@") if isinstance(found, dict) else found[0].name)
    return read


def the_table_of_names_stays_if_it_is_asked_for(paddle):
    file = io.BytesIO(pickle.dumps(_OLD["names"], 2))
    return _told(paddle.load(file, keep_name_table=True))
