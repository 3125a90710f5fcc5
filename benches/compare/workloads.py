"""What is compared: whole networks, in training and in inference. Single ops are in ops.py, the loader is in loader.py.

A workload is a function of an API (see apis.py) that builds everything and gives a `Work`.
"""

import loader  # noqa: F401
import ops  # noqa: F401
from work import STATES, Work, array, workload


def mlp(api):
    nn = api.nn
    return nn.Sequential(nn.Linear(784, 10), nn.Sigmoid(), nn.Linear(10, 10), nn.Sigmoid(), nn.Linear(10, 1))


def cnn(api):
    nn = api.nn
    return nn.Sequential(
        nn.Conv2D(1, 20, 5, padding=2), nn.ReLU(), nn.MaxPool2D(2, 2),
        nn.Conv2D(20, 20, 5, padding=2), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Flatten(), nn.Linear(980, 10),
    )  # fmt: skip


NETWORKS = {
    "linear": lambda api: api.nn.Linear(784, 1),
    "mlp": mlp,
    "cnn": cnn,
    "lenet": lambda api: api.lenet(),
    "resnet18": lambda api: api.model("resnet18", num_classes=10),
    "resnet50": lambda api: api.model("resnet50"),
    "mobilenet": lambda api: api.model("mobilenet_v3_small"),
    "transformer": lambda api: api.encoder(256, 4, 1024, layers=4),
    "lstm": lambda api: api.lstm(256, 256),
}

# What a step teaches: to predict a number, to name one of so many classes, or to make the output small.
NUMBER, SMALL_OUTPUT = 0, None

TRAINING = {
    "linear b16": ("linear", (16, 784), NUMBER, "SGD"),
    "mlp b100": ("mlp", (100, 784), NUMBER, "SGD"),
    "seeds' cnn b100": ("cnn", (100, 1, 28, 28), 10, "Adam"),
    "lenet b64": ("lenet", (64, 1, 28, 28), 10, "Adam"),
    "lenet b1024": ("lenet", (1024, 1, 28, 28), 10, "Adam"),
    "resnet18 32px b32": ("resnet18", (32, 3, 32, 32), 10, "Momentum"),
    "resnet50 224px b4": ("resnet50", (4, 3, 224, 224), 1000, "Momentum"),
    "mobilenetv3-small 224px b8": ("mobilenet", (8, 3, 224, 224), 1000, "Momentum"),
    "transformer encoder b8": ("transformer", (8, 128, 256), SMALL_OUTPUT, "AdamW"),
    "lstm 256 s64 b32": ("lstm", (32, 64, 256), SMALL_OUTPUT, "Adam"),
}


CAPTURED = ["linear b16", "mlp b100", "seeds' cnn b100", "lenet b64", "transformer encoder b8", "lstm 256 s64 b32"]
"""Steps that sampan records and does again as a whole; the peers' are eager."""


def training(api, network, shape, classes, kind, captured=False):
    net = NETWORKS[network](api)
    x = api.tensor(array(*shape))
    y = api.tensor(array(shape[0], high=classes, seed=1) if classes else array(shape[0], 1, seed=1))
    cross_entropy, mse_loss, recurrent = api.F.cross_entropy, api.F.mse_loss, network == "lstm"
    optimizer, clear_gradients = api.optimizer(kind, net.parameters())

    def learn(x, y):
        out = net(x)
        if classes:
            loss = cross_entropy(out, y)
        elif classes == NUMBER:
            loss = mse_loss(out, y)
        else:
            out = out[0] if recurrent else out
            loss = (out * out).mean()
        loss.backward()
        optimizer.step()
        clear_gradients()
        return loss

    if captured:
        learn = api.captured(learn)

    def step():
        return learn(x, y)

    # Each parameter's value, gradient and state is read once and written once.
    updated = list(net.parameters()) * (2 + STATES[kind])
    return Work(step, [x, y, *updated], updated, trains=True)


INFERENCE = {
    "lenet b1": ("lenet", (1, 1, 28, 28)),
    "mobilenetv3-small b1": ("mobilenet", (1, 3, 224, 224)),
    "mobilenetv3-small b8": ("mobilenet", (8, 3, 224, 224)),
    "resnet50 b1": ("resnet50", (1, 3, 224, 224)),
}


def inference(api, network, shape):
    net = NETWORKS[network](api)
    net.eval()
    x, no_grad = api.tensor(array(*shape)), api.module.no_grad

    def step():
        with no_grad():
            return net(x)

    return Work(step, [x, *net.parameters()])


for _name, _settings in TRAINING.items():
    workload(_name, "train")(lambda api, s=_settings: training(api, *s))
for _name in CAPTURED:
    workload(f"{_name}, captured", "captured")(lambda api, s=TRAINING[_name]: training(api, *s, captured=True))
for _name, _settings in INFERENCE.items():
    workload(_name, "infer")(lambda api, s=_settings: inference(api, *s))
