"""PyLayer, hooks on saved tensors, Jacobians and Hessians."""

import gc
import weakref

import numpy as np
import pytest

import sampan
from sampan.autograd import PyLayer, hessian, jacobian, saved_tensors_hooks


def leaf(values):
    return sampan.to_tensor(values, stop_gradient=False)


class Cube(PyLayer):
    @staticmethod
    def forward(ctx, x, scale=1.0):
        ctx.save_for_backward(x)
        ctx.scale = scale
        assert ctx.saved_tensor()[0] is x
        return x * x * x * scale

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensor()
        return grad * 3.0 * x * x * ctx.scale


def test_forward_backward_and_gradients_of_gradients():
    x = leaf([1.0, 2.0])
    y = Cube.apply(x, scale=2.0)
    assert y.tolist() == [2.0, 16.0] and not y.stop_gradient and y.grad_fn == "Cube"
    y.sum().backward()
    assert x.grad.tolist() == [6.0, 24.0]
    (g,) = sampan.grad(Cube.apply(x).sum(), [x], create_graph=True)
    (h,) = sampan.grad(g.sum(), [x])
    assert h.tolist() == [6.0, 12.0]


def test_several_inputs_and_outputs_and_things_that_are_no_tensors():
    class Mixed(PyLayer):
        @staticmethod
        def forward(ctx, xs, factor, y, note=None):
            ctx.save_for_backward(xs[0], None, y)
            return xs[0] * y * factor, note, xs[1] + 1.0

        @staticmethod
        def backward(ctx, g, h):
            x, nothing, y = ctx.saved_tensor()
            assert nothing is None and h.tolist() == [0.0]
            return g * y * 2.0, None, g * x * 2.0

    a, b, y = leaf([3.0]), leaf([4.0]), leaf([5.0])
    out = Mixed.apply([a, b], 2.0, y, note="text")
    assert out[1] == "text" and out[2].tolist() == [5.0]
    out[0].backward()
    assert a.grad.tolist() == [10.0] and b.grad is None and y.grad.tolist() == [6.0]


def test_an_input_that_wants_no_gradient_needs_none():
    class Product(PyLayer):
        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return g * 7.0

    x = leaf([1.0])
    Product.apply(x, sampan.ones([1])).backward()
    assert x.grad.tolist() == [7.0]
    with pytest.raises(ValueError, match="one gradient for each of 2 inputs, got 1"):
        Product.apply(x, leaf([1.0])).backward()
    with sampan.no_grad():
        assert Product.apply(x, x).stop_gradient


def test_marks_and_absent_gradients():
    seen = []

    class Three(PyLayer):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            a, b = x + 1.0, x + 2.0
            ctx.mark_non_differentiable(b)
            return a, b, x * 3.0

        @staticmethod
        def backward(ctx, *grads):
            seen.extend(grads)
            return grads[0]

    x = leaf([1.0])
    a, b, c = Three.apply(x)
    assert type(Three.apply(x)) is tuple and [t.stop_gradient for t in (a, b, c)] == [False, True, False]
    a.backward()
    assert seen[0].tolist() == [1.0] and seen[1] is None and seen[2] is None


def test_exceptions_pass_through_unchanged():
    class Mine(Exception):
        pass

    class Failing(PyLayer):
        @staticmethod
        def forward(ctx, x, fail=False):
            if fail:
                raise Mine("forward")
            return x * 1.0

        @staticmethod
        def backward(ctx, g):
            raise Mine("backward")

    x = leaf([1.0])
    with pytest.raises(Mine, match="forward") as caught:
        Failing.apply(x, fail=True)
    assert caught.traceback[-1].path.name == "test_autograd.py"
    with pytest.raises(Mine, match="backward"):
        Failing.apply(x).backward()
    with pytest.raises(NotImplementedError, match="defines forward"):
        PyLayer.apply(x)

    class Nothing(PyLayer):
        @staticmethod
        def forward(ctx, x):
            return 3

    with pytest.raises(ValueError, match="at least one Tensor"):
        Nothing.apply(x)


def test_a_saved_tensor_is_guarded_against_changes():
    x = leaf([2.0])
    h = x * 1.0
    y = Cube.apply(h)
    h.add_(sampan.ones([1]))
    with pytest.raises(RuntimeError, match="changed in place") as caught:
        y.backward()
    assert ".rs" not in str(caught.value)


def test_nothing_is_kept_longer_than_the_graph():
    contexts = []

    class Watched(PyLayer):
        @staticmethod
        def forward(ctx, x):
            contexts.append(weakref.ref(ctx))
            y = x * 2.0
            ctx.save_for_backward(x, y)
            ctx.y = y
            return y

        @staticmethod
        def backward(ctx, g):
            x, y = ctx.saved_tensor()
            return g * 2.0 + 0.0 * y

    x = leaf([1.0])
    dropped, used = Watched.apply(x), Watched.apply(x)
    del dropped
    used.backward()
    gc.collect()
    assert [c() for c in contexts] == [None, None]
    twice = Watched.apply(x)
    twice.backward(retain_graph=True)
    twice.backward()
    assert x.grad.tolist() == [6.0]


