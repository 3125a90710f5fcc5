"""02 · Data, step by step: read, divide, shuffle, check, cut into batches.

Nothing here is hidden in a loader: a generator of our own makes the batches while training waits for it. Data is
checked twice before it is believed: by the machine (counts, ranges, numbers that are not numbers) and by eye (shapes,
types, a picture in the terminal). A loss that falls is the third check.
"""

import random

import common
import numpy as np

import sampan
from sampan import nn

sampan.seed(0)
random.seed(0)

# Parameters are learnt from the training part; choices are made on the validation part; the test set, which is not read
# here, tells the truth once at the end.
everything = [common.digits("train")[i] for i in range(len(common.digits("train")))]
cut = len(everything) * 5 // 6
train, valid = everything[:cut], everything[cut:]
print(f"{len(train)} images to train on, {len(valid)} to validate")


def check(part):
    """The machine's check: fails with a sentence where something is wrong."""
    for i, (image, label) in enumerate(part):
        image = np.asarray(image)
        assert image.shape == (1, 28, 28), f"image {i} has shape {image.shape}"
        assert 0 <= int(label[0]) < 10, f"image {i} has the label {label}"
        assert -1 <= image.min() <= image.max() <= 1, f"image {i} has pixels from {image.min()} to {image.max()}"


def batches(part, size, shuffle):
    """One pass over the data, in random order if `shuffle`: the last batch may be smaller."""
    order = random.sample(part, len(part)) if shuffle else part
    for start in range(0, len(order), size):
        images, labels = zip(*order[start : start + size])
        yield sampan.to_tensor(np.stack(images)), sampan.to_tensor(np.stack(labels))


def draw(image):
    """A picture made of letters."""
    for row in image.numpy()[0, ::2]:
        print("  " + "".join(" .o#"[int((pixel + 1) * 1.9)] for pixel in row))


check(train)
check(valid)
print("checked by machine: every image and label is as it should be")

images, labels = next(batches(train, 100, shuffle=True))
print(f"checked by eye: images {images.shape} {images.dtype}, labels {labels.shape} {labels.dtype}")
print(f"this should be a {labels[0].item()}:")
draw(images[0])

net = nn.Sequential(nn.Flatten(), nn.Linear(784, 1))
optimizer = sampan.optimizer.SGD(learning_rate=0.001, parameters=net.parameters())
for epoch in range(common.full_or_quick(3, 1)):
    for images, labels in batches(train, 100, shuffle=True):
        common.square_error(net(images), labels).backward()
        optimizer.step()
        optimizer.clear_grad()
    with sampan.no_grad():
        images, labels = next(batches(valid, len(valid), shuffle=False))
        print(f"epoch {epoch}: validation loss {common.square_error(net(images), labels).item():.3f}")
