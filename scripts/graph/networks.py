"""Networks by name, in Paddle or in sampan: `make(paddle, name)` gives a layer, what its inputs are like, and inputs."""
import numpy as np
def make(paddle, name):
    nn = paddle.nn
    S = paddle.static.InputSpec
    r = np.random.RandomState(0)
    def image(c=3, n=64, b=2):
        return [S([None, c, n, n], 'float32', 'x')], [r.randn(b, c, n, n).astype('float32')]
    V = paddle.vision.models
    if name == 'mlp':
        return nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 4), nn.Softmax()), [S([None, 8], 'float32', 'x')], [r.randn(3, 8).astype('float32')]
    if name == 'lenet':
        return (V.LeNet(),) + image(1, 28)
    if name in ('resnet18', 'resnet50', 'mobilenet_v1', 'mobilenet_v2', 'mobilenet_v3_small', 'mobilenet_v3_large', 'squeezenet1_1', 'shufflenet_v2_x0_5', 'densenet121'):
        return (getattr(V, name)(num_classes=10),) + image(3, 64)
    if name == 'vgg11':
        return (nn.Sequential(*list(V.vgg11(num_classes=10).features.children()), nn.AdaptiveAvgPool2D((7, 7)), nn.Flatten(), nn.Linear(25088, 10)),) + image(3, 32)
    if name in ('lstm', 'gru', 'rnn'):
        class Net(nn.Layer):
            def __init__(self):
                super().__init__()
                kind = {'lstm': nn.LSTM, 'gru': nn.GRU, 'rnn': nn.SimpleRNN}[name]
                self.emb = nn.Embedding(20, 8)
                self.rnn = kind(8, 6, num_layers=2, direction='bidirect')
                self.fc = nn.Linear(12, 3)
            def forward(self, ids):
                out, _ = self.rnn(self.emb(ids))
                return self.fc(out[:, -1])
        return Net(), [S([None, None], 'int64', 'ids')], [r.randint(0, 20, (3, 5)).astype('int64')]
    if name == 'transformer':
        class Net(nn.Layer):
            def __init__(self):
                super().__init__()
                self.emb = nn.Embedding(20, 16)
                self.enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(16, 4, 32, dropout=0.1, activation='gelu'), 2)
                self.norm = nn.LayerNorm(16)
                self.fc = nn.Linear(16, 3)
            def forward(self, ids):
                x = self.enc(self.emb(ids))
                return self.fc(self.norm(x).mean(axis=1))
        return Net(), [S([None, None], 'int64', 'ids')], [r.randint(0, 20, (3, 5)).astype('int64')]
    if name == 'embedding':
        class Net(nn.Layer):
            def __init__(self):
                super().__init__()
                self.emb = nn.Embedding(20, 8, padding_idx=0)
                self.pos = self.create_parameter([1, 6, 8])
                self.fc = nn.Linear(8, 3)
                self.gelu, self.softmax = nn.GELU(), nn.Softmax()
            def forward(self, ids):
                x = self.emb(ids) + self.pos
                m = (ids != 0).astype('float32').unsqueeze(-1)
                x = x[:, :6] * m
                return self.softmax(self.fc(self.gelu(x.sum(axis=1)))), x.argmax(axis=-1)
        return Net(), [S([None, 6], 'int64', 'ids')], [r.randint(0, 20, (3, 6)).astype('int64')]
    raise KeyError(name)
ALL = 'mlp lenet resnet18 resnet50 mobilenet_v1 mobilenet_v2 mobilenet_v3_small mobilenet_v3_large squeezenet1_1 shufflenet_v2_x0_5 densenet121 vgg11 lstm gru rnn transformer embedding'.split()
