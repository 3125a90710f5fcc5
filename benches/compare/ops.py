"""Single ops: forward, backward, or both, and steps of optimizers."""

from functools import partial

from work import STATES, Work, array, workload


def tensors(api, shapes, indices, wanted=()):
    """Float tensors of these shapes, those at the places `wanted` with a gradient, and integers `(shape, high)`."""
    floats = [api.tensor(array(*shape, seed=i), i in wanted) for i, shape in enumerate(shapes)]
    return floats, [api.tensor(array(*shape, high=high, seed=9)) for shape, high in indices]


def forward(name, group, make, *shapes, indices=(), picks=False):
    """The op `make(api)` on new tensors; one that `picks` reads no more floats than it returns."""

    @workload(name, group)
    def _(api):
        floats, integers = tensors(api, shapes, indices)
        step = partial(make(api), *floats, *integers)
        return Work(step, integers + ([step()] if picks else floats))


def both(name, group, make, *shapes, indices=(), picks=False):
    """Forward, and backward from the sum of the result to every float input."""

    @workload(f"{name} forward+backward", group)
    def _(api):
        floats, integers = tensors(api, shapes, indices, range(len(shapes)))
        op, clear = make(api), api.clear_gradient

        def step():
            out = op(*floats, *integers)
            out.sum().backward()
            for x in floats:
                clear(x)
            return out

        return Work(step, integers + ([step()] if picks else floats), floats)


def backward(name, group, make, *shapes, to):
    """Backward alone, through a graph that is built once, to the input at the place `to`."""

    @workload(name, group)
    def _(api):
        floats, _ = tensors(api, shapes, (), [to])
        out = make(api)(*floats)
        seed = api.tensor(array(*out.shape, seed=7))
        others = [x for i, x in enumerate(floats) if i != to]
        return Work(lambda: api.grad([out], [floats[to]], [seed], retain_graph=True)[0], [*others, seed])


SQUARE = (1024, 1024)

# ---- matrix products ----

for n in (64, 256, 1024):
    forward(f"matmul {n}³", "matmul", lambda api: api.math.matmul, (n, n), (n, n))
forward("matmul 64×784×128", "matmul", lambda api: api.math.matmul, (64, 784), (784, 128))
forward("matmul 1×4096×1000", "matmul", lambda api: api.math.matmul, (1, 4096), (4096, 1000))
forward("matmul 512³ x·yᵀ", "matmul", lambda api: api.matmul(False, True), (512, 512), (512, 512))
forward("matmul 512³ xᵀ·y", "matmul", lambda api: api.matmul(True, False), (512, 512), (512, 512))
forward("bmm 32×128×64×128", "matmul", lambda api: api.math.bmm, (32, 128, 64), (32, 64, 128))

# ---- convolutions, of four images ----

