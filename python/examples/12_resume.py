"""12 · Stop today, go on tomorrow: a checkpoint that continues to the bit.

Weights alone are not enough. A run also is its optimizer (moments, steps, the place of the learning rate on its
schedule) and the random numbers still to come. With all of it saved, a run that was cut in two ends with exactly the
weights of one that was not.
"""

import common

import sampan
from sampan.utils import unique_name
from sampan.vision.models import LeNet


def build():
    """A run as a new process would begin it."""
    sampan.seed(0)
    # Names of parameters are counted; a guard starts the count anew, as a new process does.
    with unique_name.guard():
        net = LeNet()
    schedule = sampan.optimizer.lr.StepDecay(0.002, step_size=1, gamma=0.5)
    return net, sampan.optimizer.Adam(schedule, parameters=net.parameters()), schedule


def train(run, epochs, file=None):
    net, optimizer, schedule = run
    for epoch in epochs:
        # Each epoch has random numbers of its own, whatever was drawn before it.
        sampan.seed(1000 + epoch)
        common.train_epoch(net, optimizer, common.batches("train", 64))
        schedule.step()
        if file:
            state = {"net": net.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
            sampan.save(state, str(file))
        print(f"  after epoch {epoch}: learning rate {optimizer.get_lr()}")


def resume(run, file):
    """Takes over a checkpoint; the next epoch."""
    state = sampan.load(str(file))
    run[0].set_state_dict(state["net"])
    run[1].set_state_dict(state["optimizer"])
    return state["epoch"] + 1


folder = common.folder("12_resume")
print("in one go:")
whole = build()
train(whole, range(2))

print("stopped after one epoch …")
train(build(), range(1), folder / "half.pdparams")

print("… and gone on with the next day:")
second = build()
train(second, range(resume(second, folder / "half.pdparams"), 2))

pairs = list(zip(whole[0].parameters(), second[0].parameters()))
assert all((a.numpy() == b.numpy()).all() for a, b in pairs)
print(f"all {sum(a.size for a, _ in pairs)} weights are the same to the bit")

# For others, weights and optimizer in Paddle's own files.
sampan.save(second[0].state_dict(), str(folder / "lenet.pdparams"))
sampan.save(second[1].state_dict(), str(folder / "lenet.pdopt"))
print(f"saved {folder}/lenet.pdparams and .pdopt")
print(f"test accuracy {100 * common.accuracy(second[0], common.batches('test', 256)):.2f} %")
