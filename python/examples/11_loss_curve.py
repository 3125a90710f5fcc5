"""11 · A picture of learning: event files for TensorBoard, and the loss curve as PNG.

Single batches jump; their running mean shows where it goes. The event files are watched while training runs:
`tensorboard --logdir runs/11_loss_curve`. The picture is drawn where matplotlib is installed.
"""

import common

import sampan
import sampan.nn.functional as F
from sampan.compat.tb_paddle import SummaryWriter
from sampan.vision.models import LeNet

sampan.seed(0)
train, test = common.batches("train", 64), common.batches("test", 256)
folder = common.folder("11_loss_curve")

net = LeNet()
optimizer = sampan.optimizer.Adam(learning_rate=0.001, parameters=net.parameters())
losses, accuracies = [], []
with SummaryWriter(logdir=str(folder)) as events:
    for epoch in range(common.full_or_quick(3, 1)):
        net.train()
        for images, labels in train:
            loss = F.cross_entropy(net(images), labels)
            loss.backward()
            optimizer.step()
            optimizer.clear_grad()
            events.add_scalar("train/loss", loss, len(losses))
            losses.append(loss.item())
        accuracies.append((len(losses), common.accuracy(net, test)))
        events.add_scalar("test/accuracy", accuracies[-1][1], len(losses))
        events.add_histogram("fc weight", net.parameters()[4], len(losses))
        print(f"epoch {epoch}: loss {losses[-1]:.4f}, test accuracy {100 * accuracies[-1][1]:.2f} %")
print(f"events: {events.path}")

try:
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt
except ImportError:
    print("no picture without matplotlib: pip install matplotlib")
else:
    window = max(1, min(50, len(losses) // 4))
    means = [sum(losses[max(0, i - window + 1) : i + 1]) / min(i + 1, window) for i in range(len(losses))]
    plt.plot(losses, color="lightsteelblue", label="training loss")
    plt.plot(means, label=f"mean of {window}")
    plt.plot(*zip(*accuracies), "o-", label="test accuracy")
    plt.title("LeNet on MNIST")
    plt.xlabel("step")
    plt.legend()
    plt.savefig(folder / "loss.png")
    print(f"drawn: {folder / 'loss.png'}")
