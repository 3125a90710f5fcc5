"""08 · Looking inside: shapes, values, gradients, frozen parts, and errors that say where they arose.

Every line runs as it is written, so a `print` anywhere is a debugger. For what is not yours to print in there are
hooks: on layers (see each one at work) and on tensors (see a gradient as it passes).
"""

import common

import sampan
import sampan.nn.functional as F
from sampan.vision.models import LeNet

sampan.seed(0)
net = LeNet()
images, labels = next(iter(common.batches("train", 8)))


def show(layer, inputs, output):
    """What goes into a layer and what comes out."""
    print(f"  {type(layer).__name__:<10} {inputs[0].shape} -> {output.shape}, mean {output.mean().item():+.4f}")


print("each layer:")
hooks = [layer.register_forward_post_hook(show) for layer in net.sublayers() if not layer.sublayers()]
scores = net(images)
for hook in hooks:
    hook.remove()

print("a gradient on its way back:")
scores.register_hook(lambda g: print(f"  at the scores: {g.shape}, largest {g.abs().max().item():.4f}"))
F.cross_entropy(scores, labels).backward()

print("the parameters and their gradients:")
for name, p in net.named_parameters():
    print(f"  {name:<18} {str(p.shape):<14} |w| {p.norm().item():.4f}  |g| {p.grad.norm().item():.6f}")
first = net.parameters()[0]
print("the first filter:", first[0, 0])

# A frozen parameter keeps its values, and no gradient is computed for it. A tensor stops gradients by itself.
net.clear_gradients()
first.stop_gradient = True
first.grad = None
F.cross_entropy(net(images), labels).backward()
trained = [p for p in net.parameters() if not p.stop_gradient and p.grad is not None]
print(f"with the first weight frozen, {len(trained)} of {len(net.parameters())} parameters have a gradient")
print(f"an image has stop_gradient={images.stop_gradient}, its scores {scores.stop_gradient}")

# A shape that does not fit: the error names op, shapes and the layer in the network.
try:
    net(images[:, :, :20])
except ValueError as error:
    print("a wrong shape:", error, *error.__notes__)
