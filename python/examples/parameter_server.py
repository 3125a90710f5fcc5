"""Wide and deep with parameter servers: embeddings of ids that nobody counted lie on servers, workers fetch the rows they need.

    python -m sampan.distributed.launch --server_num 2 --worker_num 2 parameter_server.py [sync | async | geo]

To see: the loss falls as it does in one process, and the servers have rows for the ids that were seen, no others.
"""

import subprocess
import sys

import numpy as np
import sampan
from sampan import nn
from sampan.distributed import fleet
from sampan.distributed.ps import SparseEmbedding


class WideDeep(nn.Layer):
    """A weight for each id, and a small network over what the ids mean."""

    def __init__(self, fields=4, dim=8):
        super().__init__()
        self.wide, self.deep = SparseEmbedding(1, init_range=0.0), SparseEmbedding(dim)
        self.mix = nn.Sequential(nn.Linear(fields * dim, 16), nn.ReLU(), nn.Linear(16, 1))

    def forward(self, ids):
        return self.wide(ids).sum(1) + self.mix(self.deep(ids).flatten(1))


def clicks(seed, size=64, fields=4):
    """Who clicks: ids out of billions, of which some please and some do not."""
    rng = np.random.RandomState(seed)
    ids = rng.randint(0, 200, (size, fields))
    pleased = np.sin(ids * 12.9898).sum(1, keepdims=True) > 0
    return ids.astype("int64") * 10_000_019 % (1 << 40), pleased.astype("float32")


def main(mode="sync", steps=80):
    strategy = fleet.DistributedStrategy()
    strategy.a_sync = mode != "sync"
    strategy.a_sync_configs = {"k_steps": 4 if mode == "geo" else -1}
    fleet.init(fleet.PaddleCloudRoleMaker(), strategy=strategy)
    if fleet.is_server():
        fleet.init_server()
        fleet.run_server()
        return
    sampan.seed(1)
    net = fleet.distributed_model(WideDeep())
    rate = (
        sampan.optimizer.SGD(0.5, parameters=net.parameters())
        if mode == "geo"
        else sampan.optimizer.Adam(0.02, parameters=net.parameters())
    )
    optimizer = fleet.distributed_optimizer(rate)
    fleet.init_worker()
    for step in range(steps):
        ids, y = clicks(step * fleet.worker_num() + fleet.worker_index())
        loss = nn.functional.binary_cross_entropy_with_logits(net(sampan.to_tensor(ids)), sampan.to_tensor(y))
        loss.backward()
        optimizer.step()
        optimizer.clear_grad()
        if fleet.is_first_worker() and step % 20 == 0:
            print(f"step {step}: loss {loss.item():.3f}")
    fleet.barrier_worker()
    if fleet.is_first_worker():
        fleet.save_persistables(dirname="runs/tables")
        print(f"loss {loss.item():.3f} with {fleet.worker_num()} workers and {fleet.server_num()} servers, {mode}")
    fleet.barrier_worker()
    fleet.stop_worker()


if __name__ == "__main__":
    import os

    if "TRAINING_ROLE" in os.environ:
        main(*sys.argv[1:2])
    else:
        launch = [sys.executable, "-m", "sampan.distributed.launch", "--server_num", "2", "--worker_num", "2"]
        sys.exit(subprocess.call([*launch, __file__, *sys.argv[1:]]))
