"""`to_tensor`, `Tensor(...)` and their relatives: dtypes, shapes and refusals as in Paddle."""

import numpy as np
import pytest
import sampan

T = sampan.to_tensor


@pytest.mark.parametrize(
    "data, dtype, shape",
    [
        (1, "int64", []),
        (1.5, "float32", []),
        (True, "bool", []),
        (2**31, "int64", []),
        (np.float64(1.5), "float64", []),
        (np.int32(1), "int32", []),
        (np.float16(1), "float16", []),
        ([1, 2], "int64", [2]),
        ([1, 2.5], "float32", [2]),
        ([True, 1], "int64", [2]),
        ([True, 1.5], "float32", [2]),
        ([True, False], "bool", [2]),
        ([], "float32", [0]),
        ([[], []], "float32", [2, 0]),
        (((1, 2), [3, 4]), "int64", [2, 2]),
        (range(3), "int64", [3]),
        ([np.float64(1), 2], "float32", [2]),
        ([np.int32(1), np.int32(2)], "int64", [2]),
        ([np.ones(2), np.ones(2)], "float32", [2, 2]),
        ([np.ones(2, "int32"), np.ones(2, "int32")], "int64", [2, 2]),
        (np.ones((2, 1), "int8"), "int8", [2, 1]),
        ([T(1), T(2)], "int64", [2]),
        ([T([1.0, 2.0]), T([1.0, 2.0])], "float32", [2, 2]),
        ([T([1.0, 2.0], "float64")], "float64", [1, 2]),
        ([[T(1), T(2)], [T(3), T(4)]], "int64", [2, 2]),
        ([T(1.0), 2], "float32", [2]),
        (T([1, 2], "int32"), "int32", [2]),
    ],
)
def test_dtypes_and_shapes_are_inferred(data, dtype, shape):
    t = T(data)
    assert (t.dtype.name, t.shape, t.stop_gradient) == (dtype, shape, True)


def test_default_dtype_is_followed():
    sampan.set_default_dtype("float64")
    try:
        assert T(1.0).dtype == T([1, 2.5]).dtype == sampan.float64
        assert T(np.float32(1)).dtype == "float32"
        assert sampan.get_default_dtype() == "float64"
    finally:
        sampan.set_default_dtype("float32")


def test_values_are_exact_and_cast_on_request():
    assert T(2**62 + 1).item() == 2**62 + 1
    assert T([2**53 + 1, 1]).tolist() == [2**53 + 1, 1]
    assert T([1.9, -1.9], dtype="int32").tolist() == [1, -1]
    assert T([0, 2], dtype=bool).tolist() == [False, True]
    for dtype in (sampan.float16, "float16", np.float16, np.dtype("float16"), "paddle.float16"):
        assert T([1], dtype=dtype).dtype == sampan.float16
    types = {float: "float64", int: "int64", bool: "bool", complex: "complex128"}
    for dtype, name in types.items():
        made = (T([1], dtype=dtype), sampan.zeros([1], dtype=dtype), T([1.0]).astype(dtype), sampan.cast(T([1.0]), dtype))
        assert [x.dtype for x in made] == [name] * 4


def test_a_tensor_is_copied():
    x = T([1.0, 2.0], stop_gradient=False)
    y = T(x, stop_gradient=False)
    y.fill_(0.0) if y.stop_gradient else y.detach().fill_(0.0)
    assert x.tolist() == [1.0, 2.0] and not y.stop_gradient


def test_places():
    for place in ("cpu", sampan.CPUPlace(), "cpu:0", None):
        assert T([1], place=place).place == sampan.CPUPlace()
    assert repr(T([1]).place) == "Place(cpu)" and T([1]).place.is_cpu_place()
    with pytest.raises(ValueError, match="gpu:1 is not here"):
        T([1], place="gpu:1")


def test_images():
    image = pytest.importorskip("PIL.Image")
    t = T(image.new("RGB", (4, 3), (1, 2, 3)))
    assert t.shape == [3, 4, 3] and t.dtype == "uint8" and t[0, 0].tolist() == [1, 2, 3]


