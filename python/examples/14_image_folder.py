"""14 · Your own pictures: a folder for each class.

Most data lies in folders: `pets/cat/1.png`, `pets/dog/2.png`. Here the program first writes such a folder (digits as
PNG files), then reads it as a data set of classes, changes the pictures on the way by a list of transforms, trains, and
at last reads pictures without labels from a plain folder.
"""

import common

import sampan
from sampan.io import DataLoader
from sampan.vision import transforms
from sampan.vision.datasets import MNIST, DatasetFolder, ImageFolder
from sampan.vision.models import LeNet

root = common.folder("14_image_folder")


def write_pictures(mode, count):
    """Writes the first digits of a split as `root/MODE/CLASS/NUMBER.png`."""
    digits = MNIST(mode=mode, backend="pil")
    for i in range(count):
        picture, label = digits[i]
        folder = root / mode / f"digit_{int(label[0])}"
        folder.mkdir(parents=True, exist_ok=True)
        picture.convert("L").save(folder / f"{i}.png")


# Grey pictures of 28 by 28, from -1 to 1.
change = transforms.Compose(
    [transforms.Resize([28, 28]), transforms.Grayscale(), transforms.ToTensor(), transforms.Normalize([0.5], [0.5])]
)

sampan.seed(0)
write_pictures("train", common.limit() or 3000)
write_pictures("test", common.limit() or 500)
train = DatasetFolder(str(root / "train"), transform=change)
print(f"{len(train)} pictures of the classes {train.classes}")
print(f"number 0 is {train.samples[0][0]} of class {train.samples[0][1]}")
classes = train.classes
train = DataLoader(train, batch_size=32, shuffle=True)
test = DataLoader(DatasetFolder(str(root / "test"), transform=change), batch_size=100)

net = LeNet()
optimizer = sampan.optimizer.Adam(learning_rate=0.002, parameters=net.parameters())
for epoch in range(common.full_or_quick(4, 1)):
    loss = common.train_epoch(net, optimizer, train)
    print(f"epoch {epoch}: loss {loss:.4f}, test accuracy {100 * common.accuracy(net, test):.1f} %")

# Pictures without labels, as they come.
unknown = ImageFolder(str(root / "test"), transform=change)
for i in range(0, len(unknown), max(1, len(unknown) // 5)):
    (picture,) = unknown[i]
    with sampan.no_grad():
        answer = net(picture.unsqueeze(0)).argmax(-1).item()
    print(f"{unknown.samples[i]} is a {classes[answer]}")
