"""What a tensor is and how it behaves in expressions."""

import copy
import math
import pickle

import numpy as np
import pytest
import sampan

T = sampan.to_tensor


def test_attributes():
    x = T([[1.0, 2.0, 3.0], [4.0, 5.0, 6.0]])
    assert (x.shape, x.ndim, x.size, x.dim(), x.ndimension(), x.rank().item()) == ([2, 3], 2, 6, 2, 2, 2)
    assert (x.itemsize, x.element_size(), x.nbytes, x.strides, x.stride(), x.stride(0)) == (4, 4, 24, [3, 1], [3, 1], 3)
    assert x.numel().item() == 6 and x.numel().shape == [] and sampan.numel(x).item() == 6
    assert sampan.shape(x).tolist() == [2, 3] and sampan.rank(x).item() == 2
    assert x.is_contiguous() and not x.T.is_contiguous() and x.T.contiguous().is_contiguous()
    assert x.T.shape == [3, 2] and x.mT.shape == [3, 2] and x[1].offset == 12
    assert x.is_dense() and not x.is_sparse() and x.is_same_shape(x + 1) and x._is_initialized()
    assert x.is_floating_point() and not x.is_integer() and not sampan.is_complex(x)
    assert sampan.is_tensor(x) and not sampan.is_tensor(np.ones(1))
    assert type(x.shape) is list and x.data is x and x.value() is x


def test_names():
    x = T([1.0])
    assert x.name.startswith("generated_tensor_") and x.name != T([1.0]).name
    x.name, x.persistable = "mine", True
    assert x.name == "mine" and x.persistable
    x.anything = [1]
    assert x.anything == [1]


def test_dtypes():
    f = sampan.float32
    assert T([1.0]).dtype is f and repr(f) == "paddle.float32" and str(f) == "paddle.float32"
    assert f == "float32" and f == np.float32 and f == np.dtype("float32") and f != "float64" and f != 3 and f is not None
    assert {f: 1}["float32"] == 1 and len({f, sampan.float64, f}) == 2
    assert f.name == "float32" and f.itemsize == 4 and f.is_floating_point
    for protocol in range(2, 6):
        assert pickle.loads(pickle.dumps(f, protocol)) is f
    assert copy.deepcopy(f) is f and sampan.dtype("int8") == sampan.int8 and sampan.double is sampan.float64
    with pytest.raises(TypeError, match="float32"):
        sampan.zeros([1], dtype="float31")


def test_limits():
    assert (sampan.iinfo("uint8").min, sampan.iinfo("uint8").max, sampan.iinfo(sampan.int64).max) == (0, 255, 2**63 - 1)
    for name in ("float16", "float32", "float64"):
        ours, numpys = sampan.finfo(name), np.finfo(name)
        assert (ours.eps, ours.max, ours.min, ours.tiny, ours.bits) == (numpys.eps, numpys.max, numpys.min, numpys.tiny, numpys.bits)
    assert sampan.finfo("bfloat16").eps == 0.0078125
    assert repr(sampan.iinfo("int8")) == "paddle.iinfo(min=-128, max=127, bits=8, dtype=int8)"


OPERATORS = ["+", "-", "*", "/", "//", "%", "**", "==", "!=", "<", "<=", ">", ">="]


@pytest.mark.parametrize("symbol", OPERATORS)
@pytest.mark.parametrize("dtype", ["float32", "int64"])
def test_operators_with_numbers_lists_and_arrays(symbol, dtype):
    a = np.array([[1, 2, 3], [4, 5, 6]], dtype)
    t = T(a)
    for other in (2, 3.0, True, np.float32(2), np.int64(3), [1, 2, 3], (1, 2, 3), np.array([1, 2, 3], dtype)):
        plain = np.asarray(other) if isinstance(other, (list, tuple)) else other
        for ours, theirs in ((eval(f"t {symbol} other"), eval(f"a {symbol} plain")), (eval(f"other {symbol} t"), eval(f"plain {symbol} a"))):
            assert isinstance(ours, sampan.Tensor)
            assert np.allclose(ours.numpy().astype("float64"), np.asarray(theirs, "float64"), rtol=1e-5), (symbol, other)


@pytest.mark.parametrize("symbol", ["&", "|", "^", "<<", ">>"])
def test_bit_operators(symbol):
    a, b = np.array([5, 6, 7]), np.array([1, 2, 3])
    t, u = T(a), T(b)
    assert eval(f"t {symbol} u").tolist() == eval(f"a {symbol} b").tolist()
    assert eval(f"t {symbol} 2").tolist() == eval(f"a {symbol} 2").tolist()
    assert eval(f"9 {symbol} u").tolist() == eval(f"9 {symbol} b").tolist()
    assert (~t).tolist() == (~a).tolist() and (~T([True])).tolist() == [False]


