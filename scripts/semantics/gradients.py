"""Who gets a gradient, and which."""
from . import case


def _leaf(paddle, values, dtype="float32"):
    return paddle.to_tensor(values, dtype=dtype, stop_gradient=False)


@case(each=["hook, retain", "retain, hook", "retain, retain", "hook, retain, hook"])
def hooks_and_kept_gradients_in_order(paddle, order):
    x = _leaf(paddle, [1, 2])
    y = x * 2
    for what in order.split(", "):
        y.retain_grads() if what == "retain" else y.register_hook(lambda g: g * 2)
    (y * 3).sum().backward()
    return y.grad, x.grad


def a_hook_on_a_leaf_that_keeps_its_gradient(paddle):
    x = _leaf(paddle, [1, 2])
    x.retain_grads()
    x.register_hook(lambda g: g * 2)
    (x * 3).sum().backward()
    return x.grad


@case(each=[True, False])
def of_a_tensor_by_itself(paddle, create_graph):
    x = _leaf(paddle, [1, 2])
    [by_leaf] = paddle.grad([x], [x], create_graph=create_graph)
    y = x * 2
    [by_result] = paddle.grad([y], [y], create_graph=create_graph)
    return by_leaf, by_leaf.stop_gradient, by_result, by_result.stop_gradient


def a_constant_gradient_can_be_gone_on_from(paddle):
    x = _leaf(paddle, [1, 2])
    [g] = paddle.grad([(x * 3).sum()], [x], create_graph=True)
    (g * g).sum().backward()
    return g, g.stop_gradient, x.grad


@case(each=["split", "chunk", "unbind"])
def an_unused_part_has_zeros(paddle, name):
    x = _leaf(paddle, [[1, 2], [3, 4]])
    a, b = getattr(paddle, name)(x, *([] if name == "unbind" else [2]))
    b.retain_grads()
    seen = []
    b.register_hook(lambda g: seen.append(g.tolist()))
    (a * a).sum().backward()
    return b.grad, seen, x.grad


def an_unused_part_asked_for(paddle):
    x = _leaf(paddle, [1, 2, 3, 4])
    a, b = paddle.split(x, 2)
    return paddle.grad([a.sum()], [x, b])


def integers_have_gradients(paddle):
    x = _leaf(paddle, [1, 2, 3], "int64")
    y = (x * 2 + 1).sum()
    y.backward()
    return y.stop_gradient, x.grad


def integers_on_the_way(paddle):
    x = _leaf(paddle, [1.5, 2.5])
    y = x.astype("int64")
    z = (y.astype("float32") * 3).sum()
    z.backward()
    return y.stop_gradient, z.stop_gradient, x.grad


def integers_at_the_end(paddle):
    x = _leaf(paddle, [1.5, 2.5])
    (x.astype("int64") * 2).sum().backward()
    return x.grad


def answers_without_gradients(paddle):
    x = _leaf(paddle, [1.5, 2.5])
    found = [x > 2, paddle.argmax(x), paddle.shape(x), paddle.ones_like(x), paddle.isnan(x), x.floor(), x.round()]
    return [t.stop_gradient for t in found]
