"""Memory shared with NumPy, DLPack and anything that speaks the buffer protocol."""

import array
import gc
import pickle

import numpy as np
import pytest
import sampan

DTYPES = ["bool", "uint8", "int8", "int16", "int32", "int64", "float16", "float32", "float64"]


@pytest.mark.parametrize("dtype", DTYPES)
def test_values_go_there_and_back(dtype):
    a = (np.arange(24) % 3).reshape(2, 3, 4).astype(dtype)
    for view in (a, a.T, a[:, ::-2], a[..., 1:], a[:0], a[0, 0, 0]):
        t = sampan.to_tensor(view)
        assert t.dtype == dtype and t.shape == list(np.shape(view))
        back = t.numpy()
        assert back.dtype == dtype and np.array_equal(back, view)
        assert back.flags.writeable and back.flags.c_contiguous
        assert not np.shares_memory(back, np.asarray(t))


def test_foreign_byte_orders_and_wide_types_are_converted():
    assert sampan.to_tensor(np.array([1, 2], ">i4")).tolist() == [1, 2]
    assert sampan.to_tensor(np.array([1, 2], ">f8")).dtype == "float64"
    assert sampan.to_tensor(np.array([1, 2], "uint32")).dtype == "int64"
    assert sampan.to_tensor(np.array([0x3F80], "uint16")).astype("float32").tolist() == [1.0]
    unaligned = np.frombuffer(b"x" + np.arange(3, dtype="int32").tobytes(), dtype="int32", count=3, offset=1)
    assert sampan.to_tensor(unaligned).tolist() == [0, 1, 2]
    assert sampan.from_numpy(unaligned).tolist() == [0, 1, 2]


def test_bfloat16_travels_as_its_bits():
    t = sampan.to_tensor([1.0, -2.0]).astype("bfloat16")
    assert t.numpy().dtype == "uint16" and t.numpy().tolist() == [0x3F80, 0xC000]
    assert sampan.to_tensor(t.numpy()).dtype == "bfloat16"


@pytest.mark.parametrize("dtype", DTYPES)
def test_asarray_is_a_view_without_a_copy(dtype):
    t = sampan.to_tensor(np.arange(6).reshape(2, 3) % 2, dtype=dtype)
    a = np.asarray(t)
    assert a.ctypes.data == t.data_ptr() and a.dtype == dtype
    a[1, 2] = 1
    assert t.tolist()[1][2] == 1
    t[0, 0] = 1
    assert a[0, 0] == 1
    assert np.asarray(t.transpose([1, 0])).base is not None
    assert np.array_equal(np.asarray(t.transpose([1, 0])), a.T)


def test_a_view_outlives_the_tensor_and_its_replacement():
    t = sampan.to_tensor([1.0, 2.0, 3.0])
    a = np.asarray(t)
    t.data = sampan.zeros([5])
    del t
    gc.collect()
    sampan.ones([3])
    assert a.tolist() == [1.0, 2.0, 3.0]


def test_memoryview():
    t = sampan.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    view = memoryview(t)
    assert (view.format, view.shape, view.strides, view.readonly, view.nbytes) == ("f", (2, 2), (8, 4), False, 16)
    view[1, 0] = 9.0
    assert t.tolist() == [[1.0, 2.0], [9.0, 4.0]]
    assert memoryview(sampan.ones([1]).expand([3])).readonly
    assert bytes(t[0]) == np.array([1, 2], "float32").tobytes()


def test_array_takes_dtype_and_copy():
    t = sampan.to_tensor([1.5, 2.5])
    assert t.__array__("int64").tolist() == [1, 2]
    assert t.__array__(copy=False).ctypes.data == t.data_ptr()
    assert t.__array__(copy=True).ctypes.data != t.data_ptr()
    with pytest.raises(ValueError, match="copy"):
        t.__array__("float64", copy=False)
    assert np.array(t).ctypes.data != t.data_ptr()
    assert np.asarray(t, dtype="float64").dtype == "float64"


def test_numpy_functions_take_tensors():
    t = sampan.to_tensor([1.0, 4.0])
    assert np.sqrt(t).tolist() == [1.0, 2.0] and isinstance(np.sqrt(t), np.ndarray)
    assert np.stack([t, t]).shape == (2, 2)
    assert np.concatenate([t, np.zeros(1, "float32")]).tolist() == [1.0, 4.0, 0.0]
    assert np.array([t, t]).shape == (2, 2)
    assert np.allclose(t, [1, 4])


