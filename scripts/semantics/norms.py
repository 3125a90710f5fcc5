"""The statistics of a norm are parameters that are not trained."""
import copy

import numpy as np

from . import case

_LAYERS = {
    "BatchNorm1D": lambda nn: nn.BatchNorm1D(3),
    "BatchNorm2D": lambda nn: nn.BatchNorm2D(3),
    "BatchNorm3D": lambda nn: nn.BatchNorm3D(3),
    "BatchNorm": lambda nn: nn.BatchNorm(3),
    "SyncBatchNorm": lambda nn: nn.SyncBatchNorm(3),
    "no bias": lambda nn: nn.BatchNorm2D(3, bias_attr=False),
    "no affine": lambda nn: nn.BatchNorm2D(3, weight_attr=False, bias_attr=False),
    "global": lambda nn: nn.BatchNorm2D(3, use_global_stats=True),
    "named": lambda nn: nn.BatchNorm(3, moving_mean_name="its_mean", moving_variance_name="its_variance"),
    "InstanceNorm1D": lambda nn: nn.InstanceNorm1D(3),
    "InstanceNorm2D": lambda nn: nn.InstanceNorm2D(3, weight_attr=False, bias_attr=False),
    "GroupNorm": lambda nn: nn.GroupNorm(1, 3),
    "LayerNorm": lambda nn: nn.LayerNorm(3),
    "SpectralNorm": lambda nn: nn.SpectralNorm([4, 3]),
    "spectral_norm": lambda nn: nn.utils.spectral_norm(nn.Linear(2, 3)),
    "weight_norm": lambda nn: nn.utils.weight_norm(nn.Linear(2, 3)),
}


def _net(paddle):
    nn = paddle.nn
    half = nn.initializer.Constant(0.5)
    return nn.Sequential(nn.Conv2D(2, 3, 1, weight_attr=half, bias_attr=half), nn.BatchNorm2D(3), nn.ReLU())


def _images(paddle):
    return paddle.to_tensor(np.sin(np.arange(48, dtype="float32")).reshape(2, 2, 3, 4))


def _train(paddle, net, parameters=None, steps=2, **more):
    optimizer = paddle.optimizer.Momentum(0.1, parameters=parameters or net.parameters(), weight_decay=0.01, **more)
    for _ in range(steps):
        (net(_images(paddle)) ** 2).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    return optimizer


@case(each=list(_LAYERS))
def members(paddle, name):
    layer = _LAYERS[name](paddle.nn)
    parameters = [(n, type(p).__name__ != "Tensor", p.stop_gradient, p.trainable, p.persistable, list(p.shape))
                  for n, p in layer.named_parameters()]
    buffers = [(n, b.stop_gradient) for n, b in layer.named_buffers()]
    return parameters, buffers, list(layer.state_dict())


def names_of_statistics(paddle):
    layer = paddle.nn.BatchNorm2D(3)
    first = layer.full_name()
    return [p.name.replace(first, "") for p in layer.parameters()]


def counted_by_summary(paddle):
    found = paddle.summary(_net(paddle), (1, 2, 4, 4))
    return {name: int(value) for name, value in found.items()}


def counted_by_hand(paddle):
    net = _net(paddle)
    return sum(int(np.prod(p.shape)) for p in net.parameters()), sum(p.size for p in net.parameters() if p.trainable)


def an_optimizer_leaves_them_alone(paddle):
    net = _net(paddle)
    optimizer = _train(paddle, net)
    names = [n.split(".")[-1] for n in optimizer.state_dict()]
    return net[1]._mean, net[1]._variance, net[1].weight, net[1].bias, names


def thawed_ones_are_still_not_trained(paddle):
    net = _net(paddle)
    for p in net.parameters():
        p.stop_gradient = False
    optimizer = _train(paddle, net)
    names = [n.split(".")[-1] for n in optimizer.state_dict()]
    grads = [p.grad is None for p in net[1].parameters()]
    return net[1]._mean, net[1]._variance, net[1].weight, grads, names, net[1]._mean.stop_gradient


def thawed_by_trainable(paddle):
    net = _net(paddle)
    for p in net.parameters():
        p.trainable = True
    _train(paddle, net)
    net.eval()
    (net(_images(paddle)) ** 2).sum().backward()
    return net[1]._mean, net[1]._mean.grad, net[1]._variance.grad, net[1]._variance


def frozen_all(paddle):
    net = _net(paddle)
    for p in net.parameters():
        p.stop_gradient = True
    out = net(_images(paddle))
    return out.stop_gradient, net[1]._mean


