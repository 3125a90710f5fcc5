"""The workloads, once for Paddle's API (which is sampan's) and once for PyTorch's.

A workload is a function that builds everything and returns a step: a function without arguments that does the work once.
"""

import numpy

WORKLOADS = {}
"""Name → {api: builder}."""

GROUPS = {}
"""Name → group: `train`, `infer`, `loader` or the family of an op."""


def workload(name, group, api):
    def add(build):
        WORKLOADS.setdefault(name, {})[api] = build
        GROUPS[name] = group
        return build

    return add


def array(*shape, low=None, high=None, seed=0):
    """The same numbers for everybody."""
    rng = numpy.random.default_rng(seed)
    if high is not None:
        return rng.integers(low or 0, high, shape).astype("int64")
    return rng.standard_normal(shape).astype("float32")


# ---- networks ---------------------------------------------------------------------------------------------------------


def paddle_net(P, name):
    nn = P.nn
    if name == "linear":
        return nn.Linear(784, 1)
    if name == "mlp":
        return nn.Sequential(nn.Linear(784, 10), nn.Sigmoid(), nn.Linear(10, 10), nn.Sigmoid(), nn.Linear(10, 1))
    if name == "cnn":
        return nn.Sequential(
            nn.Conv2D(1, 20, 5, padding=2), nn.ReLU(), nn.MaxPool2D(2, 2),
            nn.Conv2D(20, 20, 5, padding=2), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Flatten(), nn.Linear(980, 10),
        )  # fmt: skip
    if name == "lenet":
        return P.vision.models.LeNet()
    if name == "resnet18":
        return P.vision.models.resnet18(num_classes=10)
    if name == "resnet50":
        return P.vision.models.resnet50()
    if name == "mobilenet":
        return P.vision.models.mobilenet_v3_small()
    if name == "transformer":
        return nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 1024), 4)
    raise ValueError(name)


def torch_net(torch, name):
    nn = torch.nn
    if name == "linear":
        return nn.Linear(784, 1)
    if name == "mlp":
        return nn.Sequential(nn.Linear(784, 10), nn.Sigmoid(), nn.Linear(10, 10), nn.Sigmoid(), nn.Linear(10, 1))
    if name == "cnn":
        return nn.Sequential(
            nn.Conv2d(1, 20, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2, 2),
            nn.Conv2d(20, 20, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Flatten(), nn.Linear(980, 10),
        )  # fmt: skip
    if name == "lenet":
        return nn.Sequential(
            nn.Conv2d(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2, 2), nn.Conv2d(6, 16, 5), nn.ReLU(),
            nn.MaxPool2d(2, 2), nn.Flatten(), nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10),
        )  # fmt: skip
    if name == "transformer":
        return nn.TransformerEncoder(nn.TransformerEncoderLayer(256, 4, 1024, batch_first=True), 4)
    import torchvision

    if name == "resnet18":
        return torchvision.models.resnet18(num_classes=10)
    return getattr(torchvision.models, {"resnet50": "resnet50", "mobilenet": "mobilenet_v3_small"}[name])()


# ---- training steps ---------------------------------------------------------------------------------------------------

# name: network, input shape, classes (0: a number is predicted; None: the output itself is averaged), optimizer
TRAIN = {
    "linear b16": ("linear", (16, 784), 0, "sgd"),
    "mlp b100": ("mlp", (100, 784), 0, "sgd"),
    "seeds' cnn b100": ("cnn", (100, 1, 28, 28), 10, "adam"),
    "lenet b64": ("lenet", (64, 1, 28, 28), 10, "adam"),
    "lenet b1024": ("lenet", (1024, 1, 28, 28), 10, "adam"),
    "resnet18 32px b32": ("resnet18", (32, 3, 32, 32), 10, "momentum"),
    "resnet50 224px b4": ("resnet50", (4, 3, 224, 224), 1000, "momentum"),
    "mobilenetv3-small 224px b8": ("mobilenet", (8, 3, 224, 224), 1000, "momentum"),
    "transformer encoder b8": ("transformer", (8, 128, 256), None, "adamw"),
}


def paddle_training(P, network, shape, classes, kind):
    F = P.nn.functional
    net = paddle_net(P, network)
    x = P.to_tensor(array(*shape))
    y = P.to_tensor(array(shape[0], 1, high=classes, seed=1) if classes else array(shape[0], 1, seed=1))
    params = net.parameters()
    optimizer = {
        "sgd": lambda: P.optimizer.SGD(0.001, parameters=params),
        "momentum": lambda: P.optimizer.Momentum(0.001, 0.9, parameters=params),
        "adam": lambda: P.optimizer.Adam(0.001, parameters=params),
        "adamw": lambda: P.optimizer.AdamW(0.001, parameters=params),
    }[kind]()

    def step():
        out = net(x)
        loss = F.cross_entropy(out, y) if classes else F.mse_loss(out, y) if classes == 0 else (out * out).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        return loss

    return step