CONVOLUTIONS = [  # channels in and out, pixels, kernel, stride, groups
    (3, 64, 224, 7, 2, 1),
    (64, 64, 56, 3, 1, 1),
    (64, 128, 56, 3, 2, 1),
    (128, 128, 28, 3, 1, 1),
    (64, 64, 56, 1, 1, 1),
    (256, 256, 14, 1, 1, 1),
    (96, 96, 28, 3, 1, 96),
]
for c, out, size, k, stride, groups in CONVOLUTIONS:
    label = f"conv {k}×{k} {c}→{out} {size}px" + f" stride {stride}" * (stride > 1) + " depthwise" * (groups > 1)
    shapes = [(4, c, size, size), (out, c // groups, k, k)]
    make = lambda api, s=dict(stride=stride, padding=k // 2, groups=groups): partial(api.F.conv2d, **s)  # noqa: E731
    forward(label + " forward", "conv", make, *shapes)
    backward(label + " backward-data", "conv", make, *shapes, to=0)
    backward(label + " backward-weight", "conv", make, *shapes, to=1)

both("max pool 2×2 8×64×56²", "pool", lambda api: lambda x: api.F.max_pool2d(x, 2, 2), (8, 64, 56, 56))
both("average pool 2×2 8×64×56²", "pool", lambda api: lambda x: api.F.avg_pool2d(x, 2, 2), (8, 64, 56, 56))

# ---- elementwise ----

forward("add of 4 elements", "elementwise", lambda api: api.math.add, (4,), (4,))
forward("add 1M", "elementwise", lambda api: api.math.add, SQUARE, SQUARE)
forward("add a row to 1024²", "elementwise", lambda api: api.math.add, SQUARE, (1024,))
forward("exp 1M", "elementwise", lambda api: api.math.exp, SQUARE)
forward("chain of 4 on 1M", "elementwise", lambda api: lambda x, y: (api.math.tanh(x * y) + x) * 0.5, SQUARE, SQUARE)
both("chain of 4 on 1M", "elementwise", lambda api: lambda x, y: (api.math.tanh(x * y) + x) * 0.5, SQUARE, SQUARE)
both("relu 1M", "elementwise", lambda api: api.F.relu, SQUARE)
both("gelu 1M", "elementwise", lambda api: api.F.gelu, SQUARE)
both("dropout 1M", "elementwise", lambda api: lambda x: api.F.dropout(x, 0.1), SQUARE)

# ---- softmax, normalisation, reductions ----

forward("softmax 1024² axis 1", "softmax", lambda api: lambda x: api.F.softmax(x, -1), SQUARE)
forward("softmax 1024² axis 0", "softmax", lambda api: lambda x: api.F.softmax(x, 0), SQUARE)
both("softmax 1024² axis 1", "softmax", lambda api: lambda x: api.F.softmax(x, -1), SQUARE)
both("cross entropy 1024×1000", "softmax", lambda api: api.F.cross_entropy, (1024, 1000), indices=[((1024,), 1000)])

LAYER_NORM = lambda api: lambda x, w, b: api.F.layer_norm(x, [1024], w, b)  # noqa: E731
forward("layer norm 1024²", "norm", LAYER_NORM, SQUARE, (1024,), (1024,))
both("layer norm 1024²", "norm", LAYER_NORM, SQUARE, (1024,), (1024,))


def batch_norm(api, training):
    layer = api.nn.BatchNorm2D(64)
    layer.train() if training else layer.eval()
    return layer


forward("batch norm 8×64×56² evaluation", "norm", lambda api: batch_norm(api, False), (8, 64, 56, 56))
both("batch norm 8×64×56² training", "norm", lambda api: batch_norm(api, True), (8, 64, 56, 56))

forward("sum of 1024²", "reduction", lambda api: api.math.sum, SQUARE)
for axis in (0, 1):
    forward(f"sum over axis {axis} of 1024²", "reduction", lambda api, a=axis: lambda x: api.math.sum(x, a), SQUARE)
    forward(f"max over axis {axis} of 1024²", "reduction", lambda api, a=axis: lambda x: api.max(x, a), SQUARE)
for axis in (0, 1, 2):
    cube = (64, 128, 128)
    make = lambda api, a=axis: lambda x: api.math.mean(x, a)  # noqa: E731
    forward(f"mean over axis {axis} of 64×128×128", "reduction", make, cube)
forward("argmax over axis 1 of 1024²", "reduction", lambda api: lambda x: api.math.argmax(x, 1), SQUARE)

# ---- places: gather, scatter, embedding, sort, copies ----

ROWS, TEN_THOUSAND = (10000, 64), [((10000,), 10000)]
forward("gather 10000 rows of 64", "index", lambda api: api.gather_rows, ROWS, indices=TEN_THOUSAND, picks=True)
both("gather 10000 rows of 64", "index", lambda api: api.gather_rows, ROWS, indices=TEN_THOUSAND, picks=True)
forward("scatter 10000 rows of 64", "index", lambda api: api.put_rows, ROWS, ROWS, indices=TEN_THOUSAND)
forward("add at 10000 rows of 64", "index", lambda api: api.add_rows, ROWS, ROWS, indices=TEN_THOUSAND)
forward("take along axis 1024²", "index", lambda api: api.take_along, SQUARE, indices=[(SQUARE, 1024)], picks=True)
EMBEDDING = lambda api: lambda w, i: api.F.embedding(i, w)  # noqa: E731
WORDS = dict(indices=[((32, 128), 30000)], picks=True)
forward("embedding 30000×256, 4096 words", "index", EMBEDDING, (30000, 256), **WORDS)
both("embedding 30000×256, 4096 words", "index", EMBEDDING, (30000, 256), **WORDS)

forward("sort 1024² by rows", "sort", lambda api: api.sort, SQUARE)
forward("sort 1M", "sort", lambda api: api.sort, (1024 * 1024,))
forward("argsort 1024² by rows", "sort", lambda api: lambda x: api.math.argsort(x, -1), SQUARE)
forward("topk 10 of 1024² by rows", "sort", lambda api: lambda x: api.math.topk(x, 10)[0], SQUARE)

forward("transposed copy 1024²", "copy", lambda api: lambda x: x.t().contiguous(), SQUARE)
forward("concat of 4 × 256×1024", "copy", lambda api: lambda *xs: api.math.concat(xs, 1), *[(256, 1024)] * 4)

# ---- optimizers ----

for kind, states in STATES.items():

    @workload(f"{kind} step, 11M parameters", "optimizer")
    def _(api, kind=kind, states=states):
        parameters = [api.parameter(array(1024, 1024, seed=i)) for i in range(11)]
        optimizer, _ = api.optimizer(kind, parameters)
        for p in parameters:
            p.grad = api.tensor(array(1024, 1024))
        # Read: value, gradient, states. Written: value, states.
        return Work(optimizer.step, parameters * (2 + states), parameters * (1 + states))
