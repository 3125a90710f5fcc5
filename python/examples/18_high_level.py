"""18 · The high-level API: the whole loop in one call.

`Model` holds a network with its optimizer, loss and metrics: `prepare`, `fit`, `evaluate`, `predict`. Callbacks do what
a loop of your own would do in between: stop early, keep the best weights, write logs, and what you think of yourself.
`summary` and `flops` tell what a network costs before it runs.
"""

import time

import common

import sampan
from sampan import callbacks, nn
from sampan.metric import Accuracy
from sampan.vision.models import LeNet


class Pace(callbacks.Callback):
    """A callback of our own: the losses, and the fastest and the slowest batch."""

    def on_train_begin(self, logs=None):
        self.seconds, self.losses = [], []

    def on_train_batch_begin(self, step, logs=None):
        self.started = time.time()

    def on_train_batch_end(self, step, logs=None):
        self.seconds.append(time.time() - self.started)
        self.losses.append(logs["loss"][0])

    def on_train_end(self, logs=None):
        print(f"a batch took from {1000 * min(self.seconds):.1f} to {1000 * max(self.seconds):.1f} ms")


sampan.seed(0)
net = LeNet()
sampan.summary(net, (1, 1, 28, 28))
print(f"{sampan.flops(net, [1, 1, 28, 28])} multiply-adds for one picture")

train, test = common.digits("train"), common.digits("test")
folder, pace = common.folder("18_high_level"), Pace()
model = sampan.Model(net)
adam = sampan.optimizer.Adam(learning_rate=0.001, parameters=model.parameters())
model.prepare(adam, nn.CrossEntropyLoss(), Accuracy(topk=(1, 2)))
stop = callbacks.EarlyStopping("acc_top1", patience=1)
model.fit(
    train,
    test,
    batch_size=64,
    epochs=common.full_or_quick(5, 1),
    log_freq=200,
    save_dir=str(folder),
    callbacks=[stop, pace],
)
print(f"the loss fell from {pace.losses[0]:.3f} to {pace.losses[-1]:.3f}")

model.load(str(folder / "best_model"))
result = model.evaluate(test, batch_size=256, verbose=0)
print(f"test accuracy {100 * result['acc_top1']:.2f} %")
scores = model.predict(test, batch_size=256, stack_outputs=True, verbose=0)[0]
print("the first test images read:", scores.argmax(-1)[:10].tolist())