def torch_training(torch, network, shape, classes, kind):
    F = torch.nn.functional
    net = torch_net(torch, network)
    x = torch.from_numpy(array(*shape))
    y = torch.from_numpy(array(shape[0], high=classes, seed=1) if classes else array(shape[0], 1, seed=1))
    params = net.parameters()
    optimizer = {
        "sgd": lambda: torch.optim.SGD(params, 0.001),
        "momentum": lambda: torch.optim.SGD(params, 0.001, momentum=0.9),
        "adam": lambda: torch.optim.Adam(params, 0.001),
        "adamw": lambda: torch.optim.AdamW(params, 0.001),
    }[kind]()

    def step():
        out = net(x)
        loss = F.cross_entropy(out, y) if classes else F.mse_loss(out, y) if classes == 0 else (out * out).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss

    return step


for _name, _settings in TRAIN.items():
    workload(_name, "train", "paddle")(lambda P, s=_settings: paddle_training(P, *s))
    workload(_name, "train", "torch")(lambda T, s=_settings: torch_training(T, *s))


@workload("lstm 256 s64 b32", "train", "paddle")
def _(P):
    net = P.nn.LSTM(256, 256)
    x = P.to_tensor(array(32, 64, 256))
    optimizer = P.optimizer.Adam(0.001, parameters=net.parameters())

    def step():
        out, _ = net(x)
        loss = (out * out).mean()
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()

    return step


@workload("lstm 256 s64 b32", "train", "torch")
def _(torch):
    net = torch.nn.LSTM(256, 256, batch_first=True)
    x = torch.from_numpy(array(32, 64, 256))
    optimizer = torch.optim.Adam(net.parameters(), 0.001)

    def step():
        out, _ = net(x)
        loss = (out * out).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

    return step


# ---- inference --------------------------------------------------------------------------------------------------------

INFER = {
    "lenet b1": ("lenet", (1, 1, 28, 28)),
    "mobilenetv3-small b1": ("mobilenet", (1, 3, 224, 224)),
    "mobilenetv3-small b8": ("mobilenet", (8, 3, 224, 224)),
    "resnet50 b1": ("resnet50", (1, 3, 224, 224)),
}


def paddle_inference(P, network, shape):
    net = paddle_net(P, network)
    net.eval()
    x = P.to_tensor(array(*shape))

    def step():
        with P.no_grad():
            return net(x)

    return step


def torch_inference(torch, network, shape):
    net = torch_net(torch, network)
    net.eval()
    x = torch.from_numpy(array(*shape))

    def step():
        with torch.no_grad():
            return net(x)

    return step


for _name, _settings in INFER.items():
    workload(_name, "infer", "paddle")(lambda P, s=_settings: paddle_inference(P, *s))
    workload(_name, "infer", "torch")(lambda T, s=_settings: torch_inference(T, *s))


# ---- one op at a time -------------------------------------------------------------------------------------------------


def with_backward(xs, call, clear):
    """Forward and backward of a call whose result is summed."""

    def step():
        out = call(*xs)
        out.sum().backward()
        for x in xs:
            clear(x)

    return step


def op(name, family, shapes, paddle, torch, backward=False, ints=()):
    """Adds an op on float inputs of these shapes; `ints` are (shape, high) of integer inputs that follow them."""

    def build(make, wants_grad, clear, call):
        xs = [make(array(*s, seed=i)) for i, s in enumerate(shapes)]
        indices = [make(array(*s, high=h, seed=9)) for s, h in ints]
        if backward:
            for x in xs:
                wants_grad(x)
            return with_backward(xs, lambda *xs: call(*xs, *indices), clear)
        return lambda: call(*xs, *indices)

    @workload(name, family, "paddle")
    def _(P):
        def clear(x):
            x.clear_grad()

        def wants(x):
            x.stop_gradient = False

        return build(P.to_tensor, wants, clear, paddle(P))

    @workload(name, family, "torch")
    def _(T):
        def clear(x):
            x.grad = None

        def wants(x):
            x.requires_grad_()

        return build(T.from_numpy, wants, clear, torch(T))


for n in (64, 256, 1024):
    op(f"matmul {n}³", "matmul", [(n, n), (n, n)], lambda P: P.matmul, lambda T: T.matmul)
op("matmul 64×784×128", "matmul", [(64, 784), (784, 128)], lambda P: P.matmul, lambda T: T.matmul)
op("bmm 32×128×64×128", "matmul", [(32, 128, 64), (32, 64, 128)], lambda P: P.bmm, lambda T: T.bmm)

