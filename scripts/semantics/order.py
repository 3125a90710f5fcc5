"""In which order `fit` reads a dataset."""
import numpy as np

from . import case


def _orders(paddle, seed, **options):
    """The samples of each epoch in the order in which `fit` read them."""
    seen = []

    class Numbers(paddle.io.Dataset):
        def __getitem__(self, i):
            seen.append(i)
            return np.float32([i]), np.float32([0])

        def __len__(self):
            return 20

    paddle.seed(seed)
    model = paddle.Model(paddle.nn.Linear(1, 1))
    model.prepare(paddle.optimizer.SGD(0.0, parameters=model.parameters()), paddle.nn.MSELoss())
    model.fit(Numbers(), batch_size=4, epochs=2, verbose=0, **options)
    return [seen[:20], seen[20:]]


@case(right=[True, True, True, True], because="there the number of the epoch alone decides, whatever the seed")
def fit_follows_the_seed(paddle):
    one, again, other = _orders(paddle, 1), _orders(paddle, 1), _orders(paddle, 2)
    whole = all(sorted(epoch) == list(range(20)) for epoch in one)
    return whole, one == again, one != other, one[0] != one[1]


def fit_without_shuffling(paddle):
    return _orders(paddle, 1, shuffle=False)


def a_sampler_for_processes_follows_the_epoch(paddle):
    orders = []
    for seed in (1, 2):
        paddle.seed(seed)
        sampler = paddle.io.DistributedBatchSampler(list(range(10)), 3, num_replicas=2, rank=1, shuffle=True)
        orders.append([list(sampler), list(sampler)])
        sampler.set_epoch(0)
        orders.append([list(sampler)])
    return orders


@case(right=[True, True, True], because="there NumPy's generator decides, and paddle.seed does nothing")
def a_loader_follows_the_seed(paddle):
    def order(seed):
        paddle.seed(seed)
        loader = paddle.io.DataLoader(paddle.io.TensorDataset([paddle.arange(20)]), batch_size=4, shuffle=True)
        return [[int(v) for batch in loader for v in batch[0].tolist()] for _ in range(2)]

    one, again, other = order(1), order(1), order(2)
    return one == again, one != other, one[0] != one[1]
