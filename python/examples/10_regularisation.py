"""10 · Overfitting, and two things against it.

A large network and few images: it learns them by heart. Its training loss goes to nothing, while the loss on images it
has not seen first falls and then rises: it grows sure of itself where it is wrong. An L2 penalty keeps weights small,
dropout keeps single neurons from being relied on, and the second loss stays down. More data would do it better still.
"""

import common

import sampan
import sampan.nn.functional as F
from sampan import nn
from sampan.io import DataLoader, Subset
from sampan.regularizer import L2Decay

IMAGES = 500


def network(dropout):
    layers = [nn.Flatten()]
    for inputs, outputs in ((784, 256), (256, 256)):
        layers += [nn.Linear(inputs, outputs), nn.ReLU(), nn.Dropout(dropout)]
    return nn.Sequential(*layers, nn.Linear(256, 10))


@sampan.no_grad()
def loss_on(net, data):
    """The mean loss on data, without learning from it."""
    net.eval()
    losses = [F.cross_entropy(net(images), labels).item() for images, labels in data]
    return sum(losses) / len(losses)


digits = common.digits("train")
few = Subset(digits, range(min(IMAGES, len(digits))))
train, seen = DataLoader(few, batch_size=50, shuffle=True), DataLoader(few, batch_size=250)
test = common.batches("test", 250)
for name, decay, dropout in (("nothing", 0.0, 0.0), ("L2 decay", 0.01, 0.0), ("L2 decay and dropout", 0.01, 0.3)):
    print(f"against overfitting: {name}")
    sampan.seed(0)
    net = network(dropout)
    optimizer = sampan.optimizer.Adam(learning_rate=0.001, parameters=net.parameters(), weight_decay=L2Decay(decay))
    for epoch in range(1, common.full_or_quick(60, 4) + 1):
        common.train_epoch(net, optimizer, train)
        if epoch in (4, 15, 30, 60):
            known, new, share = loss_on(net, seen), loss_on(net, test), 100 * common.accuracy(net, test)
            print(f"  epoch {epoch:2}: training loss {known:.4f}, test loss {new:.4f}, test accuracy {share:.1f} %")