for c, size, k, stride, groups in [(64, 56, 3, 1, 1), (128, 28, 3, 1, 1), (256, 14, 1, 1, 1), (64, 56, 1, 1, 1), (96, 28, 3, 1, 96), (3, 224, 7, 2, 1)]:
    out = 64 if c == 3 else c
    label = f"conv {k}×{k} {c}→{out} {size}px" + (" depthwise" if groups > 1 else "") + " b4"
    settings = dict(stride=stride, padding=k // 2, groups=groups)
    shapes = [(4, c, size, size), (out, c // groups, k, k)]
    calls = (
        lambda P, s=settings: lambda x, w: P.nn.functional.conv2d(x, w, None, **s),
        lambda T, s=settings: lambda x, w: T.nn.functional.conv2d(x, w, None, **s),
    )
    op(label + " forward", "conv", shapes, *calls)
    op(label + " forward+backward", "conv", shapes, *calls, backward=True)

op("add 1M", "elementwise", [(1024, 1024), (1024, 1024)], lambda P: P.add, lambda T: T.add)
op("exp 1M", "elementwise", [(1024, 1024)], lambda P: P.exp, lambda T: T.exp)
op("gelu 1M forward+backward", "elementwise", [(1024, 1024)], lambda P: P.nn.functional.gelu, lambda T: T.nn.functional.gelu, backward=True)
op("chain of 5 on 1M", "elementwise", [(1024, 1024), (1024, 1024)],
   lambda P: lambda x, y: (P.tanh(x * y) + x) * 0.5, lambda T: lambda x, y: (T.tanh(x * y) + x) * 0.5)  # fmt: skip
op("add of 4 elements", "elementwise", [(4,), (4,)], lambda P: P.add, lambda T: T.add)
op("softmax 1024×1024", "softmax", [(1024, 1024)], lambda P: lambda x: P.nn.functional.softmax(x, -1), lambda T: lambda x: T.softmax(x, -1))
op("cross entropy 1024×1000 forward+backward", "softmax", [(1024, 1000)], lambda P: P.nn.functional.cross_entropy,
   lambda T: T.nn.functional.cross_entropy, backward=True, ints=[((1024,), 1000)])  # fmt: skip
op("layer norm 1024×1024 forward+backward", "norm", [(1024, 1024)], lambda P: lambda x: P.nn.functional.layer_norm(x, [1024]),
   lambda T: lambda x: T.nn.functional.layer_norm(x, [1024]), backward=True)  # fmt: skip


@workload("batch norm 8×64×56² forward+backward", "norm", "paddle")
def _(P):
    bn, x = P.nn.BatchNorm2D(64), P.to_tensor(array(8, 64, 56, 56), stop_gradient=False)
    return with_backward([x], bn, lambda x: x.clear_grad())


@workload("batch norm 8×64×56² forward+backward", "norm", "torch")
def _(torch):
    bn, x = torch.nn.BatchNorm2d(64), torch.from_numpy(array(8, 64, 56, 56)).requires_grad_()
    return with_backward([x], bn, lambda x: setattr(x, "grad", None))


for axis in (0, 1, None):
    over = "all" if axis is None else f"axis {axis}"
    op(f"sum over {over} of 1024²", "reduction", [(1024, 1024)],
       lambda P, a=axis: lambda x: P.sum(x, a), lambda T, a=axis: lambda x: T.sum(x) if a is None else T.sum(x, a))  # fmt: skip
op("max over axis 1 of 1024²", "reduction", [(1024, 1024)], lambda P: lambda x: P.max(x, 1), lambda T: lambda x: T.amax(x, 1))
op("max pool 2×2 8×64×56²", "pool", [(8, 64, 56, 56)], lambda P: lambda x: P.nn.functional.max_pool2d(x, 2, 2),
   lambda T: lambda x: T.nn.functional.max_pool2d(x, 2, 2), backward=True)  # fmt: skip
op("gather rows 10000 of 10000×64", "index", [(10000, 64)], lambda P: lambda x, i: P.gather(x, i),
   lambda T: lambda x, i: T.index_select(x, 0, i), ints=[((10000,), 10000)])  # fmt: skip
op("index add 10000 into 10000×64", "index", [(10000, 64), (10000, 64)],
   lambda P: lambda x, v, i: P.index_add(x, i, 0, v), lambda T: lambda x, v, i: T.index_add(x, 0, i, v), ints=[((10000,), 10000)])  # fmt: skip
op("sort 1M by rows", "sort", [(1024, 1024)], lambda P: lambda x: P.sort(x, -1), lambda T: lambda x: T.sort(x, -1)[0])
op("topk 10 of 1024²", "sort", [(1024, 1024)], lambda P: lambda x: P.topk(x, 10)[0], lambda T: lambda x: T.topk(x, 10)[0])
op("embedding 30000×256, 4096 words forward+backward", "index", [(30000, 256)],
   lambda P: lambda w, i: P.nn.functional.embedding(i, w), lambda T: lambda w, i: T.nn.functional.embedding(i, w),
   backward=True, ints=[((32, 128), 30000)])  # fmt: skip
op("transpose copy 1024²", "copy", [(1024, 1024)], lambda P: lambda x: P.transpose(x, [1, 0]).contiguous(), lambda T: lambda x: x.t().contiguous())


@workload("adam step 11M parameters", "optimizer", "paddle")
def _(P):
    ps = [P.create_parameter([1024, 1024], "float32") for _ in range(11)]
    for p in ps:
        p.grad = P.to_tensor(array(1024, 1024))
    return P.optimizer.Adam(0.001, parameters=ps).step


@workload("adam step 11M parameters", "optimizer", "torch")
def _(torch):
    ps = [torch.nn.Parameter(torch.from_numpy(array(1024, 1024))) for _ in range(11)]
    for p in ps:
        p.grad = torch.from_numpy(array(1024, 1024))
    return torch.optim.Adam(ps, 0.001).step
