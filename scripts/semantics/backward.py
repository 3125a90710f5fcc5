"""What `backward` does where there is nothing to do."""
from . import case


def on_a_constant(paddle):
    x = paddle.ones([2])
    return x.backward(), x.grad


def on_what_no_grad_made(paddle):
    x = paddle.to_tensor([1.0], stop_gradient=False)
    with paddle.no_grad():
        y = x * 2
    return y.stop_gradient, y.backward(), x.grad


def on_what_was_detached(paddle):
    x = paddle.to_tensor([1.0], stop_gradient=False)
    return (x * 2).detach().backward(), x.grad


def on_integers(paddle):
    x = paddle.ones([2], dtype="int64")
    return x.sum().backward(), x.grad


def on_a_frozen_network(paddle):
    net = paddle.nn.Linear(2, 1)
    for p in net.parameters():
        p.stop_gradient = True
    return net(paddle.ones([1, 2])).sum().backward(), net.weight.grad


def several_of_which_one_counts(paddle):
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    paddle.autograd.backward([paddle.ones([3]), (x * x).sum(), paddle.zeros([1])])
    return x.grad


def none_of_several(paddle):
    return paddle.autograd.backward([paddle.ones([3]), paddle.zeros([1])])


def on_a_leaf(paddle):
    x = paddle.to_tensor([1.0, 2.0], stop_gradient=False)
    return x.backward(), x.grad


def grad_of_a_constant(paddle):
    x = paddle.to_tensor([1.0], stop_gradient=False)
    return paddle.grad([paddle.ones([1])], [x])


def grad_of_a_constant_where_none_will_do(paddle):
    x = paddle.to_tensor([1.0], stop_gradient=False)
    return paddle.grad([paddle.ones([1])], [x], allow_unused=True)


@case(right={"raises": "ValueError"}, because="an assertion is no way to refuse an argument")
def a_gradient_of_another_shape(paddle):
    paddle.ones([2]).backward(paddle.ones([3]))