def clipped_gradients(paddle):
    net = _net(paddle)
    _train(paddle, net, grad_clip=paddle.nn.ClipGradByGlobalNorm(0.5))
    return net[1]._mean, net[1].weight


def a_state_travels(paddle):
    net, other = _net(paddle), _net(paddle)
    _train(paddle, net)
    missing = other.set_state_dict({name: value.numpy() for name, value in net.state_dict().items()})
    return missing, other[1]._mean, other[1]._variance


def a_copy_is_its_own(paddle):
    net = _net(paddle)
    _train(paddle, net)
    twin = copy.deepcopy(net)
    _train(paddle, net, steps=1)
    same = [a is b for a, b in zip(net.parameters(), twin.parameters())]
    return same, twin[1]._mean, net[1]._mean, [p.stop_gradient for p in twin.parameters()], len(twin.parameters())


def a_copy_goes_on(paddle):
    net = copy.deepcopy(_net(paddle))
    _train(paddle, net)
    return net[1]._mean, net[1]._variance, net.state_dict()["1._mean"]


def a_moving_average_over_parameters(paddle):
    net = _net(paddle)
    shadow = {name: p.clone() for name, p in net.named_parameters()}
    _train(paddle, net)
    for name, p in net.named_parameters():
        shadow[name] = 0.5 * shadow[name] + 0.5 * p
    for name, p in net.named_parameters():
        p.set_value(shadow[name])
    net.eval()
    return shadow["1._mean"], net[1]._mean, list(shadow), net(_images(paddle)).mean()


@case(each=["float64", "float16"])
def cast_with_the_layer(paddle, dtype):
    net = _net(paddle).to(dtype=dtype)
    return [str(p.dtype).split(".")[-1] for p in net.parameters()]


def written_and_read(paddle):
    layer = paddle.nn.BatchNorm2D(2)
    layer._mean.set_value(paddle.to_tensor([1.0, 2.0]))
    layer._variance[:] = 4.0
    layer.eval()
    return layer(paddle.zeros([1, 2, 1, 1])), layer.state_dict()["_mean"]


def a_plain_tensor_is_refused(paddle):
    paddle.nn.BatchNorm2D(2)._mean = paddle.zeros([2])


def a_parameter_takes_their_place(paddle):
    layer = paddle.nn.BatchNorm2D(2)
    layer._mean = paddle.create_parameter([2], "float32", default_initializer=paddle.nn.initializer.Constant(3.0))
    layer.eval()
    return layer(paddle.zeros([1, 2, 1, 1])), [n for n, _ in layer.named_parameters()]


def two_layers_share_them(paddle):
    one, two = paddle.nn.BatchNorm2D(3), paddle.nn.BatchNorm2D(3)
    two._mean, two._variance = one._mean, one._variance
    x = paddle.to_tensor(np.arange(12, dtype="float32").reshape(1, 3, 2, 2))
    one(x)
    two(x)
    one._mean.set_value(one._mean * 2)
    return one._mean, two._mean, two._mean is one._mean


def converted_to_sync(paddle):
    net = _net(paddle)
    _train(paddle, net)
    mean = net[1]._mean
    net = paddle.nn.SyncBatchNorm.convert_sync_batchnorm(net)
    return type(net[1]).__name__, net[1]._mean is mean, len(net.parameters()), net[1]._mean


def flat_vectors(paddle):
    net = _net(paddle)
    vector = paddle.nn.utils.parameters_to_vector(net.parameters())
    paddle.nn.utils.vector_to_parameters(vector * 0 + 2, net.parameters())
    return vector.shape[0], net[1]._variance


def settings_of_a_statistic(paddle):
    p = paddle.nn.BatchNorm2D(2)._mean
    p.optimize_attr["learning_rate"] = 0.5
    return p.optimize_attr["learning_rate"], p.need_clip, p.regularizer, p.is_leaf, p.stop_gradient


def gradients_are_cleared(paddle):
    net = _net(paddle)
    (net(_images(paddle)) ** 2).sum().backward()
    net.clear_gradients()
    return [None if p.grad is None else float(p.grad.abs().sum()) for p in net.parameters()]


def groups_of_parameters(paddle):
    net = _net(paddle)
    groups = [{"params": net[0].parameters()}, {"params": net[1].parameters(), "learning_rate": 0.1}]
    _train(paddle, net, groups)
    return net[1]._mean, net[1].weight


_OPTIMIZERS = "SGD Momentum Adam AdamW Adamax Adagrad Adadelta RMSProp Lamb NAdam RAdam Rprop ASGD".split()


