"""The faults: what is planted, in which network, where it is, and why the sides then part.

`where` is the layer at fault, or `layer/` for the calls of functions in the layer's own `forward`, `*` for any beginning;
for what is around the network it is the part: `loss`, `optimizer`, `learning rate`, `data`, `initialisation`. A bar
separates places where a fault is in several, and the words of the tool's catalogue that say the cause.
"""

from __future__ import annotations

import dataclasses
from typing import Callable

import numpy as np


@dataclasses.dataclass
class Fault:
    """One difference between two implementations."""

    name: str
    network: str
    where: str
    cause: str
    knobs: dict = dataclasses.field(default_factory=dict)
    # Changes the finished network, which has its weights.
    plant: Callable | None = None
    # Changes of the candidate's training: `loss`, `optimizer`, `schedule`, `clip`, `data`, `init`.
    training: dict = dataclasses.field(default_factory=dict)
    train_mode: bool = False
    # Written when the tool was finished, and not looked at while it was made.
    held_out: bool = False


def layer_of(net, path: str):
    for name in filter(None, path.split(".")):
        net = getattr(net, name) if not name.isdigit() else net[int(name)]
    return net


def changed(path: str, change: Callable) -> Callable:
    """Changes the values of one parameter."""

    def plant(net):
        owner, _, name = path.rpartition(".")
        parameter = getattr(layer_of(net, owner), name)
        parameter.set_value(np.ascontiguousarray(change(parameter.numpy())))

    return plant


def forgotten(*paths: str) -> Callable:
    """Weights that were never loaded: random ones of the same size."""

    def plant(net):
        for i, path in enumerate(paths):
            draw = np.random.default_rng(i).standard_normal
            changed(path, lambda a: (draw(a.shape) * (a.std() or 0.1)).astype("float32"))(net)

    return plant


def swapped(first: str, second: str) -> Callable:
    def plant(net):
        a, b = layer_of(net, first), layer_of(net, second)
        kept = a.weight.numpy().copy(), a.bias.numpy().copy()
        a.weight.set_value(b.weight.numpy()), a.bias.set_value(b.bias.numpy())
        b.weight.set_value(kept[0]), b.bias.set_value(kept[1])

    return plant


def training(path: str) -> Callable:
    """One layer that evaluation forgot."""
    return lambda net: layer_of(net, path).train()


def fresh_statistics(path: str) -> Callable:
    def plant(net):
        changed(f"{path}._mean", np.zeros_like)(net)
        changed(f"{path}._variance", np.ones_like)(net)

    return plant


def gates(path: str, order: list[int]) -> Callable:
    def plant(net):
        for name in ("weight_ih_l0", "weight_hh_l0", "bias_ih_l0", "bias_hh_l0"):
            changed(f"{path}.{name}", lambda a: np.concatenate([np.split(a, len(order))[i] for i in order]))(net)

    return plant


