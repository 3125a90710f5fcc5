"""07 · Optimizers, and a learning rate that falls.

Four ways to use the same gradients: plain steps (SGD), steps with a memory of their direction (Momentum), steps that
shrink where gradients were large (Adagrad), and both together (Adam). Then the learning rate itself: large steps first,
small ones at the end, along a schedule that optimizer and program share.
"""

import common

import sampan
import sampan.nn.functional as F
from sampan import nn
from sampan.optimizer import SGD, Adagrad, Adam, Momentum
from sampan.vision.models import LeNet

train, test = common.batches("train", 64), common.batches("test", 256)
for kind, rate in ((SGD, 0.01), (Momentum, 0.01), (Adagrad, 0.01), (Adam, 0.001)):
    # The same first weights for all.
    sampan.seed(0)
    net = LeNet()
    loss = common.train_epoch(net, kind(learning_rate=rate, parameters=net.parameters()), train)
    print(f"{kind.__name__:>8}: loss {loss:.4f}, test accuracy {100 * common.accuracy(net, test):.2f} %")

print("Adam with a learning rate that falls to a hundredth:")
sampan.seed(0)
epochs = common.full_or_quick(3, 1)
schedule = sampan.optimizer.lr.PolynomialDecay(0.002, decay_steps=epochs * len(train), end_lr=0.00002)
net = LeNet()
optimizer = Adam(schedule, parameters=net.parameters(), grad_clip=nn.ClipGradByGlobalNorm(5.0))
for epoch in range(epochs):
    net.train()
    for images, labels in train:
        F.cross_entropy(net(images), labels).backward()
        optimizer.step()
        optimizer.clear_grad()
        schedule.step()
    print(
        f"epoch {epoch}: learning rate {optimizer.get_lr():.6f}, test accuracy {100 * common.accuracy(net, test):.2f} %"
    )
