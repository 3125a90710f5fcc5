"""15 · A function with a gradient of your own.

Most new functions need no gradient: written in tensor operations, they have one, of any order. Where you know a better
one, or where there is none (a step is flat everywhere), you say it yourself. First a function whose gradient is checked
against differences, then a network that decides with hard signs and still learns.
"""

import sampan
import sampan.nn.functional as F
from sampan import nn
from sampan.autograd import PyLayer


class Swish(PyLayer):
    """`x * sigmoid(x)`, with its gradient from what forward already knew."""

    @staticmethod
    def forward(ctx, x):
        gate = F.sigmoid(x)
        y = x * gate
        ctx.save_for_backward(gate, y)
        return y

    @staticmethod
    def backward(ctx, grad):
        gate, y = ctx.saved_tensor()
        return grad * (gate + y * (1 - gate))


class StraightThroughSign(PyLayer):
    """The sign, whose true gradient is zero: the gradient passes as if nothing had happened, but for inputs far
    away."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x.sign()

    @staticmethod
    def backward(ctx, grad):
        (x,) = ctx.saved_tensor()
        return grad * (x.abs() < 1).astype(grad.dtype)


class HardNet(nn.Layer):
    def __init__(self):
        super().__init__()
        self.hidden, self.out = nn.Linear(2, 16), nn.Linear(16, 2)

    def forward(self, x):
        return self.out(StraightThroughSign.apply(self.hidden(x)))


points = sampan.to_tensor([-2.0, -0.5, 0.1, 3.0], dtype="float64", stop_gradient=False)
y = Swish.apply(points)
(slope,) = sampan.grad(y.sum(), points)
step = 1e-5
with sampan.no_grad():
    differences = (Swish.apply(points + step) - Swish.apply(points - step)) / (2 * step)
assert sampan.allclose(slope, differences, atol=1e-8)
print(f"swish {[round(v, 4) for v in y.tolist()]}: its gradient agrees with differences")

# One or the other, but not both: no straight line divides these.
sampan.seed(2)
x = sampan.to_tensor([[-1.0, -1.0], [-1.0, 1.0], [1.0, -1.0], [1.0, 1.0]])
labels = sampan.to_tensor([0, 1, 1, 0])
net = HardNet()
optimizer = sampan.optimizer.Adam(learning_rate=0.05, parameters=net.parameters())
for step in range(201):
    loss = F.cross_entropy(net(x), labels)
    loss.backward()
    optimizer.step()
    optimizer.clear_grad()
    if step % 50 == 0:
        print(f"step {step}: loss {loss.item():.4f}")
print(f"answers {net(x).argmax(-1).tolist()}, right are {labels.tolist()}")
