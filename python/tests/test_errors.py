"""Wrong calls raise native exceptions that say what is wrong; nothing ends the process."""

import math
import os
import random

import numpy as np
import pytest
import sampan
from sampan import _core, _registry


def _values(rng):
    """Arguments of every kind, sensible and not."""
    f, i = sampan.to_tensor([[1.0, -2.0], [3.0, 0.5]]), sampan.to_tensor([[1, 0], [0, 1]])
    grad = sampan.ones([2, 2])
    grad.stop_gradient = False
    loop = []
    loop.append(loop)
    return [
        f, i, grad, sampan.to_tensor(2.0), sampan.zeros([0, 3]), sampan.ones([2, 1, 2]), sampan.to_tensor([True, False]),
        sampan.ones([3], dtype="float16"), sampan.ones([1, 2, 4, 4]), sampan.ones([2, 2], dtype="uint8"), [f, f], [f, i], (),
        0, 1, -1, 2, 3, 2**31, 2**63 - 1, -(2**63), 2**70, 0.0, 0.5, -1.5, 1e308, math.nan, math.inf, -math.inf, True, False,
        None, "", "mean", "zeros", "float32", "int64", "NCHW", "\x00", b"x", [], [0], [1, 2], [2, 2], [-1], [0.5, 1], [None],
        ["a"], [[1, 2], [3, 4]], [[1], [2, 3]], loop, (1, (2, 3)), {}, {"a": 1}, {1}, object(), int, len, slice(1), ...,
        np.float32(1.5), np.int8(3), np.ones((2, 2)), np.array(["a"]), np.array([None]), range(3), sampan.float64, 1 + 2j,
    ]  # fmt: skip


# What would only wait for memory or time: a size of billions that is granted lazily.
_SLOW = {"empty", "zeros", "ones", "full"}


def _names():
    names = []
    for module in ("", "nn.functional", "linalg", "Tensor", "_C_ops", "vision.ops", "geometric", "incubate.nn.functional"):
        names += [op.__name__ for op in _registry.functions(module).values()]
    return sorted(set(names))


@pytest.mark.parametrize("part", range(4))
def test_random_calls_raise_only_native_exceptions(part):
    rng = random.Random(int(os.environ.get("SAMPAN_FUZZ_SEED", "0")) * 100 + part)
    calls = int(os.environ.get("SAMPAN_FUZZ_CALLS", "12"))
    limit = _core.num_threads()
    worked = 0
    for name in _names()[part::4]:
        op = _core.op(name)
        params = _core.op_info(name)["params"]
        for _ in range(calls):
            values = _values(rng)
            tensors = values[:10]
            # The first argument fits more often than not, so that calls come further than its check.
            args = [rng.choice(tensors if k == 0 and rng.random() < 0.7 else values) for k in range(rng.randint(0, len(params) + 1))]
            kwargs = {rng.choice(params)[0]: rng.choice(values)} if params and rng.random() < 0.3 else {}
            if name.rstrip("_") in _SLOW and any(isinstance(a, int) and abs(a) > 1000 for a in args):
                continue
            try:
                op(*args, **kwargs)
                worked += 1
            except Exception as error:  # A PanicException is no Exception, and passes.
                text = str(error)
                assert "(Internal)" not in text and "panicked" not in text, (name, args, kwargs, text)
    assert worked > 100 and _core.num_threads() == limit


def test_random_methods_and_operators():
    rng = random.Random(7)
    symbols = "add sub mul truediv floordiv mod pow matmul and or xor lshift rshift eq ne lt le gt ge divmod".split()
    plain = [n for n in symbols if n not in ("eq", "ne", "lt", "le", "gt", "ge")]
    names = [f"__{n}__" for n in symbols] + [f"__r{n}__" for n in plain] + [f"__i{n}__" for n in plain if n not in ("matmul", "divmod")]
    names += "__getitem__ item to new_full new_zeros set_value register_hook backward resize_ set_ copy_ __contains__".split()
    for name in names:
        for _ in range(40):
            values = _values(rng)
            x = rng.choice(values[:10])
            args = [rng.choice(values) for _ in range(1 if name.startswith("__") else rng.randint(0, 2))]
            if name in ("resize_", "new_zeros", "new_full") and any(isinstance(a, int) and abs(a) > 1000 for a in args):
                continue
            try:
                getattr(x, name)(*args)
            except Exception as error:
                assert "(Internal)" not in str(error), (name, args, error)


