"""Programs that branch and loop, as both libraries rewrite them: `CASES[name]` is a function of the library and arrays."""

import numpy as np


def if_else(paddle, x):
    if x.mean() > 0:
        y = x * 2
    else:
        y = x - 1
    return y


def if_only(paddle, x):
    y = x + 1
    if y.sum() > 3:
        y = y * 10
        x = x - y
    return y, x


def nested_if(paddle, x):
    if x.mean() > 0:
        if x.max() > 2:
            y = x * 3
        else:
            y = x * 5
    else:
        y = -x
    return y


def elif_chain(paddle, x):
    s = x.sum()
    if s > 4:
        y = x + 4
    elif s > 0:
        y = x + 1
    else:
        y = x - 7
    return y * 2


def early_return(paddle, x):
    if x.mean() > 0:
        return x * 2
    return x - 1


def while_loop(paddle, x):
    n = paddle.zeros([1], "int64")
    while x.abs().max() > 1:
        x = x / 2
        n = n + 1
    return x, n


def for_range(paddle, x):
    steps = paddle.full([1], 4, "int64")
    y = paddle.zeros_like(x)
    for i in range(steps):
        y = y + x * i.astype("float32")
    return y


def with_break(paddle, x):
    i = paddle.zeros([1], "int64")
    y = x
    while i < 10:
        y = y * 1.5
        if y.abs().sum() > 20:
            break
        i = i + 1
    return y, i


def with_continue(paddle, x):
    i = paddle.zeros([1], "int64")
    y = x
    while i < 6:
        i = i + 1
        if i % 2 == 0:
            continue
        y = y + i.astype("float32")
    return y


def while_in_if(paddle, x):
    if x.mean() > 0:
        while x.sum() > 1:
            x = x / 2
    else:
        x = x * x
    return x


def if_in_while(paddle, x):
    i = paddle.zeros([1], "int64")
    while i < 5:
        if x.sum() > 3:
            x = x - 1
        else:
            x = x * 2
        i = i + 1
    return x


def and_or_not(paddle, x):
    if x.mean() > 0 and x.max() < 3 or not (x.min() > -5):
        y = x + 1
    else:
        y = x - 1
    return y


def cond(paddle, x):
    return paddle.static.nn.cond(x.mean() > 0, lambda: x * 2, lambda: x - 1)


def by_while_loop(paddle, x):
    i = paddle.zeros([1], "int64")
    return paddle.static.nn.while_loop(lambda i, y: i < 3, lambda i, y: [i + 1, y * 2 + x], [i, x])


def case(paddle, x):
    s = x.sum()
    pairs = [(s > 4, lambda: x * 4), (s > 0, lambda: x * 2)]
    return paddle.static.nn.case(pairs, default=lambda: x - 3)


def switch_case(paddle, x):
    which = paddle.clip(x.sum().astype("int32"), 0, 2)
    return paddle.static.nn.switch_case(which, {0: lambda: x, 1: lambda: x * 10}, default=lambda: x * 100)


def collected(paddle, x):
    kept = []
    i = paddle.zeros([1], "int64")
    while i < 4:
        x = x * 1.5
        kept.append(x.sum(axis=1))
        i = i + 1
    return paddle.stack(kept)


def joined(paddle, x):
    kept = []
    for i in range(paddle.full([1], 3, "int64")):
        kept.append(x + i.astype("float32"))
    return paddle.concat(kept, axis=1)


def written_only(paddle, x):
    kept = paddle.tensor.create_array("float32")
    i = paddle.zeros([1], "int64")
    while i < 3:
        paddle.tensor.array_write(x * i.astype("float32"), i, array=kept)
        i = i + 1
    last = paddle.tensor.array_read(kept, i - 1)
    return last


def chosen(paddle, x):
    kept = []
    kept.append(x)
    if x.mean() > 0:
        kept.append(x * 2)
    else:
        kept.append(x - 1)
    return paddle.stack(kept)


def until(paddle, x):
    kept = []
    i = paddle.zeros([1], "int64")
    while i < 8:
        x = x * 1.5
        if x.abs().sum() > 30:
            break
        kept.append(x)
        i = i + 1
    kept.append(x)
    return paddle.stack(kept)


