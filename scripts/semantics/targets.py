"""Which losses train what made their targets and weights."""
import numpy as np

from . import case

_INPUTS = np.linspace(0.15, 0.85, 12, dtype="float32").reshape(3, 4)
_TARGETS = np.linspace(0.9, 0.2, 12, dtype="float32").reshape(3, 4) ** 2
_WEIGHTS = np.linspace(0.4, 1.7, 12, dtype="float32").reshape(3, 4)
_SHARES = _TARGETS / _TARGETS.sum(1, keepdims=True)
_SIGNS = np.where(np.arange(12).reshape(3, 4) % 3 == 0, -1, 1).astype("float32")
_CLASSES = np.array([0, 2, 3])


def _gradients(paddle, loss, *arrays):
    leaves = [paddle.to_tensor(a, stop_gradient=False) for a in arrays]
    loss(paddle.nn.functional, *leaves).sum().backward()
    return [t.grad for t in leaves]


_OF_TARGETS = {
    "binary_cross_entropy": lambda F, x, y: F.binary_cross_entropy(x, y),
    "binary_cross_entropy_with_logits": lambda F, x, y: F.binary_cross_entropy_with_logits(x, y),
    "kl_div": lambda F, x, y: F.kl_div(x, y),
    "kl_div, none": lambda F, x, y: F.kl_div(x, y, "none"),
    "kl_div, batchmean": lambda F, x, y: F.kl_div(x, y, "batchmean"),
    "kl_div, log_target": lambda F, x, y: F.kl_div(x, y, log_target=True),
    "sigmoid_focal_loss": lambda F, x, y: F.sigmoid_focal_loss(x, y),
    "mse_loss": lambda F, x, y: F.mse_loss(x, y),
    "l1_loss": lambda F, x, y: F.l1_loss(x, y),
    "smooth_l1_loss": lambda F, x, y: F.smooth_l1_loss(x, y),
    "square_error_cost": lambda F, x, y: F.square_error_cost(x, y),
    "soft_margin_loss": lambda F, x, y: F.soft_margin_loss(x, y),
    "multi_label_soft_margin_loss": lambda F, x, y: F.multi_label_soft_margin_loss(x, y),
    "poisson_nll_loss": lambda F, x, y: F.poisson_nll_loss(x, y, full=True),
}


@case(each=list(_OF_TARGETS))
def of_targets(paddle, name):
    return _gradients(paddle, _OF_TARGETS[name], _INPUTS, _TARGETS)


@case(each=["BCELoss", "BCEWithLogitsLoss", "KLDivLoss"])
def of_targets_of_a_layer(paddle, name):
    return _gradients(paddle, lambda F, x, y: getattr(paddle.nn, name)()(x, y), _INPUTS, _TARGETS)


_OF_SHARES = {
    "cross_entropy": lambda F, x, y: F.cross_entropy(x, y, soft_label=True),
    "cross_entropy, smoothed": lambda F, x, y: F.cross_entropy(x, y, soft_label=True, label_smoothing=0.1),
    "cross_entropy, of probabilities": lambda F, x, y: F.cross_entropy(x, y, soft_label=True, use_softmax=False),
    "softmax_with_cross_entropy": lambda F, x, y: F.softmax_with_cross_entropy(x, y, soft_label=True),
}


@case(each=list(_OF_SHARES))
def of_soft_labels(paddle, name):
    return _gradients(paddle, _OF_SHARES[name], _INPUTS, _SHARES)


def of_soft_labels_by_their_weights(paddle):
    loss = lambda F, x, y, w: F.cross_entropy(x, y, weight=w, soft_label=True)
    return _gradients(paddle, loss, _INPUTS, _SHARES, _WEIGHTS[0])


_OF_WEIGHTS = {
    "binary_cross_entropy": lambda F, x, y, w: F.binary_cross_entropy(x, y, w),
    "binary_cross_entropy_with_logits": lambda F, x, y, w: F.binary_cross_entropy_with_logits(x, y, w),
    "pos_weight": lambda F, x, y, w: F.binary_cross_entropy_with_logits(x, y, pos_weight=w[0]),
    "multi_label_soft_margin_loss": lambda F, x, y, w: F.multi_label_soft_margin_loss(x, y, w),
}


@case(each=list(_OF_WEIGHTS))
def of_weights(paddle, name):
    return _gradients(paddle, _OF_WEIGHTS[name], _INPUTS, _TARGETS, _WEIGHTS)


@case(each=["cross_entropy", "nll_loss", "multi_margin_loss"])
def of_weights_of_classes(paddle, name):
    labels = paddle.to_tensor(_CLASSES)
    loss = lambda F, x, w: getattr(F, name)(x, labels, weight=w)
    return _gradients(paddle, loss, _INPUTS, _WEIGHTS[0])


def of_a_normalizer(paddle):
    loss = lambda F, x, y, n: F.sigmoid_focal_loss(x, y, n)
    return _gradients(paddle, loss, _INPUTS, _TARGETS, np.array([2], "float32"))


def log_loss(paddle):
    return _gradients(paddle, lambda F, x, y: F.log_loss(x, y), _INPUTS[:, :1], _TARGETS[:, :1])


def margin_ranking_loss(paddle):
    return _gradients(paddle, lambda F, x, y, s: F.margin_ranking_loss(x, y, s, 0.1), _INPUTS, _TARGETS, _SIGNS)


def hinge_embedding_loss(paddle):
    return _gradients(paddle, lambda F, x, s: F.hinge_embedding_loss(x, s), _INPUTS, _SIGNS)


def cosine_embedding_loss(paddle):
    return _gradients(paddle, lambda F, x, y, s: F.cosine_embedding_loss(x, y, s), _INPUTS, _TARGETS, _SIGNS[:, 0])


def npair_loss(paddle):
    same = np.array([0, 1, 0], "float32")
    return _gradients(paddle, lambda F, x, y, s: F.npair_loss(x, y, s), _INPUTS, _TARGETS, same)


def label_smooth(paddle):
    return _gradients(paddle, lambda F, y, prior: F.label_smooth(y, prior), _SHARES, _SHARES[:1])
