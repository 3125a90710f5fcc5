"""The two APIs where their names differ: Paddle's, which is sampan's, and PyTorch's. Workloads are written on these."""

from functools import cached_property
from types import SimpleNamespace


class Paddle:
    """sampan and PaddlePaddle."""

    def __init__(self, module):
        self.module = self.math = module
        self.nn, self.F, self.grad = module.nn, module.nn.functional, module.grad
        self.max = module.max

    def tensor(self, array, wants_gradient=False):
        return self.module.to_tensor(array, stop_gradient=not wants_gradient)

    def parameter(self, array):
        initial = self.nn.initializer.Assign(array)
        return self.module.create_parameter(list(array.shape), "float32", default_initializer=initial)

    def clear_gradient(self, x):
        x.clear_grad()

    def optimizer(self, kind, parameters):
        optimizer = getattr(self.module.optimizer, kind)(0.001, parameters=parameters)
        return optimizer, optimizer.clear_grad

    def captured(self, step):
        """A step that is recorded and done again, where that is not another program."""
        own = self.module.__name__ == "sampan"
        return self.module.jit.to_static(step, full_graph=True) if own else step

    def model(self, name, **settings):
        return getattr(self.module.vision.models, name)(**settings)

    def encoder(self, width, heads, inner, layers):
        return self.nn.TransformerEncoder(self.nn.TransformerEncoderLayer(width, heads, inner), layers)

    DataLoader = cached_property(lambda self: self.module.io.DataLoader)
    lenet = cached_property(lambda self: self.module.vision.models.LeNet)
    lstm = cached_property(lambda self: self.nn.LSTM)
    transforms = cached_property(lambda self: self.module.vision.transforms)

    # ---- ops whose names or arguments differ ----

    def matmul(self, transpose_x, transpose_y):
        return lambda x, y: self.module.matmul(x, y, transpose_x, transpose_y)

    def gather_rows(self, x, rows):
        return self.module.gather(x, rows)

    def put_rows(self, x, values, rows):
        return self.module.scatter(x, rows, values)

    def add_rows(self, x, values, rows):
        return self.module.index_add(x, rows, 0, values)

    def take_along(self, x, indices):
        return self.module.take_along_axis(x, indices, 1)

    def sort(self, x):
        return self.module.sort(x, -1)


class Torch:
    def __init__(self, torch):
        self.module = self.math = torch
        self.F, self.grad = torch.nn.functional, torch.autograd.grad
        self.DataLoader = torch.utils.data.DataLoader
        self.max = torch.amax
        self.nn = SimpleNamespace(**vars(torch.nn))
        for name in ("Conv2D", "MaxPool2D", "BatchNorm2D"):
            setattr(self.nn, name, getattr(torch.nn, name.replace("2D", "2d")))

    def tensor(self, array, wants_gradient=False):
        return self.module.from_numpy(array).requires_grad_(wants_gradient)

    def parameter(self, array):
        return self.nn.Parameter(self.module.from_numpy(array))

    def clear_gradient(self, x):
        x.grad = None

    def captured(self, step):
        return step

    def optimizer(self, kind, parameters):
        settings = {"momentum": 0.9} if kind == "Momentum" else {}
        optimizer = getattr(self.module.optim, "SGD" if kind == "Momentum" else kind)(parameters, 0.001, **settings)
        return optimizer, optimizer.zero_grad

    def model(self, name, **settings):
        import torchvision

        return getattr(torchvision.models, name)(**settings)

    def encoder(self, width, heads, inner, layers):
        layer = self.nn.TransformerEncoderLayer(width, heads, inner, batch_first=True)
        return self.nn.TransformerEncoder(layer, layers)

    def lenet(self):
        """Paddle's LeNet."""
        nn = self.nn
        return nn.Sequential(
            nn.Conv2D(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Conv2D(6, 16, 5), nn.ReLU(),
            nn.MaxPool2D(2, 2), nn.Flatten(), nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10),
        )  # fmt: skip

    def lstm(self, inputs, width):
        return self.nn.LSTM(inputs, width, batch_first=True)

    @property
    def transforms(self):
        from torchvision import transforms

        return transforms

    # ---- ops whose names or arguments differ ----

    def matmul(self, transpose_x, transpose_y):
        return lambda x, y: self.module.matmul(x.t() if transpose_x else x, y.t() if transpose_y else y)

    def gather_rows(self, x, rows):
        return self.module.index_select(x, 0, rows)

    def put_rows(self, x, values, rows):
        return self.module.index_copy(x, 0, rows, values)

    def add_rows(self, x, values, rows):
        return self.module.index_add(x, 0, rows, values)

    def take_along(self, x, indices):
        return self.module.gather(x, 1, indices)

    def sort(self, x):
        return self.module.sort(x, -1)[0]


def api_of(module):
    """The API of an imported library."""
    return (Torch if module.__name__ == "torch" else Paddle)(module)
