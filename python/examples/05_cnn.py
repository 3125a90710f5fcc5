"""05 · A convolutional network: neighbouring pixels belong together.

A convolution slides small windows over the picture and finds the same stroke wherever it is; pooling keeps what was
found and forgets where exactly. The loss is still the square error of chapter 01, so compare the numbers with those of
chapter 04. `summary` shows what each layer makes of the picture.
"""

import common

import sampan
import sampan.nn.functional as F
from sampan import nn


class CNN(nn.Layer):
    def __init__(self):
        super().__init__()
        # One grey channel in, 20 kinds of strokes out; the padding keeps the size of 28 by 28.
        self.conv1 = nn.Conv2D(1, 20, kernel_size=5, padding=2)
        self.pool1 = nn.MaxPool2D(kernel_size=2, stride=2)
        self.conv2 = nn.Conv2D(20, 20, kernel_size=5, padding=2)
        self.pool2 = nn.MaxPool2D(kernel_size=2, stride=2)
        self.fc = nn.Linear(20 * 7 * 7, 1)

    def forward(self, images):
        x = self.pool1(F.relu(self.conv1(images)))
        x = self.pool2(F.relu(self.conv2(x)))
        return self.fc(x.flatten(1))


sampan.seed(0)
train, test = common.batches("train", 64), common.batches("test", 256)
net = CNN()
sampan.summary(net, (1, 1, 28, 28))
# An optimizer that finds the right size of a step by itself; chapter 07 compares it with others.
optimizer = sampan.optimizer.Adam(learning_rate=0.001, parameters=net.parameters())
for epoch in range(common.full_or_quick(3, 1)):
    print(f"epoch {epoch}: loss {common.train_epoch(net, optimizer, train, common.square_error):.3f}")
print(f"nearest digit right: {100 * common.rounded_accuracy(net, test):.1f} %")