@pytest.mark.parametrize(
    "call, kind, says",
    [
        (lambda: sampan.ones([2, 3]) @ sampan.ones([2, 3]), ValueError, r"matmul.*Received.*\[2, 3\]"),
        (lambda: sampan.ones([2]) + sampan.ones([3]), ValueError, r"broadcast.*Hint"),
        (lambda: sampan.reshape(sampan.ones([6]), [4, -1]), ValueError, r"reshape.*\[6\]"),
        (lambda: sampan.concat([sampan.ones([2]), sampan.ones([2, 2])]), ValueError, "concat"),
        (lambda: sampan.sum(sampan.ones([2]), axis=3), IndexError, r"sum.*axis"),
        (lambda: sampan.sum(sampan.ones([2]), axes=3), TypeError, r"no argument `axes`. Hint: sum\("),
        (lambda: sampan.sum(), TypeError, "argument `x` is missing"),
        (lambda: sampan.sum(1, 2, x=3), TypeError, "two values"),
        (lambda: sampan.sum("a"), TypeError, "x"),
        (lambda: ~sampan.ones([2]), TypeError, "integers or bool"),
        (lambda: sampan.ones([2]).item(), ValueError, "one element"),
        (lambda: bool(sampan.ones([2])), ValueError, "ambiguous.*any"),
        (lambda: float(sampan.ones([2])), TypeError, "one element"),
        (lambda: sampan.ones([2]).astype("float31"), TypeError, "float32.*got 'float31'"),
        (lambda: sampan.to_tensor([[1, 2], [3]]), ValueError, "rows differ"),
        (lambda: sampan.to_tensor("abc"), TypeError, "got str"),
        (lambda: sampan.to_tensor({1: 2}), TypeError, "got dict"),
        (lambda: sampan.to_tensor(2**63), OverflowError, "64 bits"),
        (lambda: sampan.ones([2**40, 2**40]), (ValueError, MemoryError, RuntimeError), ""),
        (lambda: sampan.set_device("gpu:0"), ValueError, "gpu:0 is not here.*Devices here: cpu"),
        (lambda: sampan.ones([2]).cuda(), ValueError, "Devices here: cpu"),
        (lambda: sampan.set_device("tpu"), ValueError, "got 'tpu'"),
        (lambda: sampan.enable_static(), NotImplementedError, "static"),
        (lambda: sampan.ones([2]).register_hook(print), RuntimeError, "stop_gradient"),
        (lambda: sampan.ones([2]).grad.shape, AttributeError, "NoneType"),
        (lambda: sampan.set_flags({"FLAGS_x": 1}), ValueError, "FLAGS_x"),
        (lambda: _core.op("nothing"), KeyError, "nothing"),
    ],
)  # fmt: skip
def test_texts(call, kind, says):
    with pytest.raises(kind, match=f"(?s){says}"):
        call()


def test_a_traceback_ends_in_the_users_line():
    def mine():
        return sampan.ones([2]).reshape([3])

    with pytest.raises(ValueError) as caught:
        mine()
    assert caught.traceback[-1].name == "mine"


def test_nan_check_names_the_op():
    sampan.set_flags({"FLAGS_check_nan_inf": True})
    try:
        assert sampan.get_flags("FLAGS_check_nan_inf") == {"FLAGS_check_nan_inf": True}
        with pytest.raises(FloatingPointError, match="log"):
            sampan.log(sampan.to_tensor([-1.0]))
    finally:
        sampan.set_flags({"FLAGS_check_nan_inf": False})
