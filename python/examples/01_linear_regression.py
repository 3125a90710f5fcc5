"""01 · Linear regression: the shortest program that learns.

A weighted sum of the 784 pixels is asked to be the digit itself, as a number. You see the four parts that every program
of the course has (data, network, optimizer, loop), how weights are saved and loaded, and why one sum is not enough: the
answers are numbers near the digit, not digits.
"""

import common

import sampan
from sampan import nn


class Regression(nn.Layer):
    def __init__(self):
        super().__init__()
        self.fc = nn.Linear(784, 1)

    def forward(self, images):
        return self.fc(images.flatten(1))


sampan.seed(0)
train = common.batches("train", 16)
net = Regression()
optimizer = sampan.optimizer.SGD(learning_rate=0.001, parameters=net.parameters())

for epoch in range(common.full_or_quick(3, 1)):
    for step, (images, labels) in enumerate(train):
        loss = common.square_error(net(images), labels)
        if step % 1000 == 0:
            print(f"epoch {epoch}, batch {step}: loss {loss.item():.3f}")
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()

# What was learnt is a file now, which Paddle loads as well …
file = common.folder("01_linear_regression") / "regression.pdparams"
sampan.save(net.state_dict(), str(file))

# … and a network that has never been trained takes it over.
fresh = Regression()
fresh.set_state_dict(sampan.load(str(file)))
image, label = common.digits("test")[0]
answer = fresh(sampan.to_tensor(image).unsqueeze(0)).item()
print(f"the first test image shows {int(label[0])}, the answer is {answer:.2f}")
print(f"nearest digit right: {100 * common.rounded_accuracy(fresh, common.batches('test', 100)):.1f} %")
