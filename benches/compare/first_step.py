"""The shortest training program: imports a library, makes one step and ends. It is timed from outside."""

import importlib
import sys

from apis import api_of

api = api_of(importlib.import_module(sys.argv[1]))
net = api.nn.Linear(784, 1)
optimizer, _ = api.optimizer("SGD", net.parameters())
loss = (net(api.math.randn([16, 784])) ** 2).mean()
loss.backward()
optimizer.step()
