"""06 · The loss for classes: softmax and cross entropy.

A 3 is not "nearer" to a 4 than to an 8: digits are classes, not numbers. So the network gives ten scores, softmax makes
probabilities of them, and cross entropy asks how probable the right class was. First by hand on three scores, then for
the digits, where this one change takes the errors down to a few in a hundred.
"""

import common

import sampan
import sampan.nn.functional as F
from sampan.vision.models import LeNet

# The same number in two ways.
scores = sampan.to_tensor([[2.0, 1.0, 0.1]], stop_gradient=False)
label = sampan.to_tensor([0])
exponents = scores.exp()
probabilities = exponents / exponents.sum()
print("scores", scores.tolist()[0])
print("softmax by hand", probabilities.tolist()[0])
print("softmax        ", F.softmax(scores).tolist()[0])
loss = -probabilities[0, 0].log()
print(f"cross entropy by hand {loss.item():.6f}")
print(f"cross entropy         {F.cross_entropy(scores, label).item():.6f}")
# Its gradient is as simple as can be: the probabilities, less one at the right class.
loss.backward()
print("gradient", scores.grad.tolist()[0])

sampan.seed(0)
train, test = common.batches("train", 64), common.batches("test", 256)
net = LeNet()
optimizer = sampan.optimizer.SGD(learning_rate=0.05, parameters=net.parameters())
for epoch in range(common.full_or_quick(3, 1)):
    print(f"epoch {epoch}: loss {common.train_epoch(net, optimizer, train):.4f}")
print(f"test accuracy {100 * common.accuracy(net, test):.2f} %")

# One picture, with how sure the network is of each class.
image, label = common.digits("test")[0]
with sampan.no_grad():
    probabilities = F.softmax(net(sampan.to_tensor(image).unsqueeze(0)))
print(f"a {int(label[0])}:", [round(p, 3) for p in probabilities.tolist()[0]])
print(f"read as {probabilities.argmax(-1).item()}")
