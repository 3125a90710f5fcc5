"""13 · Fine-tuning: what was learnt for one task helps with the next.

A network learns the digits 0 to 4 from many images. Its body is frozen, and a new head learns 5 to 9 from very few: the
strokes it knows are those of all digits. The same few images from scratch do worse. This is how large networks are put
to new uses.
"""

import common

import sampan
from sampan import nn
from sampan.io import DataLoader, Dataset


def body():
    """Convolutions, which find strokes: 400 numbers that describe a picture."""
    return nn.Sequential(
        nn.Conv2D(1, 8, 5, padding=2),
        nn.ReLU(),
        nn.MaxPool2D(2),
        nn.Conv2D(8, 16, 5),
        nn.ReLU(),
        nn.MaxPool2D(2),
        nn.Flatten(),
    )


class FiveDigits(Dataset):
    """The digits from `first` to `first + 4`, numbered from zero; at most `most` of them."""

    def __init__(self, mode, first, most=None):
        digits = common.digits(mode)
        samples = (digits[i] for i in range(min(len(digits), 12_000)))
        self.samples = [(image, label - first) for image, label in samples if first <= label[0] < first + 5][:most]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        return self.samples[index]


def train(name, net, first, images, epochs):
    """Trains what is not frozen and tells the test accuracy."""
    data = DataLoader(FiveDigits("train", first, images), batch_size=20, shuffle=True)
    test = DataLoader(FiveDigits("test", first), batch_size=250)
    optimizer = sampan.optimizer.Adam(learning_rate=0.002, parameters=net.parameters())
    for _ in range(epochs):
        common.train_epoch(net, optimizer, data)
    print(f"{name}: test accuracy {100 * common.accuracy(net, test):.1f} %")


sampan.seed(0)
few, epochs = 30, common.full_or_quick(30, 5)
first = body()
train("0 to 4 from many images", nn.Sequential(first, nn.Linear(400, 5)), 0, None, common.full_or_quick(3, 1))

# The body as it is, and a head that knows nothing yet.
for p in first.parameters():
    p.stop_gradient = True
before = first[0].weight.numpy().copy()
tuned = nn.Sequential(first, nn.Linear(400, 5))
free = sum(not p.stop_gradient for p in tuned.parameters())
print(f"{free} of {len(tuned.parameters())} parameters are trained")
train(f"5 to 9 from {few} images, frozen body", tuned, 5, few, epochs)
assert (first[0].weight.numpy() == before).all(), "frozen is frozen"

train(f"5 to 9 from {few} images, from scratch", nn.Sequential(body(), nn.Linear(400, 5)), 5, few, epochs)
