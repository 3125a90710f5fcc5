"""09 · How good is it? Validation, test, and which digits are mixed up.

The training loss says how well the network knows what it has seen. A validation part that is never trained on says how
far to train; the test set is looked at once. Accuracy is gathered batch by batch by a metric, also as "among the best
three", and a table of right and given answers shows where the mistakes are.
"""

import common

import sampan
from sampan.io import DataLoader, random_split
from sampan.metric import Accuracy
from sampan.vision.models import LeNet

sampan.seed(0)
data = common.digits("train")
share = len(data) * 9 // 10
train, valid = random_split(data, [share, len(data) - share])
train, valid = DataLoader(train, batch_size=64, shuffle=True), DataLoader(valid, batch_size=256)
test = common.batches("test", 256)

net = LeNet()
optimizer = sampan.optimizer.Adam(learning_rate=0.001, parameters=net.parameters())
best, file = 0.0, str(common.folder("09_evaluation") / "best.pdparams")
for epoch in range(common.full_or_quick(3, 1)):
    loss = common.train_epoch(net, optimizer, train)
    share = common.accuracy(net, valid)
    print(f"epoch {epoch}: training loss {loss:.4f}, validation accuracy {100 * share:.2f} %")
    if share >= best:
        best = share
        sampan.save(net.state_dict(), file)

# The best network of all epochs, and the one look at the test set.
net.set_state_dict(sampan.load(file))
net.eval()
top, table = Accuracy(topk=(1, 3)), [[0] * 10 for _ in range(10)]
with sampan.no_grad():
    for images, labels in test:
        scores = net(images)
        top.update(top.compute(scores, labels))
        for right, given in zip(labels.flatten().tolist(), scores.argmax(-1).tolist()):
            table[right][given] += 1
one, three = top.accumulate()
print(f"test accuracy {100 * one:.2f} %, right digit among the best three {100 * three:.2f} %")
print("right digit down, answer across:")
for digit, row in enumerate(table):
    print(f"  {digit} | " + "".join(f"{n:5}" for n in row))