WEIGHTS = "weights_not_loaded|weights_changed"
FAULTS = [
    # LeNet
    Fault("average pool counts the padding", "LeNet", "pool1", "avgpool_exclusive", {"pool1.exclusive": False}),
    Fault("reflected instead of zero padding", "LeNet", "conv1", "padding_mode", {"conv1.padding_mode": "reflect"}),
    Fault("average instead of maximum", "LeNet", "pool2", "pool_type", {"pool2.average": True}),
    Fault("square weight not transposed", "LeNet", "fc2", "linear_transposed", plant=changed("fc2.weight", np.transpose)),
    Fault("weights of one layer not loaded", "LeNet", "fc1", WEIGHTS, plant=forgotten("fc1.weight", "fc1.bias")),
    Fault("a bias is missing", "LeNet", "fc3", "bias_missing", {"fc3.bias_attr": False}),
    Fault("channels last before flatten", "LeNet", "/", "flatten_order|axis_order", {"flatten.nhwc": True}),
    Fault("relu instead of tanh", "LeNet", "/", "activation_type", {"fc2.relu": True}),
    Fault("a softmax before the cross entropy", "LeNet", "/", "layer_extra|softmax_extra|axis_order|element_order", {"softmax": True}),
    Fault("the loss is summed", "LeNet", "loss", "loss_reduction", training={"loss": {"reduction": "sum"}}),
    Fault("labels are smoothed", "LeNet", "loss", "label_smoothing", training={"loss": {"label_smoothing": 0.1}}),
    Fault("Nesterov's momentum", "LeNet", "optimizer", "nesterov", training={"optimizer": {"use_nesterov": True}}),
    Fault("kernel upside down", "LeNet", "conv2", WEIGHTS, plant=changed("conv2.weight", lambda a: a[:, :, ::-1])),
    Fault("images normalised by other constants", "LeNet", "data", "normalisation_constants", training={"data": {"mean": 0.5, "std": 0.5}}),
    # AlexNet
    Fault("dropout scales in evaluation", "AlexNet", "classifier.0|classifier.3", "dropout_mode", {"dropout.mode": "downscale_in_infer"}),
    Fault("padding of the first convolution", "AlexNet", "features.0", "padding_size", {"features.0.padding": 3}),
    Fault("another slope of the leaky relu", "AlexNet", "features.6", "activation_slope", {"features.6.slope": 0.1}),
    Fault("a dilated convolution", "AlexNet", "features.7", "dilation|padding_size", {"features.7.dilation": 2}),
    Fault("elu instead of relu", "AlexNet", "features.8", "activation_type", {"features.8.elu": True}),
    Fault("adaptive maximum instead of mean", "AlexNet", "avgpool", "pool_type", {"avgpool.max": True}),
    Fault("dropout stays in training mode", "AlexNet", "classifier.3", "train_eval_mode", plant=training("classifier.3")),
    Fault("bias not loaded", "AlexNet", "classifier.4", WEIGHTS, plant=changed("classifier.4.bias", np.zeros_like)),
    Fault("square weight not transposed, inside", "AlexNet", "classifier.4", "linear_transposed", plant=changed("classifier.4.weight", np.transpose)),
    Fault("red and blue swapped", "AlexNet", "data", "channel_order", training={"data": {"bgr": True}}),
    # ResNet18
    Fault("another epsilon of a batch norm", "ResNet18", "layer2.0.bn1", "bn_epsilon|layernorm_epsilon", {"layer2.0.bn1.epsilon": 1e-2}),
    Fault("momentum of batch norms as in PyTorch", "ResNet18", "bn1|*.bn1|*.bn2|*.downsample.1", "bn_momentum", {"bn.momentum": 0.1}, train_mode=True),
    Fault("stride in the second convolution", "ResNet18", "layer3.0.conv1|layer3.0.conv2", "stride", {"layer3.0.stride_late": True}),
    Fault("dilation inside of a block", "ResNet18", "layer4.1.conv2", "dilation|padding_size", {"layer4.1.conv2.dilation": 2}),
    Fault("a residual is dropped", "ResNet18", "layer3.1/", "residual_missing", {"layer3.1.residual_dropped": True}),
    Fault("relu before the sum", "ResNet18", "layer2.1/|layer2.1.relu", "layer_order|activation_order", {"layer2.1.relu_before_add": True}),
    Fault("a relu is missing", "ResNet18", "layer1.1/|layer1.1.relu", "activation_missing", {"layer1.1.relu_missing": True}),
    Fault("pooling rounds up", "ResNet18", "maxpool", "ceil_mode", {"maxpool.ceil_mode": True}),
    Fault("a batch norm stays in training mode", "ResNet18", "layer1.0.bn2", "train_eval_mode", plant=training("layer1.0.bn2")),
    Fault("statistics not loaded", "ResNet18", "layer2.0.bn2", WEIGHTS, plant=fresh_statistics("layer2.0.bn2")),
    Fault("weight of a batch norm not loaded", "ResNet18", "layer4.0.bn1", WEIGHTS, plant=changed("layer4.0.bn1.weight", np.ones_like)),
    Fault("decay of biases and norms too", "ResNet18", "optimizer", "weight_decay_on_bias_norm", training={"optimizer": {"decay_all": True}}),
    Fault("another weight decay", "ResNet18", "optimizer", "weight_decay", training={"optimizer": {"weight_decay": 1e-2}}),
    Fault("another momentum", "ResNet18", "optimizer", "momentum|optimizer_setting", training={"optimizer": {"momentum": 0.8}}),
    Fault("learning rate by epoch, not by step", "ResNet18", "learning rate", "lr_per_epoch_or_step", training={"schedule": {"per": "epoch"}}),
    Fault("learning rate decays by another factor", "ResNet18", "learning rate", "lr_schedule|lr_scaled", training={"schedule": {"gamma": 0.5}}),
    Fault("gradients clipped by value", "ResNet18", "optimizer", "gradient_clipping|clip_value", training={"clip": "value"}),
    Fault("gradients not clipped", "ResNet18", "optimizer", "gradient_clipping|clip_value", training={"clip": None}),
    # MobileNetV3
    Fault("swish instead of hardswish", "MobileNetV3", "act", "activation_type", {"act.swish": True}),
    Fault("relu instead of relu6", "MobileNetV3", "blocks.0.expand.act|blocks.0.depthwise.act", "activation_type", {"blocks.0.act": "relu"}),
    Fault("another slope of the hard sigmoid", "MobileNetV3", "blocks.0.se/|blocks.2.se/|blocks.3.se/|blocks.4.se/", "activation_slope", {"se.slope": 0.2}),
    Fault("sigmoid instead of hard sigmoid", "MobileNetV3", "blocks.0.se/|blocks.2.se/|blocks.3.se/|blocks.4.se/", "activation_type", {"se.sigmoid": True}),
    Fault("epsilon of all batch norms", "MobileNetV3", "*.bn|stem.bn", "bn_epsilon|layernorm_epsilon", {"mobile.epsilon": 1e-5}),
    Fault("squeeze and excitation left out", "MobileNetV3", "blocks.3.se|blocks.3.se/|blocks.3.se.fc1|blocks.3.se.fc2", "layer_missing|block_missing|norm_missing", {"blocks.3.se_missing": True}),
    Fault("activation after a linear bottleneck", "MobileNetV3", "blocks.2.project.act", "activation_type|activation_extra", {"blocks.2.project.act": True}),
    Fault("residual dropped", "MobileNetV3", "blocks.4/", "residual_missing", {"blocks.4.residual_dropped": True}),
    Fault("momentum of batch norms", "MobileNetV3", "*.bn|stem.bn", "bn_momentum", {"mobile.momentum": 0.9}, train_mode=True),
    # LSTM
    Fault("padding index", "LSTMClassifier", "embedding", "embedding_padding", {"embedding.padding_idx": 1}),
    Fault("gates in another order", "LSTMClassifier", "lstm", "gate_order", plant=gates("lstm", [0, 1, 3, 2])),
    Fault("gates of the GRU in another order", "LSTMClassifier", "gru", "gate_order", plant=gates("gru", [1, 0, 2])),
    Fault("recurrent bias not loaded", "LSTMClassifier", "lstm", WEIGHTS, plant=changed("lstm.bias_hh_l1", np.zeros_like)),
    Fault("time and batch swapped", "LSTMClassifier", "/|lstm", "rnn_batch_first|axis_order", {"lstm.time_first": True}),
    Fault("the sequence is reversed in between", "LSTMClassifier", "/", "layer_extra|softmax_extra|axis_order|element_order", {"lstm.reversed": True}),
    Fault("mean instead of the last step", "LSTMClassifier", "/", "layer_type|layer_extra|reduction_type", {"pooling": "mean"}),
    Fault("first instead of the last step", "LSTMClassifier", "/", "index|off_by_one|element_order", {"pooling": "first"}),
    Fault("epsilon of a layer norm", "LSTMClassifier", "norm", "bn_epsilon|layernorm_epsilon", {"norm.epsilon": 1e-2}),
    Fault("layer norm left out", "LSTMClassifier", "norm", "layer_missing|norm_missing", {"norm.missing": True}),
    Fault("another epsilon of Adam", "LSTMClassifier", "optimizer", "adam_epsilon", training={"optimizer": {"epsilon": 1e-3}}),
    Fault("another beta of Adam", "LSTMClassifier", "optimizer", "adam_betas", training={"optimizer": {"beta2": 0.99}}),
    Fault("decay as in AdamW instead of Adam", "LSTMClassifier", "optimizer", "adamw_or_adam|optimizer_type", training={"optimizer": {"kind": "AdamW"}}),
    Fault("a class is ignored in the loss", "LSTMClassifier", "loss", "ignore_index", training={"loss": {"ignore_index": 1}}),
    # Transformer
    Fault("scores are not scaled", "Transformer", "encoder.0.attn/", "attention_scale|constant|scale", {"encoder.0.attn.scale_missing": True}),
    Fault("scores scaled by the whole width", "Transformer", "decoder.0.self_attn/", "attention_scale|constant|scale", {"decoder.0.self_attn.scale_width": 32}),
    Fault("mask not applied", "Transformer", "decoder.1.self_attn/", "mask_missing|mask_value|mask_extra|attention_mask", {"decoder.1.self_attn.mask_missing": True}),
    Fault("mask of the wrong triangle", "Transformer", "/", "mask_missing|mask_value|mask_extra|attention_mask", {"mask.flipped": True}),
    Fault("mask with the wrong sign", "Transformer", "/", "mask_value|attention_mask|sign", {"mask.value": 1e9}),
    Fault("mask off by one", "Transformer", "/", "mask_missing|mask_value|attention_mask|off_by_one", {"mask.diagonal": 2}),
    Fault("softmax over the wrong axis", "Transformer", "decoder.0.cross_attn/", "softmax_axis", {"decoder.0.cross_attn.softmax_axis": -2}),
    Fault("heads split the other way", "Transformer", "encoder.1.attn/", "reshape_order|axis_order|element_order", {"encoder.1.attn.heads_last": True}),
    Fault("attention to itself instead of the source", "Transformer", "decoder.0.cross_attn/", "other_input|layer_input", {"decoder.0.cross_attn.memory_is_x": True}),
    Fault("norm before instead of after", "Transformer", "encoder.0/", "layer_order|activation_order", {"encoder.0.pre_norm": True}),
    Fault("gelu by tanh", "Transformer", "encoder.1/", "gelu_approximation", {"encoder.1.gelu_tanh": True}),
    Fault("gelu instead of relu", "Transformer", "decoder.1/", "activation_type", {"decoder.1.gelu": True}),
    Fault("residual of a feed-forward dropped", "Transformer", "encoder.1/", "residual_missing", {"encoder.1.residual_dropped": True}),
    Fault("embedding not scaled", "Transformer", "/", "layer_missing|residual_missing|affine|scale", {"embed.unscaled": True}),
    Fault("positions left out", "Transformer", "/", "layer_missing|residual_missing|affine|scale", {"embed.no_position": True}),
    Fault("positions off by one", "Transformer", "/", "index|off_by_one|element_order", {"embed.shift": 1}),
    Fault("epsilon of one layer norm", "Transformer", "encoder.0.norm1", "bn_epsilon|layernorm_epsilon", {"encoder.0.norm1.epsilon": 1e-2}),
    Fault("query and key swapped", "Transformer", "encoder.0.attn.q|encoder.0.attn.k", WEIGHTS, plant=swapped("encoder.0.attn.q", "encoder.0.attn.k")),
    Fault("projection not transposed", "Transformer", "decoder.1.cross_attn.out", "linear_transposed", plant=changed("decoder.1.cross_attn.out.weight", np.transpose)),
    # ViT
    Fault("gelu by tanh in a layer", "ViT", "blocks.1.act", "gelu_approximation", {"blocks.1.gelu_tanh": True}),
    Fault("epsilon of a layer norm, inside", "ViT", "blocks.2.norm2", "bn_epsilon|layernorm_epsilon", {"blocks.2.norm2.epsilon": 1e-3}),
    Fault("bias of the projections missing", "ViT", "blocks.0.qkv", "bias_missing", {"blocks.0.qkv.bias_attr": False}),
    Fault("key and value in another order", "ViT", "blocks.1/", "index|off_by_one|element_order", {"blocks.1.order": (0, 2, 1)}),
    Fault("heads before projections", "ViT", "blocks.2/", "reshape_order|axis_order|element_order", {"blocks.2.heads_first": True}),
    Fault("another scale of scores", "ViT", "blocks.0/", "attention_scale|constant|scale", {"blocks.0.scale": 48**-0.5}),
    Fault("norm after instead of before", "ViT", "blocks.1/", "layer_order|activation_order", {"blocks.1.post_norm": True}),
    Fault("corners aligned", "ViT", "/", "align_corners", {"positions.align_corners": True}),
    Fault("nearest instead of bilinear", "ViT", "/", "interpolation_mode", {"positions.mode": "nearest"}),
    Fault("patches column by column", "ViT", "/", "axis_order|element_order|flatten_order", {"patch.columns": True}),
    Fault("class token at the end", "ViT", "/", "concat_order|axis_order|element_order|concat_axis", {"cls.last": True}),
    Fault("position embedding left out", "ViT", "/", "layer_missing|residual_missing|affine|scale", {"positions.missing": True}),
    Fault("mean over tokens instead of the class token", "ViT", "/", "layer_type|layer_extra|reduction_type", {"pool.mean": True}),
    Fault("last norm left out", "ViT", "norm", "layer_missing|norm_missing", {"norm.missing": True}),
    Fault("class token not loaded", "ViT", "/|cls_token", WEIGHTS, plant=forgotten("cls_token")),
    Fault("AdamW decays nothing", "ViT", "optimizer", "weight_decay", training={"optimizer": {"weight_decay": 0.0}}),
    Fault("learning rate without warm-up", "ViT", "learning rate", "lr_schedule|lr_scaled", training={"schedule": {"warmup": 0}}),
    Fault("weights begin uniform instead of normal", "ViT", "initialisation", "initializer", training={"init": "uniform"}),
    Fault("weights begin with another deviation", "ResNet18", "initialisation", "initializer", training={"init": "wide"}),
]


