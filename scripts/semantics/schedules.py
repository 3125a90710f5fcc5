"""Learning rates: the first values, `step(epoch)`, states that are loaded."""
from . import case

_MADE = {
    "noam": lambda lr: lr.NoamDecay(0.01, 100),
    "noam from": lambda lr: lr.NoamDecay(16, 4, 0.5, last_epoch=3),
    "piecewise": lambda lr: lr.PiecewiseDecay([3, 6, 9], [0.1, 0.2, 0.3, 0.4]),
    "natural": lambda lr: lr.NaturalExpDecay(0.5, 0.1),
    "inverse": lambda lr: lr.InverseTimeDecay(0.5, 0.1),
    "polynomial": lambda lr: lr.PolynomialDecay(0.5, 5, 0.01, 0.9),
    "polynomial again": lambda lr: lr.PolynomialDecay(0.5, 5, 0.01, 0.9, cycle=True),
    "warmup": lambda lr: lr.LinearWarmup(0.5, 5, 0.0, 0.5),
    "warmup from": lambda lr: lr.LinearWarmup(0.5, 5, 0.0, 0.5, last_epoch=2),
    "warmup exponential": lambda lr: lr.LinearWarmup(lr.ExponentialDecay(0.5, 0.9), 5, 0.1, 0.5),
    "warmup piecewise": lambda lr: lr.LinearWarmup(lr.PiecewiseDecay([3, 6], [0.1, 0.2, 0.3]), 4, 0.0, 0.1),
    "warmup cosine": lambda lr: lr.LinearWarmup(lr.CosineAnnealingDecay(0.5, 10), 4, 0.0, 0.1),
    "exponential": lambda lr: lr.ExponentialDecay(0.5, 0.9),
    "multistep": lambda lr: lr.MultiStepDecay(0.5, [3, 6], 0.2),
    "steps": lambda lr: lr.StepDecay(0.5, 4, 0.3),
    "function": lambda lr: lr.LambdaDecay(0.5, lambda e: 0.95**e),
    "factor": lambda lr: lr.MultiplicativeDecay(0.5, lambda e: 0.95),
    "cosine": lambda lr: lr.CosineAnnealingDecay(0.5, 5),
    "cosine from": lambda lr: lr.CosineAnnealingDecay(0.5, 5, 0.1, last_epoch=2),
    "cycle": lambda lr: lr.OneCycleLR(1.0, 20),
    "cycle in three": lambda lr: lr.OneCycleLR(1.0, 24, 25.0, 1e-4, 0.3, "linear", True),
    "cycle from": lambda lr: lr.OneCycleLR(1.0, 30, 10.0, 1e-3, 0.5, "linear", last_epoch=3),
    "triangles": lambda lr: lr.CyclicLR(0.1, 1.0, 3),
    "falling triangles": lambda lr: lr.CyclicLR(0.1, 1.0, 3, 4, "triangular2"),
    "range": lambda lr: lr.CyclicLR(0.1, 1.0, 3, 2, "exp_range", 0.9),
    "own scale": lambda lr: lr.CyclicLR(0.1, 1.0, 3, 2, scale_fn=lambda x: 0.9**x, scale_mode="iterations"),
    "linear": lambda lr: lr.LinearLR(0.5, 5),
    "linear from": lambda lr: lr.LinearLR(0.5, 5, 0.25, 0.8, last_epoch=2),
}
_RESTARTS = {
    "restarts": lambda lr: lr.CosineAnnealingWarmRestarts(0.5, 4),
    "longer restarts": lambda lr: lr.CosineAnnealingWarmRestarts(0.5, 3, 2, 0.01),
    "restarts from": lambda lr: lr.CosineAnnealingWarmRestarts(0.5, 3, 1, 0.01, last_epoch=4),
    "restarts each time": lambda lr: lr.CosineAnnealingWarmRestarts(0.5, 1, 1),
}


def _walk(schedule, n):
    seen = [schedule()]
    for _ in range(n):
        schedule.step()
        seen.append(schedule())
    return seen


@case(each=[*_MADE, *_RESTARTS], rtol=1e-9, atol=1e-12)
def values(paddle, name):
    schedule = {**_MADE, **_RESTARTS}[name](paddle.optimizer.lr)
    return _walk(schedule, 13), schedule.last_epoch


@case(each=[*_MADE, *_RESTARTS], rtol=1e-9, atol=1e-12)
def epochs_that_are_named(paddle, name):
    seen = []
    for epoch in (0, 1, 5, 7):
        schedule = {**_MADE, **_RESTARTS}[name](paddle.optimizer.lr)
        schedule.step(epoch)
        seen.append(_walk(schedule, 2))
    return seen


@case(each=list(_MADE), rtol=1e-9, atol=1e-12)
def states_that_are_loaded(paddle, name):
    first, second = (_MADE[name](paddle.optimizer.lr) for _ in range(2))
    _walk(first, 7)
    second.set_state_dict(first.state_dict())
    return _walk(second, 4)


@case(rtol=1e-9)
def plateaus(paddle):
    schedule, seen = paddle.optimizer.lr.ReduceOnPlateau(0.5, patience=1, cooldown=1), []
    for loss in [3.0, 2.0, 1.0] + [1.0] * 9:
        schedule.step(loss)
        seen.append(schedule())
    return seen


@case(right=[0.5, 0.496278], rtol=1e-5, because="epoch 8 begins the cycle of 18, and there its last value stands first")
def restarts_in_the_third_cycle(paddle):
    return _walk(paddle.optimizer.lr.CosineAnnealingWarmRestarts(0.5, 2, 3, 0.01, last_epoch=7), 1)


@case(right=True, because="there the place in the cycle is not part of the state")
def restarts_go_on_where_they_were(paddle):
    first, second = (paddle.optimizer.lr.CosineAnnealingWarmRestarts(0.5, 3, 2) for _ in range(2))
    _walk(first, 5)
    second.set_state_dict(first.state_dict())
    return _walk(first, 3) == _walk(second, 3)
