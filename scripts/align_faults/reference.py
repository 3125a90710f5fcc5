"""The seven networks in PyTorch, as they should be."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn


class LeNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5, padding=2)
        self.pool1 = nn.AvgPool2d(3, stride=2, padding=1, count_include_pad=False)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.pool2 = nn.MaxPool2d(2)
        self.fc1 = nn.Linear(400, 84)
        self.fc2 = nn.Linear(84, 84)
        self.fc3 = nn.Linear(84, 10)

    def forward(self, x):
        x = self.pool1(F.relu(self.conv1(x)))
        x = self.pool2(F.relu(self.conv2(x)))
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = torch.tanh(self.fc2(x))
        return self.fc3(x)


class AlexNet(nn.Module):
    def __init__(self):
        super().__init__()
        self.features = nn.Sequential(
            nn.Conv2d(3, 32, 11, stride=4, padding=2),
            nn.ReLU(),
            nn.MaxPool2d(3, 2),
            nn.Conv2d(32, 64, 5, padding=2),
            nn.ReLU(),
            nn.Conv2d(64, 96, 3, padding=1, groups=2),
            nn.LeakyReLU(0.01),
            nn.Conv2d(96, 64, 3, padding=1),
            nn.ReLU(),
        )
        self.avgpool = nn.AdaptiveAvgPool2d((3, 3))
        self.classifier = nn.Sequential(
            nn.Dropout(0.5), nn.Linear(576, 128), nn.ReLU(), nn.Dropout(0.5), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10)
        )

    def forward(self, x):
        x = self.avgpool(self.features(x))
        return self.classifier(torch.flatten(x, 1))


class BasicBlock(nn.Module):
    def __init__(self, inputs, outputs, stride=1):
        super().__init__()
        self.conv1 = nn.Conv2d(inputs, outputs, 3, stride=stride, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(outputs)
        self.relu = nn.ReLU()
        self.conv2 = nn.Conv2d(outputs, outputs, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(outputs)
        self.downsample = None
        if stride != 1 or inputs != outputs:
            self.downsample = nn.Sequential(
                nn.Conv2d(inputs, outputs, 1, stride=stride, bias=False), nn.BatchNorm2d(outputs)
            )

    def forward(self, x):
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        return self.relu(out + identity)


class ResNet18(nn.Module):
    def __init__(self):
        super().__init__()
        self.conv1 = nn.Conv2d(3, 32, 7, stride=2, padding=3, bias=False)
        self.bn1 = nn.BatchNorm2d(32)
        self.relu = nn.ReLU()
        self.maxpool = nn.MaxPool2d(3, 2, padding=1)
        self.layer1 = nn.Sequential(BasicBlock(32, 32), BasicBlock(32, 32))
        self.layer2 = nn.Sequential(BasicBlock(32, 64, 2), BasicBlock(64, 64))
        self.layer3 = nn.Sequential(BasicBlock(64, 96, 2), BasicBlock(96, 96))
        self.layer4 = nn.Sequential(BasicBlock(96, 128, 2), BasicBlock(128, 128))
        self.avgpool = nn.AdaptiveAvgPool2d(1)
        self.fc = nn.Linear(128, 10)

    def forward(self, x):
        x = self.maxpool(self.relu(self.bn1(self.conv1(x))))
        x = self.layer4(self.layer3(self.layer2(self.layer1(x))))
        return self.fc(torch.flatten(self.avgpool(x), 1))


class SqueezeExcite(nn.Module):
    def __init__(self, channels, squeezed):
        super().__init__()
        self.fc1 = nn.Conv2d(channels, squeezed, 1)
        self.fc2 = nn.Conv2d(squeezed, channels, 1)

    def forward(self, x):
        scale = F.adaptive_avg_pool2d(x, 1)
        scale = F.relu(self.fc1(scale))
        return x * F.hardsigmoid(self.fc2(scale))


class ConvBNAct(nn.Module):
    def __init__(self, inputs, outputs, kernel, stride=1, groups=1, act=nn.Hardswish):
        super().__init__()
        self.conv = nn.Conv2d(inputs, outputs, kernel, stride, kernel // 2, groups=groups, bias=False)
        self.bn = nn.BatchNorm2d(outputs, eps=1e-3, momentum=0.01)
        self.act = act() if act else nn.Identity()

    def forward(self, x):
        return self.act(self.bn(self.conv(x)))


class InvertedResidual(nn.Module):
    def __init__(self, inputs, expanded, outputs, kernel, stride, act, se=True):
        super().__init__()
        self.expand = ConvBNAct(inputs, expanded, 1, act=act)
        self.depthwise = ConvBNAct(expanded, expanded, kernel, stride, groups=expanded, act=act)
        self.se = SqueezeExcite(expanded, expanded // 4) if se else None
        self.project = ConvBNAct(expanded, outputs, 1, act=None)
        self.residual = stride == 1 and inputs == outputs

    def forward(self, x):
        out = self.depthwise(self.expand(x))
        if self.se is not None:
            out = self.se(out)
        out = self.project(out)
        return x + out if self.residual else out


class MobileNetV3(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem = ConvBNAct(3, 16, 3, 2)
        self.blocks = nn.Sequential(
            InvertedResidual(16, 32, 16, 3, 1, nn.ReLU6),
            InvertedResidual(16, 48, 24, 3, 2, nn.ReLU, se=False),
            InvertedResidual(24, 64, 24, 5, 1, nn.Hardswish),
            InvertedResidual(24, 96, 40, 5, 2, nn.Hardswish),
            InvertedResidual(40, 120, 40, 3, 1, nn.Hardswish),
        )
        self.last = ConvBNAct(40, 96, 1)
        self.pool = nn.AdaptiveAvgPool2d(1)
        self.fc1 = nn.Linear(96, 128)
        self.act = nn.Hardswish()
        self.dropout = nn.Dropout(0.2)
        self.fc2 = nn.Linear(128, 10)

    def forward(self, x):
        x = self.pool(self.last(self.blocks(self.stem(x))))
        x = self.act(self.fc1(torch.flatten(x, 1)))
        return self.fc2(self.dropout(x))


class LSTMClassifier(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(50, 16, padding_idx=0)
        self.lstm = nn.LSTM(16, 24, num_layers=2, batch_first=True, bidirectional=True)
        self.gru = nn.GRU(48, 20, batch_first=True)
        self.norm = nn.LayerNorm(20)
        self.fc = nn.Linear(20, 10)

    def forward(self, x):
        x = self.embedding(x)
        x, _ = self.lstm(x)
        x, _ = self.gru(x)
        x = self.norm(x)
        return self.fc(x[:, -1])


class Attention(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.heads, self.width = heads, dim // heads
        self.q = nn.Linear(dim, dim)
        self.k = nn.Linear(dim, dim)
        self.v = nn.Linear(dim, dim)
        self.out = nn.Linear(dim, dim)

    def split(self, x):
        return x.reshape(x.shape[0], x.shape[1], self.heads, self.width).transpose(1, 2)

    def forward(self, x, memory, mask=None):
        q, k, v = self.split(self.q(x)), self.split(self.k(memory)), self.split(self.v(memory))
        scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(self.width)
        if mask is not None:
            scores = scores + mask
        weights = F.softmax(scores, dim=-1)
        x = torch.matmul(weights, v).transpose(1, 2)
        return self.out(x.reshape(x.shape[0], x.shape[1], -1))


class EncoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.attn = Attention(dim, heads)
        self.norm1 = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.fc2 = nn.Linear(4 * dim, dim)
        self.norm2 = nn.LayerNorm(dim)

    def forward(self, x):
        x = self.norm1(x + self.attn(x, x))
        return self.norm2(x + self.fc2(F.gelu(self.fc1(x))))


class DecoderLayer(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.self_attn = Attention(dim, heads)
        self.norm1 = nn.LayerNorm(dim)
        self.cross_attn = Attention(dim, heads)
        self.norm2 = nn.LayerNorm(dim)
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.fc2 = nn.Linear(4 * dim, dim)
        self.norm3 = nn.LayerNorm(dim)

    def forward(self, x, memory, mask):
        x = self.norm1(x + self.self_attn(x, x, mask))
        x = self.norm2(x + self.cross_attn(x, memory))
        return self.norm3(x + self.fc2(F.relu(self.fc1(x))))


class Transformer(nn.Module):
    def __init__(self, dim=32, heads=4):
        super().__init__()
        self.dim = dim
        self.embedding = nn.Embedding(40, dim)
        self.register_buffer("position", self.table(dim))
        self.encoder = nn.ModuleList([EncoderLayer(dim, heads) for _ in range(2)])
        self.decoder = nn.ModuleList([DecoderLayer(dim, heads) for _ in range(2)])
        self.head = nn.Linear(dim, 40)

    @staticmethod
    def table(dim, length=32):
        at = torch.arange(length).unsqueeze(1)
        rate = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
        table = torch.zeros(length, dim)
        table[:, 0::2], table[:, 1::2] = torch.sin(at * rate), torch.cos(at * rate)
        return table

    def embed(self, ids):
        return self.embedding(ids) * math.sqrt(self.dim) + self.position[: ids.shape[1]]

    def forward(self, source, target):
        memory = self.embed(source)
        for layer in self.encoder:
            memory = layer(memory)
        x = self.embed(target)
        mask = torch.triu(torch.full((target.shape[1], target.shape[1]), -1e9), 1)
        for layer in self.decoder:
            x = layer(x, memory, mask)
        return self.head(x)


class ViTBlock(nn.Module):
    def __init__(self, dim, heads):
        super().__init__()
        self.norm1 = nn.LayerNorm(dim, eps=1e-6)
        self.qkv = nn.Linear(dim, 3 * dim)
        self.proj = nn.Linear(dim, dim)
        self.norm2 = nn.LayerNorm(dim, eps=1e-6)
        self.fc1 = nn.Linear(dim, 4 * dim)
        self.act = nn.GELU()
        self.fc2 = nn.Linear(4 * dim, dim)
        self.heads, self.width = heads, dim // heads

    def attention(self, x):
        b, n, c = x.shape
        qkv = self.qkv(x).reshape(b, n, 3, self.heads, self.width).permute(2, 0, 3, 1, 4)
        q, k, v = qkv[0], qkv[1], qkv[2]
        weights = torch.softmax(torch.matmul(q, k.transpose(-2, -1)) * self.width**-0.5, dim=-1)
        return self.proj(torch.matmul(weights, v).transpose(1, 2).reshape(b, n, c))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.fc2(self.act(self.fc1(self.norm2(x))))


class ViT(nn.Module):
    def __init__(self, dim=48, heads=4):
        super().__init__()
        self.patch = nn.Conv2d(3, dim, 8, stride=8)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, dim))
        self.pos_embed = nn.Parameter(torch.zeros(1, 1 + 49, dim))
        self.blocks = nn.Sequential(*[ViTBlock(dim, heads) for _ in range(3)])
        self.norm = nn.LayerNorm(dim, eps=1e-6)
        self.head = nn.Linear(dim, 10)

    def positions(self, size):
        """The 7 by 7 positions for another size of images."""
        cls, grid = self.pos_embed[:, :1], self.pos_embed[:, 1:]
        grid = grid.reshape(1, 7, 7, -1).permute(0, 3, 1, 2)
        grid = F.interpolate(grid, size=(size, size), mode="bilinear", align_corners=False)
        return torch.cat([cls, grid.flatten(2).transpose(1, 2)], dim=1)

    def forward(self, x):
        x = self.patch(x)
        size = x.shape[-1]
        x = x.flatten(2).transpose(1, 2)
        x = torch.cat([self.cls_token.expand(x.shape[0], -1, -1), x], dim=1)
        x = x + self.positions(size)
        x = self.norm(self.blocks(x))
        return self.head(x[:, 0])


NETWORKS = {net.__name__: net for net in (LeNet, AlexNet, ResNet18, MobileNetV3, LSTMClassifier, Transformer, ViT)}


def build(name: str, seed: int = 0) -> nn.Module:
    """A network with random weights, statistics that are not zero and one, and norms that are not the identity."""
    torch.manual_seed(seed)
    net = NETWORKS[name]()
    with torch.no_grad():
        for module in net.modules():
            if isinstance(module, nn.BatchNorm2d):
                module.running_mean.normal_(0, 0.1)
                module.running_var.uniform_(0.5, 1.5)
            if isinstance(module, (nn.BatchNorm2d, nn.LayerNorm)):
                module.weight.uniform_(0.5, 1.5)
                module.bias.normal_(0, 0.1)
        if name == "MobileNetV3":
            # Signals keep their size through many layers, and some reach the six at which relu6 cuts.
            for module in net.modules():
                if isinstance(module, nn.Conv2d):
                    nn.init.kaiming_normal_(module.weight)
            net.blocks[0].expand.bn.weight.mul_(4)
        for parameter in net.parameters():
            if parameter.abs().max() == 0:
                parameter.normal_(0, 0.2)
    return net