@case(each=_OPTIMIZERS, rtol=1e-4)
def every_optimizer(paddle, name):
    net = _net(paddle)
    for p in net.parameters():
        p.stop_gradient = False
    # What comes before a norm has gradients that are nothing but rounding, of which some optimizers make large steps.
    net[0].weight.stop_gradient = net[0].bias.stop_gradient = True
    more = {"RMSProp": {"learning_rate": 0.01}, "Rprop": {"learning_rate": 0.01}, "ASGD": {"batch_num": 1}}
    optimizer = getattr(paddle.optimizer, name)(parameters=net.parameters(), **more.get(name, {}))
    for _ in range(3):
        (net(_images(paddle)) ** 2).sum().backward()
        optimizer.step()
        optimizer.clear_grad()
    kept = sorted({n.split(".")[-1] for n in optimizer.state_dict() if "." in n})
    return net[1]._mean, net[1]._variance, net[1].weight, len(optimizer._parameter_list), kept


@case(rtol=1e-3, atol=1e-4)
def an_optimizer_with_a_closure(paddle):
    net = _net(paddle)
    net[1].eval()
    optimizer = paddle.optimizer.LBFGS(learning_rate=0.1, max_iter=3, parameters=net.parameters())

    def closure():
        optimizer.clear_grad()
        loss = ((net(_images(paddle)) - 1) ** 2).mean()
        loss.backward()
        return loss

    optimizer.step(closure)
    return net[1]._mean, net[1]._variance, net[1].weight


_FORMATS = {
    "NC": ("BatchNorm1D", [1, 3], "NCL"), "NCL": ("BatchNorm1D", [1, 3, 1], "NCL"), "NLC": ("BatchNorm1D", [1, 1, 3], "NLC"),
    "NCHW": ("BatchNorm2D", [1, 3, 1, 1], "NCHW"), "NHWC": ("BatchNorm2D", [1, 1, 1, 3], "NHWC"),
    "NCDHW": ("BatchNorm3D", [1, 3, 1, 1, 1], "NCDHW"), "NDHWC": ("BatchNorm3D", [1, 1, 1, 1, 3], "NDHWC"),
}


def _one_each(paddle, layer, shape):
    values = np.array([-1.5, 2.5, 3.5], "float32").reshape(shape)
    x = paddle.to_tensor(values, stop_gradient=False)
    y = layer(x)
    (y * paddle.to_tensor(values)).sum().backward()
    affine = [p if p is None else p.grad for p in (layer.weight, layer.bias)]
    return y, x.grad, affine, layer._mean, layer._variance


@case(each=list(_FORMATS))
def a_single_element_of_each_channel(paddle, name):
    kind, shape, data_format = _FORMATS[name]
    half = paddle.nn.initializer.Constant(0.5)
    layer = getattr(paddle.nn, kind)(3, weight_attr=half, bias_attr=half, data_format=data_format)
    return _one_each(paddle, layer, shape)


def a_single_element_without_affine(paddle):
    return _one_each(paddle, paddle.nn.BatchNorm1D(3, weight_attr=False, bias_attr=False), [1, 3])


def a_single_element_and_an_activation(paddle):
    return _one_each(paddle, paddle.nn.BatchNorm(3, act="relu"), [1, 3])


@case(each=["eval", "global"])
def a_single_element_by_known_statistics(paddle, how):
    layer = paddle.nn.BatchNorm1D(3, use_global_stats=how == "global" or None)
    if how == "eval":
        layer.eval()
    return _one_each(paddle, layer, [1, 3])[0]


def a_single_element_in_a_function(paddle):
    mean, variance, x = paddle.zeros([3]), paddle.ones([3]), paddle.to_tensor([[1.5, 2.5, 3.5]])
    y = paddle.nn.functional.batch_norm(x, mean, variance, training=True)
    y[0, 0] = 7.0
    return y, x, mean, variance


def a_step_after_a_single_element(paddle):
    layer = paddle.nn.BatchNorm1D(3)
    optimizer = paddle.optimizer.SGD(0.1, parameters=layer.parameters(), weight_decay=0.1)
    layer(paddle.to_tensor([[1.5, 2.5, 3.5]], stop_gradient=False)).sum().backward()
    optimizer.step()
    return layer.weight, layer.bias


@case(right=[0.0, 0.0, 0.0], because="the bias has no part in the result, and none where x gets a gradient either")
def a_single_element_that_gets_no_gradient(paddle):
    layer = paddle.nn.BatchNorm1D(3)
    layer(paddle.to_tensor([[1.5, 2.5, 3.5]])).sum().backward()
    return layer.bias.grad.tolist()