def popped(paddle, x):
    kept = [x]
    i = paddle.zeros([1], "int64")
    while i < 3:
        kept.append(x + i.astype("float32"))
        i = i + 1
    last = kept.pop()
    return last, paddle.concat(kept)


def counted(paddle, x):
    kept = [x]
    i = paddle.zeros([1], "int64")
    while i < 3:
        kept.append(x)
        i = i + 1
    return x * len(kept)


def of_rows(paddle, x):
    kept = []
    for row in x:
        kept.append(row * 2)
    return paddle.stack(kept)


def recurrent(paddle, x):
    kept = []
    h = paddle.zeros_like(x[0])
    for i in range(x.shape[0]):
        h = paddle.tanh(h + x[i])
        kept.append(h)
    return paddle.stack(kept), h


def read_back(paddle, x):
    kept = []
    i = paddle.zeros([1], "int64")
    while i < 4:
        kept.append(x * i.astype("float32"))
        i = i + 1
    return kept[1] + kept[3]


def sliced(paddle, x):
    kept = []
    i = paddle.zeros([1], "int64")
    while i < 4:
        kept.append(x * i.astype("float32"))
        i = i + 1
    return paddle.concat(kept[1:3])


def last(paddle, x):
    kept = []
    i = paddle.zeros([1], "int64")
    while i < 4:
        kept.append(x * i.astype("float32"))
        i = i + 1
    return kept[-1]


def set_later(paddle, x):
    kept = []
    i = paddle.zeros([1], "int64")
    while i < 4:
        kept.append(x * i.astype("float32"))
        i = i + 1
    kept[1] = x + 10
    return paddle.stack(kept, axis=1)


def two_lists(paddle, x):
    a, b = [], []
    i = paddle.zeros([1], "int64")
    y = x
    while i < 4:
        a.append(x * i.astype("float32"))
        if i % 2 == 0:
            b.append(y)
            y = y + 1
        else:
            y = y * 2
        i = i + 1
    return paddle.concat(a, axis=0), paddle.concat(b, axis=1), y


def nested(paddle, x):
    kept = []
    i = paddle.zeros([1], "int64")
    while i < 2:
        j = paddle.zeros([1], "int64")
        while j < 3:
            kept.append(x + i.astype("float32") * j.astype("float32"))
            j = j + 1
        i = i + 1
    return paddle.stack(kept)


_A = np.array([[0.5, 1.5, -0.25], [2.0, 0.125, 3.0]], "float32")
ARRAYS = [_A, -_A, _A / 8, _A * 0]
CASES = {
    f.__name__: f
    for f in (
        if_else, if_only, nested_if, elif_chain, early_return, while_loop, for_range, with_break, with_continue,
        while_in_if, if_in_while, and_or_not, cond, by_while_loop, case, switch_case,
    )
}
# Lists that a loop or a branch fills, which become arrays of tensors.
LISTS = {
    f.__name__: f
    for f in (
        collected, joined, written_only, chosen, until, popped, counted, of_rows, recurrent, read_back, sliced, last,
        set_later, two_lists, nested,
    )
}


def beyond(paddle, x):
    kept = []
    i = paddle.zeros([1], "int64")
    while i < 4:
        kept.append(x * i.astype("float32"))
        i = i + 1
    return kept[7]


def popped_beyond(paddle, x):
    kept = []
    i = paddle.zeros([1], "int64")
    while i < 4:
        kept.append(x * i.astype("float32"))
        i = i + 1
    return kept.pop(6)


def popped_often(paddle, x):
    kept = []
    i = paddle.zeros([1], "int64")
    while i < 2:
        kept.append(x * i.astype("float32"))
        i = i + 1
    return kept.pop(), kept.pop(), kept.pop()


def row_beyond(paddle, x):
    return x[3] * 2


def part_of_row(paddle, x):
    i = x.sum().astype("int64")
    return x[i, 1:] * 2


def part_of_row_before(paddle, x):
    i = x.sum().astype("int64") - 1
    return x[i, 1:] * 2


# Places that are not there, at least for some inputs: what Paddle then refuses has no result.
BEYOND = {
    f.__name__: f
    for f in (beyond, popped_beyond, popped_often, row_beyond, part_of_row, part_of_row_before)
}
