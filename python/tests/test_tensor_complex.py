"""Complex tensors between Python, NumPy and the core."""

import pickle

import numpy as np
import pytest
import sampan

T = sampan.to_tensor


def test_numbers_lists_and_arrays():
    assert T(1 + 2j).dtype == "complex64" and T(1 + 2j).item() == 1 + 2j and T(1 + 2j).shape == []
    assert T([1, 2.5, 3j]).tolist() == [1 + 0j, 2.5 + 0j, 3j]
    for dtype in ("complex64", "complex128"):
        a = (np.arange(6).reshape(2, 3) * (1 - 2j)).astype(dtype)
        for view in (a, a.T, a[:, ::-1]):
            t = T(view)
            assert t.dtype == dtype and np.array_equal(t.numpy(), view) and np.array_equal(np.asarray(t), view)
        assert np.array_equal(np.from_dlpack(T(a)), a) and sampan.from_dlpack(a).data_ptr() == a.ctypes.data
    assert T([np.complex64(1j), 2]).dtype == "complex64"
    assert T([1j], dtype="complex128").dtype == "complex128"


def test_operators_and_conversions():
    x = T([1 + 1j, 2.0])
    assert (x * 2j).tolist() == [-2 + 2j, 4j] and (1j + x).tolist() == [1 + 2j, 2 + 1j] and (T([1.0]) * 1j).dtype == "complex64"
    assert (x == T([1 + 1j, 3.0])).tolist() == [True, False]
    x[0] = 5j
    assert x.tolist() == [5j, 2 + 0j] and complex(x[0]) == 5j and bool(x[0]) and x.is_complex() and sampan.is_complex(x)
    for wrong in (lambda: float(x[0]), lambda: int(x[0]), lambda: x < x):
        with pytest.raises(TypeError):
            wrong()
    assert pickle.loads(pickle.dumps(x)).tolist() == x.tolist()
    assert sampan.complex64 is x.dtype and sampan.cfloat is sampan.complex64 and x.astype("complex128").dtype == "complex128"
