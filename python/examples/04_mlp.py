"""04 · A network with hidden layers: more than one weighted sum.

Two hidden layers with a bend between them can follow what no straight line can. The task is still that of chapter 01
(the digit as a number), so that the only thing that changes is the network. Without the bend, layers upon layers would
still be one weighted sum: the program shows that too.
"""

import common

import sampan
from sampan import nn


class MLP(nn.Layer):
    """784 pixels, twice 100 numbers in between, one answer."""

    def __init__(self, bend):
        super().__init__()
        self.fc1 = nn.Linear(784, 100)
        self.fc2 = nn.Linear(100, 100)
        self.out = nn.Linear(100, 1)
        self.activation = nn.ReLU() if bend else nn.Identity()

    def forward(self, images):
        x = self.activation(self.fc1(images.flatten(1)))
        x = self.activation(self.fc2(x))
        return self.out(x)


train, test = common.batches("train", 64), common.batches("test", 256)
for bend in (False, True):
    sampan.seed(0)
    net = MLP(bend)
    # An optimizer that finds the right size of a step by itself; chapter 07 compares it with others.
    optimizer = sampan.optimizer.Adam(learning_rate=0.001, parameters=net.parameters())
    print(f"{'bent' if bend else 'straight'} hidden layers:")
    for epoch in range(common.full_or_quick(5, 1)):
        print(f"  epoch {epoch}: loss {common.train_epoch(net, optimizer, train, common.square_error):.3f}")
    print(f"  nearest digit right: {100 * common.rounded_accuracy(net, test):.1f} %")