def test_lists_that_are_no_arrays_are_refused():
    loop = []
    loop.append(loop)
    for data in ([[1, 2], [3]], [1, [2]], [[1], 2], [T([1]), T([1, 2])], loop):
        with pytest.raises(ValueError, match="InvalidArgument"):
            T(data)
    for data in (None, "1", ["1"], {1: 2}, {1}, object(), iter([1]), b"1", [None], np.array(["a"]), np.array([None])):
        with pytest.raises(TypeError, match="InvalidType"):
            T(data)


def test_the_class_makes_tensors():
    assert sampan.Tensor([1, 2]).dtype == "float32"
    assert sampan.Tensor().shape == [0] and sampan.Tensor(2, 3).shape == [2, 3] and sampan.Tensor(2).shape == [2]
    assert sampan.Tensor(np.ones(2)).dtype == "float64"
    assert sampan.Tensor([1], dtype="int32").dtype == sampan.IntTensor([1.5]).dtype == sampan.int32
    assert sampan.DoubleTensor(2, 3).shape == [2, 3]
    x = sampan.Tensor([1.0], stop_gradient=False)
    assert isinstance(x, sampan.Tensor) and not x.stop_gradient


def test_relatives():
    x = T([1, 2], "int32")
    assert sampan.as_tensor(x) is x and sampan.as_tensor(x, "float32").dtype == "float32"
    assert sampan.asarray([1, 2]).tolist() == [1, 2]
    assert sampan.range(0, 5, 2).tolist() == [0.0, 2.0, 4.0] and sampan.range(3, dtype="int64").tolist() == [0, 1, 2, 3]
    assert list(sampan.batch(lambda: iter([1, 2, 3]), 2)()) == [[1, 2], [3]]
    assert list(sampan.batch(lambda: iter([1, 2, 3]), 2, drop_last=True)()) == [[1, 2]]
    p = sampan.create_parameter([2, 3], "float32", default_initializer=sampan.nn.initializer.Constant(2.0))
    assert isinstance(p, sampan.Parameter) and p.trainable and p.persistable and p.tolist() == [[2.0] * 3] * 2
    assert sampan.create_parameter([2], "float64", is_bias=True, name="mine").name == "mine"
    with sampan.LazyGuard():
        assert sampan.nn.Linear(2, 2).weight.shape == [2, 2]


@pytest.mark.parametrize("name, value", [("zeros", 0), ("ones", 1), ("full", 3)])
def test_new_ones_like_it(name, value):
    x = T([1.0], "float64")
    make = getattr(x, f"new_{name}")
    extra = (value,) if name == "full" else ()
    for made in (make([2, 3], *extra), make((2, 3), *extra), make(size=[2, 3], **({"fill_value": 3} if extra else {}))):
        assert (made.shape, made.dtype.name, made.tolist()[0][0]) == ([2, 3], "float64", value)
    assert make([2], *extra, dtype="int32", requires_grad=True).dtype == "int32"
    assert extra or make(2, 3).shape == [2, 3]
    assert x.new_empty([2]).dtype == x.new_tensor([1, 2]).dtype == "float64"
    with pytest.raises(TypeError):
        make([2], *extra, nothing=1)


@pytest.mark.parametrize("form", [lambda f: f([2, 3]), lambda f: f((2, 3)), lambda f: f(2, 3), lambda f: f(T([2, 3])), lambda f: f([T(2), 3]), lambda f: f(shape=[2, 3])])
@pytest.mark.parametrize("name", ["zeros", "ones", "empty", "rand", "randn"])
def test_shapes_come_in_many_forms(name, form):
    assert form(getattr(sampan, name)).shape == [2, 3]