def halves_swapped(a: np.ndarray) -> np.ndarray:
    return np.concatenate(np.split(a, 2)[::-1])


def in_halves(a: np.ndarray) -> np.ndarray:
    return np.concatenate([a[:, 0::2], a[:, 1::2]], axis=1)


HELD_OUT = [
    Fault("the first relu is missing", "LeNet", "/|conv1|pool1", "activation_missing", {"conv1.relu_missing": True}),
    Fault("a softmax inside of the loss", "LeNet", "loss|(program)/", "softmax_extra|layer_extra|loss_type|loss_input", training={"loss": {"probabilities": True}}),
    Fault("ten times the learning rate", "LeNet", "learning rate|optimizer", "lr_scaled|update_scaled", training={"optimizer": {"rate": 10}}),
    Fault("images mirrored", "AlexNet", "data", "reversed|mirrored|axis_order|element_order", training={"data": {"mirrored": True}}),
    Fault("pixels from 0 to 255", "AlexNet", "data", "normalisation_constants|value_range", training={"data": {"bytes": True}}),
    Fault("samples in another order", "AlexNet", "data", "sample_order", training={"data": {"shuffled": True}}),
    Fault("another stride of a pool", "AlexNet", "features.2", "pool_stride", {"features.2.stride": 1}),
    Fault("groups of a convolution swapped", "AlexNet", "features.5", WEIGHTS, plant=changed("features.5.weight", halves_swapped)),
    Fault("relu on the shortcut", "ResNet18", "layer3.0/", "activation_extra|layer_extra", {"layer3.0.identity_relu": True}),
    Fault("no momentum at all", "ResNet18", "optimizer", "momentum|optimizer_type", training={"optimizer": {"kind": "SGD"}}),
    Fault("statistics of the shortcut not loaded", "ResNet18", "layer4.0.downsample.1", WEIGHTS, plant=fresh_statistics("layer4.0.downsample.1")),
    Fault("hardswish inside of squeeze and excitation", "MobileNetV3", "blocks.0.se/|blocks.2.se/|blocks.3.se/|blocks.4.se/", "activation_type", {"se.hardswish": True}),
    Fault("one batch norm in training mode", "MobileNetV3", "blocks.3.depthwise.bn", "train_eval_mode", plant=training("blocks.3.depthwise.bn")),
    Fault("input of the GRU halved", "LSTMClassifier", "/", "scale|constant|layer_extra", {"gru.halved": True}),
    Fault("first beta of Adam", "LSTMClassifier", "optimizer", "adam_betas", training={"optimizer": {"beta1": 0.8}}),
    Fault("one weight of the GRU not loaded", "LSTMClassifier", "gru", WEIGHTS, plant=forgotten("gru.weight_hh_l0")),
    Fault("sines and cosines in halves", "Transformer", "/|position", "axis_order|element_order|weights_changed|weights_not_loaded", plant=changed("position", in_halves)),
    Fault("a norm of the decoder is missing", "Transformer", "decoder.1/|decoder.1.norm2", "norm_missing|layer_missing", {"decoder.1.norm2_missing": True}),
    Fault("layers of the encoder run backwards", "Transformer", "/|encoder.0/|encoder.1/", "layer_order", {"encoder.backwards": True}),
    Fault("residual of an attention dropped", "ViT", "blocks.1/", "residual_missing", {"blocks.1.residual_dropped": True}),
    Fault("last matrix not loaded", "ViT", "head", WEIGHTS, plant=forgotten("head.weight")),
    Fault("positions not loaded", "ViT", "/|pos_embed", WEIGHTS, plant=forgotten("pos_embed")),
]
for fault in HELD_OUT:
    fault.held_out = True
FAULTS += HELD_OUT