def test_dtypes_of_results():
    i, f, h = T([1, 2]), T([1.0, 2.0]), T([1.0]).astype("float16")
    assert (i + 1).dtype == "int64" and (i + 1.5).dtype == "float32" and (i / 2).dtype == "float32" and (i // 2).dtype == "int64"
    assert (h * 2.5).dtype == "float16" and (h + f).dtype == "float32" and (i * f).dtype == "float32"
    assert (i > 1).dtype == "bool" and (i ** 0.5).dtype == "float32"
    assert (f + np.float64(2.0)).dtype == "float32" and (f + np.ones(2)).dtype == "float64"


def test_comparison_with_other_things():
    x = T([1.0])
    assert (x == None) is False and (x != None) is True and (x == "a") is False  # noqa: E711
    for f in (lambda: x < None, lambda: x + None, lambda: x + "a", lambda: {} - x, lambda: x @ "a"):
        with pytest.raises(TypeError):
            f()
    with pytest.raises(TypeError):
        x += None


def test_conversions_to_numbers():
    x = T([2.7])
    assert (float(x), int(x), bool(x), complex(x)) == (pytest.approx(2.7), 2, True, pytest.approx(2.7 + 0j))
    assert [10, 20, 30][T(1)] == 20 and list(range(T(2))) == [0, 1]
    assert f"{x:.1f}" == "2.7" and f"{T(7):03d}" == "007" and f"{T([1])}" == str(T([1]))
    assert round(T([1.26]), 1).tolist() == [pytest.approx(1.3)] and abs(T([-1])).tolist() == [1]
    assert [v.tolist() for v in divmod(T([7]), 2)] == [[3], [1]] and [v.tolist() for v in divmod(7, T([2]))] == [[3], [1]]
    assert math.sqrt(T(4.0)) == 2.0
    for wrong in (lambda: [1][x], lambda: [1][T([1, 2])], lambda: int(T([1, 2])), lambda: f"{T([1, 2]):.1f}", lambda: pow(T([2]), 2, 3)):
        with pytest.raises(TypeError):
            wrong()


def test_items():
    x = T([[1, 2], [3, 4]])
    assert x.item(3) == 4 and x.item(1, 0) == 3 and x.item((0, 1)) == 2 and T(True).item() is True
    assert type(T(1.0).item()) is float and x.tolist() == [[1, 2], [3, 4]] and T(3).tolist() == 3
    with pytest.raises(IndexError):
        x.item(4)


def test_tensors_are_hashed_by_identity():
    x, y = T([1.0]), T([1.0])
    assert hash(x) == id(x) and {x: 1, y: 2}[x] == 1 and len({x, y, x}) == 2


def test_conversions_of_dtype_and_device():
    x = T([1.5, 2.5])
    for name in ("float16", "bfloat16", "float64", "int8", "int32", "int64", "uint8", "bool"):
        assert x.to(name).dtype == x.astype(name).dtype == getattr(x, name)().dtype == name
    assert x.double().dtype == "float64" and x.half().dtype == "float16" and x.long().dtype == "int64" and x.byte().dtype == "uint8"
    i = T([1])
    assert x.to("cpu") is x and x.to(x.dtype) is x and x.to(i).dtype == "int64" and x.type_as(i).dtype == "int64"
    assert x.to("cpu", "int32").dtype == x.to(dtype="int32").dtype == x.to(sampan.CPUPlace(), sampan.int32).dtype == "int32"
    assert x.to(device="cpu", dtype="float16", blocking=True).dtype == "float16" and x.to(None, "int8").dtype == "int8"
    assert x.cpu() is x and x.device == "cpu" and x.get_device() == -1 and not x.is_cuda
    for wrong in (lambda: x.to("gpu"), lambda: x.to("foo"), lambda: x.to(1), lambda: x.cuda(0), lambda: x.pin_memory()):
        with pytest.raises(ValueError, match="InvalidArgument|Unavailable"):
            wrong()
    for wrong in (lambda: x.to("cpu", "int32", True, 4), lambda: x.to(foo=1), lambda: x.to("int32", dtype="int8")):
        with pytest.raises(TypeError):
            wrong()


def test_gradients_pass_through_conversions():
    x = T([1.0, 2.0], stop_gradient=False)
    x.to("float64").astype("float32").double().sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


@pytest.mark.parametrize("protocol", range(2, 6))
def test_pickles(protocol):
    def there_and_back(x):
        return pickle.loads(pickle.dumps(x, protocol))

    base = T(np.arange(6.0).reshape(2, 3))
    for x in (base, base.T, base[:, ::-1], base[:0], T(3), T([True, False]), base.astype("bfloat16"), base.astype("float16")):
        y = there_and_back(x)
        assert y.dtype == x.dtype and y.shape == x.shape and y.stop_gradient
        assert y.astype("float32").tolist() == x.astype("float32").tolist()
    x = T([1.0], stop_gradient=False)
    x.note = "kept"
    assert there_and_back(x).note == "kept" and not there_and_back(x).stop_gradient
    p = sampan.create_parameter([2], "float32")
    q = there_and_back(p)
    assert isinstance(q, sampan.Parameter) and (q.name, q.persistable, q.trainable) == (p.name, True, True)
    assert q.tolist() == p.tolist() and there_and_back([x, x])[0].tolist() == [1.0]
    assert there_and_back(sampan.sum) is not None and there_and_back(sampan.nn.functional.relu)(T([-1.0])).tolist() == [0.0]


def test_copies():
    x = T([1.0, 2.0], stop_gradient=False)
    x.note = [1]
    shallow, deep, clone = copy.copy(x), copy.deepcopy(x), x.clone()
    assert shallow._shares_memory(x) and not deep._shares_memory(x) and not clone._shares_memory(x)
    assert not shallow.stop_gradient and not deep.stop_gradient and deep.is_leaf and not clone.is_leaf and deep.note == [1]
    p = sampan.create_parameter([2], "float32")
    q = copy.deepcopy({"a": p, "b": p})
    assert isinstance(q["a"], sampan.Parameter) and q["a"] is q["b"] and q["a"] is not p and not q["a"]._shares_memory(p)
    y = x.detach()
    assert y._shares_memory(x) and y.stop_gradient and y.is_leaf


def test_other_memory_in_its_place():
    x, y = T([1.0, 2.0]), T([[3.0, 4.0, 5.0]])
    x.data = y
    assert x.shape == [1, 3] and x._shares_memory(y)
    assert T([0, 0]).copy_(T([1.9, 2.9])).tolist() == [1, 2]
    assert T([1.0, 2.0, 3.0]).resize_([2, 2], fill_zero=True).tolist() == [[1.0, 2.0], [3.0, 0.0]]
    assert T([1.0]).set_(T([1.0, 2.0, 3.0, 4.0]), [2, 2], [1, 2], 0).tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert T([1.0]).set_().shape == [0]
    assert x.apply(lambda v: v + 1).tolist() == [[4.0, 5.0, 6.0]] and x.apply_(lambda v: v * 0).tolist() == [[0.0] * 3]
    with pytest.raises(RuntimeError, match="gradient"):
        T([1.0], stop_gradient=False).apply(lambda v: v)
    assert T([1]).reconstruct_from_(T([[2.0]])).tolist() == [[2.0]]
    z = T([7.0])
    x._share_buffer_to(z)
    assert z._is_shared_buffer_with(x) and T([1.0])._md5sum() == T([1.0])._md5sum()
    z._clear_data()
    assert z.size == 0 and x.size == 3


def test_set_value():
    p = sampan.create_parameter([2], "float32")
    for new in ([1, 2], np.array([1.0, 2.0]), T([1.0, 2.0])):
        p.set_value(new)
        assert p.tolist() == [1.0, 2.0]
    with pytest.raises(ValueError):
        p.set_value([1.0, 2.0, 3.0])


def test_in_place_forms_write_the_tensor():
    x = T([4.0, 9.0])
    same = x
    assert x.sqrt_() is x and x.add_(T([1.0, 1.0])) is x and same.tolist() == [3.0, 4.0]
    x += 1
    assert x is not same and same.tolist() == [3.0, 4.0] and x.tolist() == [4.0, 5.0]
    y = T([1.0, 2.0, 3.0])
    assert sampan.where_(T([True, False, True]), y, T([0.0, 0.0, 0.0])) is y and y.tolist() == [1.0, 0.0, 3.0]


def test_options_of_arithmetic():
    x, y = T([7.0, -7.0]), T([2.0, 2.0])
    assert sampan.add(x, y, alpha=3).tolist() == [13.0, -1.0] and sampan.subtract(x, other=y, alpha=2).tolist() == [3.0, -11.0]
    assert sampan.divide(x, y, rounding_mode="floor").tolist() == [3.0, -4.0]
    assert x.div(y, rounding_mode="trunc").tolist() == [3.0, -3.0] and x.divide(y, rounding_mode=None).tolist() == [3.5, -3.5]
    assert sampan.div(T([7, -7]), T([2, 2]), rounding_mode="trunc").tolist() == [3, -3]
    assert x.add_(y, alpha=2) is x and x.tolist() == [11.0, -3.0]
    with pytest.raises(ValueError, match="rounding_mode"):
        sampan.divide(x, y, rounding_mode="up")


def test_view_and_unfold():
    x = T([[1.0, 2.0], [3.0, 4.0]])
    assert x.view(4).shape == [4] and x.view(-1, 2, 1).shape == [2, 2, 1]
    assert x.view([4]).shape == [4] and x.view([4])._shares_memory(x) and x.view("int32").dtype == "int32"
    assert sampan.arange(6).unfold(0, 3, 2).tolist() == [[0, 1, 2], [2, 3, 4]]
    assert x.view_as(T([1, 2, 3, 4])).shape == [4]


def test_results_in_several_pieces():
    x = T([[0, 1], [2, 0]])
    assert isinstance(x.nonzero(as_tuple=True), tuple) and [t.tolist() for t in sampan.where(x > 0)] == [[0, 1], [1, 0]]
    assert sampan.einsum("ij,jk->ik", x, x).tolist() == (x @ x).tolist()
    assert [t.tolist() for t in sampan.where(x[0] > 0)] == [[1]] and len(x[0].nonzero(as_tuple=True)) == 1
    assert isinstance(sampan.atleast_1d(x, x), list) and isinstance(sampan.atleast_1d(x), sampan.Tensor)
    counts, edges = sampan.histogramdd(sampan.ones([4, 2]), bins=[2, 3])
    assert counts.shape == [2, 3] and [e.shape for e in edges] == [[3], [4]]
    values, indices = x.topk(1)
    assert values.tolist() == x.topk(1).values.tolist() == [[1], [2]] and indices.shape == [2, 1]
    assert isinstance(x.unbind(), list) and isinstance(sampan.split(x, 2), list)
    assert [t.shape for t in sampan.meshgrid(sampan.arange(2), sampan.arange(3))] == [[2, 3], [2, 3]]
    assert sampan.broadcast_shape([2, 1], [1, 3]) == sampan.broadcast_shapes([2, 1], [3], []) == [2, 3]


def test_print_options():
    try:
        sampan.set_printoptions(precision=2)
        assert "1.23]" in repr(T([1.2345]))
    finally:
        sampan.set_printoptions(precision=8)
    assert repr(T([1.5])).startswith("Tensor(shape=[1], dtype=float32, place=") and str(T(1)) == repr(T(1))


def test_device_module():
    d = sampan.device
    assert d.get_device() == "cpu" and d.set_device("cpu") == sampan.CPUPlace() and d.get_all_device_type() == ["cpu"]
    assert not d.is_compiled_with_cuda() and d.device_count() == d.cuda.device_count() == 0 and d.get_cudnn_version() is None
    before = d.memory_allocated()
    x = sampan.zeros([1000])
    assert d.memory_allocated() - before >= x.nbytes and d.max_memory_allocated() >= d.memory_allocated()
    d.synchronize(), d.empty_cache(), d.cuda.empty_cache()
    start, end = d.Event(enable_timing=True), d.Event(enable_timing=True)
    with d.stream_guard(d.Stream()), d.device_guard("cpu"):
        start.record(), end.record()
    assert start.elapsed_time(end) >= 0.0
    for missing in (d.cuda.get_device_name, d.cuda.synchronize, sampan.CUDAPinnedPlace, lambda: sampan.CUDAPlace(0), lambda: d.set_device("gpu")):
        with pytest.raises(ValueError, match="Devices here: cpu"):
            missing()


def test_reshapes_of_empty_tensors_that_do_not_fit():
    for before, to in [([0, 3], [2, 0, -1]), ([0], [2, 3]), ([2, 0], [-1, 0, -1]), ([0, 3], [0, -2])]:
        with pytest.raises(ValueError):
            sampan.zeros(before).reshape(to)
    assert sampan.zeros([0, 4]).unflatten(0, [0, -1]).shape == [0, 1, 4]
    assert sampan.zeros([2, 0, 3]).flatten().shape == [0] and sampan.zeros([1, 0, 1]).squeeze().shape == [0]
