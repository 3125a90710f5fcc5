"""The same seven networks in Paddle's words, with places where a fault can be planted.

`paddle` is an argument: sampan, or the real one. A place asks `k(name, default)`; a fault gives another value.
"""

from __future__ import annotations

import math


class Knobs(dict):
    """What a fault changes."""

    def __init__(self, changed: dict):
        super().__init__(changed)
        self.asked: set[str] = set()

    def __call__(self, name, default):
        self.asked.add(name)
        return self.get(name, default)


def networks(paddle, k: Knobs) -> dict:
    nn, F = paddle.nn, paddle.nn.functional

    class LeNet(nn.Layer):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2D(1, 6, 5, padding=2, padding_mode=k("conv1.padding_mode", "zeros"))
            self.pool1 = nn.AvgPool2D(3, stride=2, padding=1, exclusive=k("pool1.exclusive", True))
            self.conv2 = nn.Conv2D(6, 16, 5)
            self.pool2 = nn.AvgPool2D(2) if k("pool2.average", False) else nn.MaxPool2D(2)
            self.fc1 = nn.Linear(400, 84)
            self.fc2 = nn.Linear(84, 84)
            self.fc3 = nn.Linear(84, 10, bias_attr=k("fc3.bias_attr", None))

        def forward(self, x):
            x = self.conv1(x)
            x = self.pool1(x if k("conv1.relu_missing", False) else F.relu(x))
            x = self.pool2(F.relu(self.conv2(x)))
            if k("flatten.nhwc", False):
                x = x.transpose([0, 2, 3, 1])
            x = paddle.flatten(x, 1)
            x = F.relu(self.fc1(x))
            x = F.relu(self.fc2(x)) if k("fc2.relu", False) else paddle.tanh(self.fc2(x))
            x = self.fc3(x)
            return F.softmax(x, axis=1) if k("softmax", False) else x

    class AlexNet(nn.Layer):
        def __init__(self):
            super().__init__()
            dropout = dict(mode=k("dropout.mode", "upscale_in_train"))
            self.features = nn.Sequential(
                nn.Conv2D(3, 32, 11, stride=4, padding=k("features.0.padding", 2)),
                nn.ReLU(),
                nn.MaxPool2D(3, k("features.2.stride", 2)),
                nn.Conv2D(32, 64, 5, padding=2),
                nn.ReLU(),
                nn.Conv2D(64, 96, 3, padding=1, groups=2),
                nn.LeakyReLU(k("features.6.slope", 0.01)),
                nn.Conv2D(96, 64, 3, padding=k("features.7.dilation", 1), dilation=k("features.7.dilation", 1)),
                nn.ELU() if k("features.8.elu", False) else nn.ReLU(),
            )
            self.avgpool = nn.AdaptiveMaxPool2D(3) if k("avgpool.max", False) else nn.AdaptiveAvgPool2D(3)
            self.classifier = nn.Sequential(
                nn.Dropout(0.5, **dropout),
                nn.Linear(576, 128),
                nn.ReLU(),
                nn.Dropout(0.5, **dropout),
                nn.Linear(128, 128),
                nn.ReLU(),
                nn.Linear(128, 10),
            )

        def forward(self, x):
            x = self.avgpool(self.features(x))
            return self.classifier(paddle.flatten(x, 1))

    class BasicBlock(nn.Layer):
        def __init__(self, name, inputs, outputs, stride=1):
            super().__init__()
            late = k(f"{name}.stride_late", False)
            self.name = name
            self.conv1 = nn.Conv2D(inputs, outputs, 3, stride=1 if late else stride, padding=1, bias_attr=False)
            self.bn1 = nn.BatchNorm2D(
                outputs, epsilon=k(f"{name}.bn1.epsilon", 1e-5), momentum=k("bn.momentum", 0.9)
            )
            self.relu = nn.ReLU()
            self.conv2 = nn.Conv2D(
                outputs,
                outputs,
                3,
                stride=stride if late else 1,
                padding=k(f"{name}.conv2.dilation", 1),
                dilation=k(f"{name}.conv2.dilation", 1),
                bias_attr=False,
            )
            self.bn2 = nn.BatchNorm2D(outputs, momentum=k("bn.momentum", 0.9))
            self.downsample = None
            if stride != 1 or inputs != outputs:
                self.downsample = nn.Sequential(
                    nn.Conv2D(inputs, outputs, 1, stride=stride, bias_attr=False),
                    nn.BatchNorm2D(outputs, momentum=k("bn.momentum", 0.9)),
                )

        def forward(self, x):
            identity = x if self.downsample is None else self.downsample(x)
            if k(f"{self.name}.identity_relu", False):
                identity = F.relu(identity)
            out = self.bn1(self.conv1(x))
            if not k(f"{self.name}.relu_missing", False):
                out = self.relu(out)
            out = self.bn2(self.conv2(out))
            if k(f"{self.name}.residual_dropped", False):
                return self.relu(out)
            if k(f"{self.name}.relu_before_add", False):
                return self.relu(out) + identity
            return self.relu(out + identity)

    class ResNet18(nn.Layer):
        def __init__(self):
            super().__init__()
            self.conv1 = nn.Conv2D(3, 32, 7, stride=2, padding=3, bias_attr=False)
            self.bn1 = nn.BatchNorm2D(32, momentum=k("bn.momentum", 0.9), use_global_stats=k("bn1.global", None))
            self.relu = nn.ReLU()
            self.maxpool = nn.MaxPool2D(3, 2, padding=1, ceil_mode=k("maxpool.ceil_mode", False))
            self.layer1 = nn.Sequential(BasicBlock("layer1.0", 32, 32), BasicBlock("layer1.1", 32, 32))
            self.layer2 = nn.Sequential(BasicBlock("layer2.0", 32, 64, 2), BasicBlock("layer2.1", 64, 64))
            self.layer3 = nn.Sequential(BasicBlock("layer3.0", 64, 96, 2), BasicBlock("layer3.1", 96, 96))
            self.layer4 = nn.Sequential(BasicBlock("layer4.0", 96, 128, 2), BasicBlock("layer4.1", 128, 128))
            self.avgpool = nn.AdaptiveAvgPool2D(1)
            self.fc = nn.Linear(128, 10)

        def forward(self, x):
            x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
            x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
            return self.fc(paddle.flatten(self.avgpool(x), 1))

    class SqueezeExcite(nn.Layer):
        def __init__(self, channels, squeezed):
            super().__init__()
            self.fc1 = nn.Conv2D(channels, squeezed, 1)
            self.fc2 = nn.Conv2D(squeezed, channels, 1)

        def forward(self, x):
            scale = F.adaptive_avg_pool2d(x, 1)
            scale = F.hardswish(self.fc1(scale)) if k("se.hardswish", False) else F.relu(self.fc1(scale))
            if k("se.sigmoid", False):
                return x * F.sigmoid(self.fc2(scale))
            return x * F.hardsigmoid(self.fc2(scale), slope=k("se.slope", 1 / 6))

    class ConvBNAct(nn.Layer):
        def __init__(self, inputs, outputs, kernel, stride=1, groups=1, act=nn.Hardswish):
            super().__init__()
            self.conv = nn.Conv2D(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias_attr=False)
            self.bn = nn.BatchNorm2D(outputs, epsilon=k("mobile.epsilon", 1e-3), momentum=k("mobile.momentum", 0.99))
            self.act = act() if act else nn.Identity()

        def forward(self, x):
            return self.act(self.bn(self.conv(x)))

    class InvertedResidual(nn.Layer):
        def __init__(self, name, inputs, expanded, outputs, kernel, stride, act, se=True):
            super().__init__()
            act = {"relu": nn.ReLU, "swish": nn.Swish}.get(k(f"{name}.act", None), act)
            self.name = name
            self.expand = ConvBNAct(inputs, expanded, 1, act=act)
            self.depthwise = ConvBNAct(expanded, expanded, kernel, stride, groups=expanded, act=act)
            self.se = SqueezeExcite(expanded, expanded // 4) if se else None
            self.project = ConvBNAct(expanded, outputs, 1, act=nn.ReLU if k(f"{name}.project.act", False) else None)
            self.residual = stride == 1 and inputs == outputs

        def forward(self, x):
            out = self.depthwise(self.expand(x))
            if self.se is not None and not k(f"{self.name}.se_missing", False):
                out = self.se(out)
            out = self.project(out)
            return x + out if self.residual and not k(f"{self.name}.residual_dropped", False) else out

    class MobileNetV3(nn.Layer):
        def __init__(self):
            super().__init__()
            self.stem = ConvBNAct(3, 16, 3, 2)
            self.blocks = nn.Sequential(
                InvertedResidual("blocks.0", 16, 32, 16, 3, 1, nn.ReLU6),
                InvertedResidual("blocks.1", 16, 48, 24, 3, 2, nn.ReLU, se=False),
                InvertedResidual("blocks.2", 24, 64, 24, 5, 1, nn.Hardswish),
                InvertedResidual("blocks.3", 24, 96, 40, 5, 2, nn.Hardswish),
                InvertedResidual("blocks.4", 40, 120, 40, 3, 1, nn.Hardswish),
            )
            self.last = ConvBNAct(40, 96, 1)
            self.pool = nn.AdaptiveAvgPool2D(1)
            self.fc1 = nn.Linear(96, 128)
            self.act = nn.Swish() if k("act.swish", False) else nn.Hardswish()
            self.dropout = nn.Dropout(0.2)
            self.fc2 = nn.Linear(128, 10)

        def forward(self, x):
            x = self.pool(self.last(self.blocks(self.stem(x))))
            x = self.act(self.fc1(paddle.flatten(x, 1)))
            return self.fc2(self.dropout(x))

    class LSTMClassifier(nn.Layer):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(50, 16, padding_idx=k("embedding.padding_idx", 0))
            self.lstm = nn.LSTM(16, 24, num_layers=2, direction=k("lstm.direction", "bidirect"))
            self.gru = nn.GRU(48, 20)
            self.norm = nn.LayerNorm(20, epsilon=k("norm.epsilon", 1e-5))
            self.fc = nn.Linear(20, 10)

        def forward(self, x):
            x = self.embedding(x)
            if k("lstm.time_first", False):
                x = self.lstm(x.transpose([1, 0, 2]))[0].transpose([1, 0, 2])
            else:
                x, _ = self.lstm(x)
            if k("lstm.reversed", False):
                x = paddle.flip(x, axis=[1])
            if k("gru.halved", False):
                x = x * 0.5
            x, _ = self.gru(x)
            if not k("norm.missing", False):
                x = self.norm(x)
            how = k("pooling", "last")
            x = {"last": lambda: x[:, -1], "first": lambda: x[:, 0], "mean": lambda: x.mean(axis=1)}[how]()
            return self.fc(x)

    class Attention(nn.Layer):
        def __init__(self, name, dim, heads):
            super().__init__()
            self.name, self.heads, self.width = name, heads, dim // heads
            self.q = nn.Linear(dim, dim)
            self.k = nn.Linear(dim, dim)
            self.v = nn.Linear(dim, dim)
            self.out = nn.Linear(dim, dim)

        def split(self, x):
            if k(f"{self.name}.heads_last", False):
                return x.reshape([x.shape[0], x.shape[1], self.width, self.heads]).transpose([0, 3, 1, 2])
            return x.reshape([x.shape[0], x.shape[1], self.heads, self.width]).transpose([0, 2, 1, 3])

        def forward(self, x, memory, mask=None):
            if k(f"{self.name}.memory_is_x", False):
                memory = x
            q, keys, v = self.split(self.q(x)), self.split(self.k(memory)), self.split(self.v(memory))
            scores = paddle.matmul(q, keys, transpose_y=True)
            if not k(f"{self.name}.scale_missing", False):
                scores = scores / math.sqrt(k(f"{self.name}.scale_width", self.width))
            if mask is not None and not k(f"{self.name}.mask_missing", False):
                scores = scores + mask
            weights = F.softmax(scores, axis=k(f"{self.name}.softmax_axis", -1))
            x = paddle.matmul(weights, v).transpose([0, 2, 1, 3])
            return self.out(x.reshape([x.shape[0], x.shape[1], -1]))

    class EncoderLayer(nn.Layer):
        def __init__(self, name, dim, heads):
            super().__init__()
            self.name = name
            self.attn = Attention(f"{name}.attn", dim, heads)
            self.norm1 = nn.LayerNorm(dim, epsilon=k(f"{name}.norm1.epsilon", 1e-5))
            self.fc1 = nn.Linear(dim, 4 * dim)
            self.fc2 = nn.Linear(4 * dim, dim)
            self.norm2 = nn.LayerNorm(dim)

        def forward(self, x):
            if k(f"{self.name}.pre_norm", False):
                h = self.norm1(x)
                x = x + self.attn(h, h)
                return x + self.fc2(F.gelu(self.fc1(self.norm2(x))))
            x = self.norm1(x + self.attn(x, x))
            h = self.fc2(F.gelu(self.fc1(x), approximate=k(f"{self.name}.gelu_tanh", False)))
            return self.norm2(h if k(f"{self.name}.residual_dropped", False) else x + h)

    class DecoderLayer(nn.Layer):
        def __init__(self, name, dim, heads):
            super().__init__()
            self.name = name
            self.self_attn = Attention(f"{name}.self_attn", dim, heads)
            self.norm1 = nn.LayerNorm(dim)
            self.cross_attn = Attention(f"{name}.cross_attn", dim, heads)
            self.norm2 = nn.LayerNorm(dim)
            self.fc1 = nn.Linear(dim, 4 * dim)
            self.fc2 = nn.Linear(4 * dim, dim)
            self.norm3 = nn.LayerNorm(dim)

        def forward(self, x, memory, mask):
            x = self.norm1(x + self.self_attn(x, x, mask))
            x = x + self.cross_attn(x, memory)
            if not k(f"{self.name}.norm2_missing", False):
                x = self.norm2(x)
            act = F.gelu if k(f"{self.name}.gelu", False) else F.relu
            return self.norm3(x + self.fc2(act(self.fc1(x))))

    class Transformer(nn.Layer):
        def __init__(self, dim=32, heads=4):
            super().__init__()
            self.dim = dim
            self.embedding = nn.Embedding(40, dim)
            self.register_buffer("position", self.table(dim))
            self.encoder = nn.LayerList([EncoderLayer(f"encoder.{i}", dim, heads) for i in range(2)])
            self.decoder = nn.LayerList([DecoderLayer(f"decoder.{i}", dim, heads) for i in range(2)])
            self.head = nn.Linear(dim, 40)

        @staticmethod
        def table(dim, length=32):
            at = paddle.arange(length, dtype="float32").unsqueeze(1)
            rate = paddle.exp(paddle.arange(0, dim, 2, dtype="float32") * (-math.log(10000.0) / dim))
            return paddle.stack([paddle.sin(at * rate), paddle.cos(at * rate)], axis=2).reshape([length, dim])

        def embed(self, ids):
            x = self.embedding(ids)
            if not k("embed.unscaled", False):
                x = x * math.sqrt(self.dim)
            shift = k("embed.shift", 0)
            return x if k("embed.no_position", False) else x + self.position[shift : shift + ids.shape[1]]

        def forward(self, source, target):
            memory = self.embed(source)
            for layer in list(self.encoder)[:: -1 if k("encoder.backwards", False) else 1]:
                memory = layer(memory)
            x = self.embed(target)
            n = target.shape[1]
            mask = paddle.triu(paddle.full([n, n], k("mask.value", -1e9)), k("mask.diagonal", 1))
            if k("mask.flipped", False):
                mask = paddle.tril(paddle.full([n, n], -1e9), -1)
            for layer in self.decoder:
                x = layer(x, memory, mask)
            return self.head(x)

    class ViTBlock(nn.Layer):
        def __init__(self, name, dim, heads):
            super().__init__()
            self.name = name
            self.norm1 = nn.LayerNorm(dim, epsilon=1e-6)
            self.qkv = nn.Linear(dim, 3 * dim, bias_attr=k(f"{name}.qkv.bias_attr", None))
            self.proj = nn.Linear(dim, dim)
            self.norm2 = nn.LayerNorm(dim, epsilon=k(f"{name}.norm2.epsilon", 1e-6))
            self.fc1 = nn.Linear(dim, 4 * dim)
            self.act = nn.GELU(approximate=k(f"{name}.gelu_tanh", False))
            self.fc2 = nn.Linear(4 * dim, dim)
            self.heads, self.width = heads, dim // heads

        def attention(self, x):
            b, n, c = x.shape
            qkv = self.qkv(x)
            if k(f"{self.name}.heads_first", False):
                qkv = qkv.reshape([b, n, self.heads, 3, self.width]).transpose([3, 0, 2, 1, 4])
            else:
                qkv = qkv.reshape([b, n, 3, self.heads, self.width]).transpose([2, 0, 3, 1, 4])
            q, keys, v = (qkv[i] for i in k(f"{self.name}.order", (0, 1, 2)))
            scale = k(f"{self.name}.scale", self.width**-0.5)
            weights = F.softmax(paddle.matmul(q, keys, transpose_y=True) * scale, axis=-1)
            return self.proj(paddle.matmul(weights, v).transpose([0, 2, 1, 3]).reshape([b, n, c]))

        def forward(self, x):
            if k(f"{self.name}.post_norm", False):
                x = self.norm1(x + self.attention(x))
                return self.norm2(x + self.fc2(self.act(self.fc1(x))))
            h = self.attention(self.norm1(x))
            x = h if k(f"{self.name}.residual_dropped", False) else x + h
            return x + self.fc2(self.act(self.fc1(self.norm2(x))))

    class ViT(nn.Layer):
        def __init__(self, dim=48, heads=4):
            super().__init__()
            self.patch = nn.Conv2D(3, dim, 8, stride=8)
            zeros = nn.initializer.Constant(0.0)
            self.cls_token = self.create_parameter([1, 1, dim], default_initializer=zeros)
            self.pos_embed = self.create_parameter([1, 1 + 49, dim], default_initializer=zeros)
            self.blocks = nn.Sequential(*[ViTBlock(f"blocks.{i}", dim, heads) for i in range(3)])
            self.norm = nn.LayerNorm(dim, epsilon=1e-6)
            self.head = nn.Linear(dim, 10)

        def positions(self, size):
            cls, grid = self.pos_embed[:, :1], self.pos_embed[:, 1:]
            grid = grid.reshape([1, 7, 7, -1]).transpose([0, 3, 1, 2])
            mode = k("positions.mode", "bilinear")
            corners = {} if mode == "nearest" else {"align_corners": k("positions.align_corners", False)}
            grid = F.interpolate(grid, size=[size, size], mode=mode, **corners)
            return paddle.concat([cls, grid.flatten(2).transpose([0, 2, 1])], axis=1)

        def forward(self, x):
            x = self.patch(x)
            size = x.shape[-1]
            x = x.transpose([0, 1, 3, 2]).flatten(2) if k("patch.columns", False) else x.flatten(2)
            x = x.transpose([0, 2, 1])
            parts = [self.cls_token.expand([x.shape[0], -1, -1]), x]
            x = paddle.concat(parts[::-1] if k("cls.last", False) else parts, axis=1)
            if not k("positions.missing", False):
                x = x + self.positions(size)
            x = self.blocks(x)
            if not k("norm.missing", False):
                x = self.norm(x)
            return self.head(x.mean(axis=1) if k("pool.mean", False) else x[:, 0])

    found = (LeNet, AlexNet, ResNet18, MobileNetV3, LSTMClassifier, Transformer, ViT)
    return {net.__name__: net for net in found}
