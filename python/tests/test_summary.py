"""Tables of layers and of work."""

import re

import pytest

import sampan
from sampan import nn
from sampan.static import InputSpec


class Net(nn.Layer):
    """Two inputs, a norm, a layer used twice."""

    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(nn.Conv2D(1, 6, 3, padding=1), nn.BatchNorm2D(6), nn.ReLU(), nn.MaxPool2D(2, 2))
        self.fc = nn.Linear(294, 294)

    def forward(self, x, y):
        x = sampan.flatten(self.features(x), 1)
        return self.fc(self.fc(x) + y)


def test_the_table_is_paddles(capsys):
    net = nn.Sequential(nn.Conv2D(3, 4, 3), nn.BatchNorm2D(4))
    net[0].weight.stop_gradient = True
    info = sampan.summary(net, (2, 3, 8, 8))
    lines = capsys.readouterr().out.splitlines()
    # The columns are as wide as the longest name, which counts the layers made before.
    width = len(lines[0])
    assert width >= 75 and lines[0] == "-" * width and lines[2] == "=" * width
    assert lines[1].split()[:2] == ["Layer", "(type)"]
    name, inputs, output, params = re.split(r"  +", lines[3].strip())
    assert name.startswith("Conv2D-") and (inputs, output, params) == ("[[2, 3, 8, 8]]", "[2, 4, 6, 6]", "112")
    assert lines[4].split()[-1] == "16"
    assert lines[6:9] == ["Total params: 128", "Trainable params: 12", "Non-trainable params: 116"]
    assert info == {"total_params": 128, "trainable_params": 12}


def test_several_inputs_and_a_shared_layer(capsys):
    net = Net()
    net.train()
    state = sampan.get_rng_state()[0].state
    info = sampan.summary(net, [(1, 1, 14, 14), (1, 294)], dtypes=["float32", "float32"])
    assert capsys.readouterr().out.count("Linear-") == 1
    assert info["total_params"] == 6 * 9 + 6 + 4 * 6 + 294 * 295
    assert net.training and net.features[1].training
    assert sampan.get_rng_state()[0].state == state
    assert not net.fc._hooked


@pytest.mark.parametrize(
    "size",
    [
        (1, 4),
        [(1, 4)],
        InputSpec([None, 4], "float32", "x"),
        [InputSpec([-1, 4], "float32", "x")],
        (None, 4),
        [(-1, 4)],
    ],
)
def test_ways_to_say_a_size(size, capsys):
    assert sampan.summary(nn.Linear(4, 3), size)["total_params"] == 15
    assert "[[1, 4]]" in capsys.readouterr().out


def test_inputs_in_a_list_or_a_dict(capsys):
    class FromList(nn.Layer):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(4, 3)

        def forward(self, inputs):
            values = list(inputs.values()) if isinstance(inputs, dict) else inputs
            return self.fc(values[0] + values[1])

    pair = [sampan.ones([2, 4]), sampan.ones([2, 4])]
    assert sampan.summary(FromList(), input=pair)["total_params"] == 15
    assert sampan.summary(FromList(), input={"a": pair[0], "b": pair[1]})["total_params"] == 15


def test_whole_numbers_are_good_for_an_embedding(capsys):
    net = nn.Sequential(nn.Embedding(10, 4), nn.Linear(4, 2))
    assert sampan.summary(net, (1, 5), dtypes="int64")["total_params"] == 50


def test_recurrent_networks_have_one_row(capsys):
    class Reader(nn.Layer):
        def __init__(self):
            super().__init__()
            self.lstm, self.fc = nn.LSTM(8, 16), nn.Linear(16, 2)

        def forward(self, x):
            return self.fc(self.lstm(x)[0][:, -1])

    # As Paddle counts it.
    assert sampan.summary(Reader(), (2, 5, 8))["total_params"] == 1698
    out = capsys.readouterr().out
    assert "RNN" not in out and "[[2, 5, 16], [[1, 2, 16], [1, 2, 16]]]" in out
    assert sampan.summary(nn.LSTM(8, 16, 2), (2, 5, 8))["total_params"] == 3840


def test_layers_inside_layers_of_the_core_are_seen(capsys):
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 2, 32), 2)
    assert sampan.summary(encoder, (2, 5, 16))["total_params"] == 4448
    assert capsys.readouterr().out.count("Linear-") == 12
    assert sampan.flops(encoder, [2, 5, 16]) == 2 * 10 * (4 * 16 * 16 + 2 * 16 * 32)


@pytest.mark.parametrize(
    ("size", "message"), [((None, None), "only the extent of the batch"), ((0, 4), "greater than zero"), ("4", "tuple")]
)
def test_wrong_sizes(size, message):
    with pytest.raises((ValueError, TypeError), match=message):
        sampan.summary(nn.Linear(4, 3), size)
    with pytest.raises(ValueError, match="at the same time"):
        sampan.summary(nn.Linear(4, 3))


def test_an_error_in_the_network_leaves_it_as_it_was():
    net = Net()
    with pytest.raises(ValueError):
        sampan.summary(net, [(1, 2, 14, 14), (1, 294)])
    assert net.training and not net.fc._hooked


def test_flops_of_lenet_are_paddles(capsys):
    # The figures of Paddle's own documentation.
    features = nn.Sequential(
        nn.Conv2D(1, 6, 3, padding=1), nn.ReLU(), nn.MaxPool2D(2, 2), nn.Conv2D(6, 16, 5), nn.ReLU(), nn.MaxPool2D(2, 2)
    )
    net = nn.Sequential(features, nn.Flatten(), nn.Linear(400, 120), nn.Linear(120, 84), nn.Linear(84, 10))
    assert sampan.flops(net, [1, 1, 28, 28], print_detail=True) == 347560
    out = capsys.readouterr().out
    assert "Total Flops: 347560     Total Params: 61610" in out
    assert "Cannot find suitable count function for <class 'sampan.nn.MaxPool2D'>. Treat it as zero FLOPs." in out
    assert [line for line in out.splitlines() if "conv2d_" in line and "241600" in line]


def test_flops_of_other_layers():
    net = nn.Sequential(nn.Conv2D(4, 8, 3, groups=2), nn.BatchNorm2D(8), nn.AvgPool2D(2), nn.AdaptiveAvgPool2D(1))
    # 8*6*6 outputs of 2*9 products and a bias; two for each normalized element; one a mean; 9 sums and a division.
    assert sampan.flops(net, [1, 4, 8, 8]) == 288 * 19 + 2 * 288 + 72 + 8 * 10
    up = nn.Sequential(nn.Conv2DTranspose(4, 6, 3, groups=2))
    assert sampan.flops(up, [1, 4, 5, 5]) == 6 * 49 * (2 * 9 + 1)


def test_flops_with_a_rule_of_ones_own(capsys):
    def count(layer, inputs, output):
        layer.total_ops += int(inputs[0].numel()) * 5

    net = nn.Sequential(nn.Tanh(), nn.Linear(4, 3))
    assert sampan.flops(net, [2, 4], custom_ops={nn.Tanh: count}) == 2 * 4 * 5 + 2 * 3 * 4
    assert "Customize Function has been applied to <class 'sampan.nn.Tanh'>" in capsys.readouterr().out
    assert not hasattr(net[0], "total_ops")
