"""Iteration over a tensor."""


def rows(paddle):
    x = paddle.arange(6).reshape([3, 2])
    first, *others = x
    a, b = paddle.to_tensor([1.0, 2.0])
    return list(x), first, others, a, b, list(paddle.zeros([0, 2])), list(zip(x, "abc"))[1]


def rows_are_read_when_they_are_asked_for(paddle):
    x = paddle.arange(6).reshape([3, 2])
    rows = iter(x)
    next(rows)
    x[1] = 9
    return next(rows), next(rows), next(rows, None)


def rows_are_views(paddle):
    x = paddle.zeros([2, 2])
    next(iter(x))[0] = 5.0
    return x


def backwards(paddle):
    return list(reversed(paddle.arange(3)))


def gradients(paddle):
    x = paddle.to_tensor([[1.0, 2.0], [3.0, 4.0]], stop_gradient=False)
    sum((row * k).sum() for k, row in enumerate(x, 1)).backward()
    return x.grad, [row.stop_gradient for row in x]


def builtins(paddle):
    x = paddle.to_tensor([3, 1, 2])
    return max(x), min(x), sum(x), sorted(x), 3 in x, 5 in x, len(x)


def too_few(paddle):
    a, b, c = paddle.to_tensor([1, 2])
    return a, b, c