def test_backward_of_several_tensors():
    x = leaf([1.0, 2.0])
    sampan.autograd.backward([x * x, x * 3.0], [sampan.ones([2]), None])
    assert x.grad.tolist() == [5.0, 7.0]


def test_saved_tensors_go_through_hooks():
    calls = {"pack": 0, "unpack": 0}

    def pack(t):
        calls["pack"] += 1
        return t.numpy()

    def unpack(array):
        calls["unpack"] += 1
        return sampan.to_tensor(array)

    x = leaf([0.5, 1.0])
    with saved_tensors_hooks(pack, unpack):
        y = (x * x).exp()
    outside = x * x
    packed = calls["pack"]
    assert packed > 0 and calls["unpack"] == 0
    (g,) = sampan.grad(y.sum(), [x], create_graph=True)
    expected = 2 * x.numpy() * np.exp(x.numpy() ** 2)
    np.testing.assert_allclose(g.numpy(), expected, rtol=1e-6)
    (h,) = sampan.grad(g.sum(), [x])
    np.testing.assert_allclose(h.numpy(), (2 + 4 * x.numpy() ** 2) * np.exp(x.numpy() ** 2), rtol=1e-6)
    outside.sum().backward()
    assert calls["pack"] == packed and calls["unpack"] > 0

    with saved_tensors_hooks(lambda t: t, lambda t: t[0]):
        y = x * x
    with pytest.raises(ValueError, match=r"must give shape \[2\] again"):
        y.sum().backward()

    with pytest.raises(ZeroDivisionError), saved_tensors_hooks(lambda t: 1 / 0, lambda t: t):
        x * x
    x * x  # and none is left behind


def test_jacobian():
    x, w = leaf([1.0, 2.0]), leaf([[1.0, 0.0], [2.0, 1.0], [0.0, 3.0]])
    J = jacobian(w.matmul(x) ** 2, x)
    y = w.numpy() @ x.numpy()
    np.testing.assert_allclose(J[:].numpy(), 2 * y[:, None] * w.numpy(), rtol=1e-6)
    assert J.shape == [3, 2] and J[1, 0].item() == 16.0 and J[-1].tolist() == [0.0, 36.0]
    np.testing.assert_allclose((J + 1.0).numpy(), J.numpy() + 1, rtol=1e-6)
    assert (J @ x).shape == [3]
    one, two = jacobian(((x * x).sum(), x * 2.0), x)
    assert one.shape == [2] and two[:].tolist() == [[2.0, 0.0], [0.0, 2.0]]
    pair = jacobian(x * 2.0, (x, leaf([5.0])))
    assert pair[1][:].tolist() == [[0.0], [0.0]]


def test_jacobian_of_a_batch():
    x = leaf(np.arange(6.0, dtype="float32").reshape(3, 2))
    J = jacobian(x * x, x, batch_axis=0)
    assert J.shape == [3, 2, 2]
    np.testing.assert_allclose(J[:].numpy(), [np.diag(2 * row) for row in x.numpy()])
    J = jacobian((x * x).sum(1), x, batch_axis=0)
    assert J.shape == [3, 2] and J[1, 1].item() == 6.0 and J[:].shape == [3, 1, 2]
    with pytest.raises(ValueError, match="batch_axis is None or 0"):
        jacobian(x * x, x, batch_axis=1)


def test_hessian():
    x, y = leaf([1.0, 2.0]), leaf([3.0])
    H = hessian((x * x * x).sum() * y[0], (x, y))
    assert H[0][0][:].tolist() == [[18.0, 0.0], [0.0, 36.0]]
    assert H[0][1][:].tolist() == [[3.0], [12.0]] and H[1][0][:].tolist() == [[3.0, 12.0]]
    assert H[1][1][:].tolist() == [[0.0]]
    batch = leaf([[1.0, 2.0], [3.0, 4.0]])
    found = hessian((batch * batch * batch).sum(1), batch, batch_axis=0)
    assert found[:].tolist() == [[[6.0, 0.0], [0.0, 12.0]], [[18.0, 0.0], [0.0, 24.0]]]
    with pytest.raises(ValueError, match="one number"):
        hessian(x * x, x)


def test_products_with_the_jacobian():
    from sampan.incubate.autograd import Hessian, Jacobian, jvp, vjp

    x, v = sampan.to_tensor([1.0, 2.0]), sampan.to_tensor([3.0, 4.0])
    y, g = vjp(lambda a: a * a, x, v)
    assert y.tolist() == [1.0, 4.0] and g.tolist() == [6.0, 16.0]
    y, d = jvp(lambda a, b: a * b, [x, v], [sampan.ones([2]), sampan.zeros([2])])
    assert d.tolist() == [3.0, 4.0]
    assert Jacobian(lambda a: a * a, x)[:].tolist() == [[2.0, 0.0], [0.0, 4.0]]
    assert Hessian(lambda a: (a * a * a).sum(), x)[:].tolist() == [[6.0, 0.0], [0.0, 12.0]]