def test_options_of_functions_that_make_tensors():
    x = sampan.linspace(0, 1, 3, device="cpu", requires_grad=True, pin_memory=False)
    assert not x.stop_gradient and sampan.zeros_like(x, requires_grad=False).stop_gradient
    with pytest.raises(ValueError, match="gpu"):
        sampan.ones([2], device="gpu")
    with pytest.raises(TypeError, match="device"):
        sampan.exp(x, device="cpu")
    out = sampan.zeros([3])
    assert sampan.assign([1.0, 2.0, 3.0], out) is out and out.tolist() == [1.0, 2.0, 3.0]
    assert sampan.assign(np.ones(2)).dtype == "float64" and sampan.assign(x).tolist() == [0.0, 0.5, 1.0]


def test_integers_at_random():
    sampan.seed(3)
    a = sampan.randint(5, shape=[100])
    assert a.dtype == "int64" and 0 <= a.min().item() and a.max().item() < 5
    assert sampan.randint(2, 4, [10], "int32").dtype == "int32"
    assert sampan.randint(low=-5, high=0, shape=[3]).max().item() < 0
    assert sorted(sampan.randperm(5).tolist()) == [0, 1, 2, 3, 4]
    state = sampan.get_rng_state()
    b = sampan.rand([3])
    sampan.set_rng_state(state)
    assert b.tolist() == sampan.rand([3]).tolist()
    assert sampan.manual_seed(1).get_state() == sampan.seed(1).get_state()


def test_a_generator_goes_back_to_the_exact_place():
    generator = sampan.seed(5)
    sampan.rand([7])
    state, kept = generator.get_state(), sampan.device.get_rng_state()
    first = sampan.rand([3]).tolist()
    assert (state.current_seed(), generator.initial_seed()) == (5, 5)
    for go_back in (
        lambda: generator.set_state(state),
        lambda: sampan.Generator("cpu").set_state(state),
        lambda: sampan.set_rng_state([state], "cpu"),
        lambda: sampan.device.set_rng_state(kept),
    ):
        go_back()
        assert sampan.rand([3]).tolist() == first
        assert state == kept  # A draw changes no state that was taken before.
    generator.set_state(state)
    assert 0 <= generator.random() < 2**64 and sampan.rand([3]).tolist() != first
    # As in Paddle on a machine without a GPU.
    assert sampan.get_cuda_rng_state() == []
    sampan.set_cuda_rng_state([])
    for wrong in ([], [state, state]):
        with pytest.raises(ValueError, match="one state"):
            sampan.set_rng_state(wrong)
    with pytest.raises(TypeError, match="get_state"):
        generator.set_state("here")


@pytest.mark.parametrize("written", ["-inf", "inf", "nan", "1.5", "3", " 2 ", "1e3"])
def test_a_filling_number_may_be_written_out(written):
    for made in (sampan.full([2], written), sampan.full_like(sampan.ones([2]), written)):
        assert made.dtype == sampan.float32
        np.testing.assert_equal(made.numpy(), np.full(2, float(written), "float32"))
    with pytest.raises(TypeError, match="got the str"):
        sampan.full([2], "many")


@pytest.mark.parametrize("one, two", [(T(1), T(2)), (1, T(2)), (T([1]), T([2])), (T(1), T(2, dtype="int32"))])
def test_sizes_may_be_tensors_among_numbers(one, two):
    size, x = [one, two], sampan.ones([2, 3, 4])
    for made in (sampan.zeros(size), sampan.full(size, 1.0), sampan.ones([2]).reshape(size), sampan.ones([1]).expand(size)):
        assert made.shape == [1, 2]
    assert [part.shape for part in x.split(size, axis=1)] == [[2, 1, 4], [2, 2, 4]]
    assert sampan.slice(x, [1, 2], [0, 0], size).shape == [2, 1, 2]
    assert sampan.nn.functional.pad(x, size, data_format="NCL").shape == [2, 3, 7]
    assert sampan.nn.functional.adaptive_avg_pool2d(x[None], size).shape == [1, 2, 1, 2]
    assert sampan.ones([2]).view(size).shape == [1, 2]
    assert len(sampan.tensor_split(x, size, 1)) == 3
