"""`.grad`, hooks and the graph, as seen from Python."""

import gc
import weakref

import numpy as np
import pytest
import sampan


def leaf(*values):
    return sampan.to_tensor(list(values), dtype="float32", stop_gradient=False)


def test_gradients_add_up_until_cleared():
    x = leaf(1, 2)
    assert x.grad is None and x.gradient() is None and x._grad_ivar() is None
    for times in (1, 2):
        (x * x).sum().backward()
        assert x.grad.tolist() == [2.0 * times, 4.0 * times]
    assert x.gradient().tolist() == [4.0, 8.0] and isinstance(x.gradient(), np.ndarray)
    x.clear_grad()
    assert x.grad.tolist() == [0.0, 0.0]
    x.clear_gradient(set_to_zero=False)
    assert x.grad is None


def test_grad_can_be_assigned():
    x = leaf(1, 2)
    x.grad = sampan.ones([2])
    (x * 3).sum().backward()
    assert x.grad.tolist() == [4.0, 4.0]
    x.grad = None
    assert x.grad is None
    with pytest.raises(ValueError, match="shape"):
        x.grad = sampan.ones([3])
    with pytest.raises(TypeError):
        x.grad = 1


def test_intermediate_results_keep_theirs_on_request():
    x = leaf(1, 2)
    y = x * 2
    z = y * 3
    y.retain_grads()
    z.sum().backward()
    assert y.grad.tolist() == [3.0, 3.0] and z.grad is None and x.grad.tolist() == [6.0, 6.0]
    assert not y.is_leaf and x.is_leaf and y.grad_fn is not None and x.grad_fn is None


def test_backward_takes_a_gradient():
    x = leaf(1, 2)
    (x * x).backward(sampan.to_tensor([1.0, 10.0]))
    assert x.grad.tolist() == [2.0, 40.0]
    with pytest.raises((ValueError, TypeError)):
        (x * x).backward(sampan.ones([3]))


def test_a_graph_is_walked_once_unless_kept():
    x = leaf(1, 2)
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.tolist() == [4.0, 8.0]
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        y.backward()


def test_stop_gradient_cuts():
    x = leaf(1, 2)
    y = x * 2
    y.stop_gradient = True
    z = (y * x).sum()
    z.backward()
    assert x.grad.tolist() == [2.0, 4.0]
    with sampan.no_grad():
        w = x * 2
    assert w.stop_gradient and w.is_leaf
    assert x.detach().stop_gradient and x.requires_grad and not x.requires_grad_(False).requires_grad


def test_hooks_see_and_replace_gradients():
    x, seen = leaf(1, 2), []
    first = x.register_hook(lambda g: seen.append(g.tolist()))
    second = x.register_hook(lambda g: g * 10)
    y = x * 3
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    assert seen == [[6.0, 6.0]] and x.grad.tolist() == [60.0, 60.0]
    assert first.remove() and not first.remove() and second.remove()
    x.clear_grad()
    (x * 3).sum().backward()
    assert x.grad.tolist() == [3.0, 3.0] and len(seen) == 1


def test_a_hook_that_raises_stops_the_walk():
    x = leaf(1)

    def broken(grad):
        raise KeyError("mine")

    x.register_hook(broken)
    with pytest.raises(KeyError, match="mine"):
        (x * 2).backward()
    for wrong in (lambda g: 3, lambda g: "a"):
        y = leaf(1)
        y.register_hook(wrong)
        with pytest.raises(TypeError):
            (y * 2).backward()
    with pytest.raises(TypeError, match="function"):
        x.register_hook(3)


def test_grad_of_several_orders():
    x = leaf(2)
    y = x**3
    (first,) = sampan.grad(y, x, create_graph=True)
    (second,) = sampan.grad(first, [x], create_graph=True)
    (third,) = sampan.grad(second, x)
    assert [first.item(), second.item(), third.item()] == [12.0, 12.0, 6.0] and x.grad is None
    with pytest.raises((ValueError, RuntimeError)):
        sampan.grad(x * 1, leaf(1))
    assert sampan.grad(x * 1, leaf(1), allow_unused=True) == [None]


def test_changes_of_saved_values_are_noticed():
    x = leaf(1, 2)
    y = x * 1
    z = y * y
    y.add_(sampan.ones([2]))
    with pytest.raises(RuntimeError, match="multiply"):
        z.sum().backward()
    assert y.inplace_version == y._inplace_version() == 1


def test_modes_are_contexts_and_decorators():
    x = leaf(1)

    @sampan.no_grad()
    def f():
        return x * 2

    @sampan.no_grad
    def g():
        with sampan.enable_grad():
            return x * 2

    @sampan.no_grad()
    def h():
        yield x * 2

    assert f().stop_gradient and not g().stop_gradient and next(h()).stop_gradient
    with sampan.set_grad_enabled(False):
        assert not sampan.is_grad_enabled()
    assert sampan.is_grad_enabled()
    with pytest.raises(ZeroDivisionError), sampan.no_grad():
        1 / 0
    assert sampan.is_grad_enabled()


def test_a_graph_lives_as_long_as_its_result():
    held = [0]
    x = leaf(1)

    class Note:
        pass

    note = Note()
    alive = weakref.ref(note)
    y = x * 2
    y.register_hook(lambda g, note=note: held.append(note is not None))
    del note
    gc.collect()
    assert alive() is not None
    y.backward()
    assert held == [0, True]
    del y
    gc.collect()
    assert alive() is None


def test_a_long_chain_neither_recurses_nor_leaks():
    x = leaf(1)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.backward()
    del y
    assert x.grad.item() == 1.0


def test_a_sum_of_tensors_with_and_without_axes():
    a, b = sampan.to_tensor(1.0, stop_gradient=False), sampan.to_tensor([2.0, 3.0], stop_gradient=False)
    total = sampan.add_n([a, b])
    assert total.tolist() == [3.0, 4.0] and sampan.add_n([sampan.to_tensor(1.0), sampan.to_tensor([[2.0]])]).shape == [1, 1]
    total.sum().backward()
    assert a.grad.item() == 2.0 and b.grad.tolist() == [1.0, 1.0]
    with pytest.raises(ValueError, match="add_n"):
        sampan.add_n([sampan.ones([1]), sampan.ones([2])])


@pytest.mark.parametrize(
    "shapes", [([2, 3, 4], [4]), ([2, 3, 4], [4], [3]), ([4], [4]), ([2, 3, 4], [2, 4, 2], [2]), ([2, 3], [3, 4], [2, 1])]
)
def test_a_linear_map_by_a_vector_or_a_batch(shapes):
    def leaves():
        sampan.seed(3)
        return [sampan.randn(shape).detach().requires_grad_() for shape in shapes]

    ours, parts = leaves(), leaves()
    y, expected = sampan.nn.functional.linear(*ours), sampan.matmul(*parts[:2])
    for bias in parts[2:]:
        expected = expected + bias
    assert y.shape == expected.shape
    for result in (y, expected):
        result.pow(2).sum().backward()
    for a, b in zip([y, *(t.grad for t in ours)], [expected, *(t.grad for t in parts)]):
        assert (a - b).abs().max().item() < 1e-5


def test_a_diagonal_of_uneven_axes():
    x = sampan.zeros([2, 3, 4]).fill_diagonal_(9.0)
    assert x.sum().item() == 18.0 and x[0, 0, 0].item() == x[1, 1, 1].item() == 9.0