@pytest.mark.parametrize("symbol", ["+", "-", "*", "/", "//", "%", "**", "@", "==", "<", ">="])
def test_operators_between_arrays_and_tensors_give_tensors(symbol):
    a, b = np.array([7.0, 8.0, 9.0]), np.array([2.0, 3.0, 4.0])
    want = eval(f"a {symbol} b")
    t, u = sampan.to_tensor(a), sampan.to_tensor(b)
    for got in (eval(f"t {symbol} b"), eval(f"a {symbol} u"), eval(f"t {symbol} u")):
        assert isinstance(got, sampan.Tensor) and np.allclose(got.numpy(), want)
    number = eval(f"a[0] {symbol} u", {"a": a, "u": u}) if symbol != "@" else None
    assert number is None or np.allclose(number.numpy(), eval(f"a[0] {symbol} b"))


def test_from_numpy_shares_memory():
    a = np.zeros((3, 4), "float32")
    t = sampan.from_numpy(a[::-1, ::2])
    a[2, 0] = 5.0
    assert t[0, 0].item() == 5.0
    t.add_(sampan.ones([3, 2]))
    assert a.tolist() == [[1, 0, 1, 0], [1, 0, 1, 0], [6, 0, 1, 0]]
    del a
    gc.collect()
    assert t.sum().item() == 11.0
    frozen = np.zeros(2)
    frozen.flags.writeable = False
    sampan.from_numpy(frozen).add_(sampan.ones([2], dtype="float64"))
    assert frozen.tolist() == [0.0, 0.0]
    with pytest.raises(TypeError, match="ndarray"):
        sampan.from_numpy([1, 2])


def test_other_buffers():
    assert sampan.to_tensor(array.array("d", [1.5, 2.5])).dtype == "float64"
    assert sampan.to_tensor(memoryview(bytearray(b"\x01\x02"))).tolist() == [1, 2]
    assert sampan.to_tensor(bytearray(b"\x05")).dtype == "uint8"


@pytest.mark.parametrize("dtype", [d for d in DTYPES if d != "bool"] + ["bool"])
def test_dlpack_with_numpy(dtype):
    t = sampan.to_tensor(np.arange(6).reshape(2, 3) % 2, dtype=dtype)
    a = np.from_dlpack(t)
    assert a.dtype == dtype and a.ctypes.data == t.data_ptr() and np.array_equal(a, t.numpy())
    b = np.arange(6).reshape(2, 3).astype(dtype)
    u = sampan.from_dlpack(b.T)
    assert u.shape == [3, 2] and u.data_ptr() == b.ctypes.data and np.array_equal(u.numpy(), b.T)
    b[0, 1] = 1
    assert bool(u[1, 0] == 1)
    assert sampan.from_dlpack(b, copy=True).data_ptr() != b.ctypes.data


def test_dlpack_capsules_are_taken_once():
    t = sampan.to_tensor([1.0, 2.0])
    capsule = sampan.utils.dlpack.to_dlpack(t)
    u = sampan.utils.dlpack.from_dlpack(capsule)
    assert u.data_ptr() == t.data_ptr() and t.__dlpack_device__() == (1, 0)
    with pytest.raises(TypeError, match="once"):
        sampan.from_dlpack(capsule)
    with pytest.raises(TypeError):
        sampan.from_dlpack(3)
    del capsule
    t.__dlpack__()
    t.__dlpack__(max_version=(1, 0), copy=True)
    gc.collect()
    assert u.tolist() == [1.0, 2.0]


def test_dlpack_with_torch():
    torch = pytest.importorskip("torch")
    t = sampan.to_tensor([[1.0, 2.0], [3.0, 4.0]])
    there = torch.from_dlpack(t)
    there[0, 0] = 9.0
    assert t[0, 0].item() == 9.0 and there.data_ptr() == t.data_ptr()
    x = torch.arange(6.0).reshape(2, 3).bfloat16()
    back = sampan.from_dlpack(x.T)
    assert back.dtype == "bfloat16" and back.shape == [3, 2] and back.data_ptr() == x.data_ptr()
    del x
    gc.collect()
    assert back.astype("float32").tolist() == [[0.0, 3.0], [1.0, 4.0], [2.0, 5.0]]


def test_gradients_flow_through_shared_memory():
    x = sampan.from_numpy(np.array([1.0, 2.0], "float32"))
    x.stop_gradient = False
    (x * x).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0]


def test_pickles_of_arrays_from_tensors():
    t = sampan.to_tensor([1.0, 2.0])
    assert pickle.loads(pickle.dumps(np.asarray(t))).tolist() == [1.0, 2.0]
