"""Learning rates: the built-in ones, those of the user, their states, and how an optimizer follows them."""

import copy
import inspect
import math
import pickle

import numpy as np
import pytest

import sampan
from sampan.optimizer import lr as L


def rates(schedule, n=6):
    seen = []
    for _ in range(n):
        seen.append(schedule())
        schedule.step()
    return seen


# Numbers of PaddlePaddle 3.3.1, five steps each.
PADDLE = [
    (lambda: L.NoamDecay(10, 3), [0.0, 0.0608580619450185, 0.1217161238900369, 0.182574185835055, 0.158113883008419]),
    (lambda: L.PiecewiseDecay([1, 2], [0.3, 0.2, 0.1]), [0.3, 0.2, 0.1, 0.1, 0.1]),
    (lambda: L.StepDecay(0.4, 2), [0.4, 0.4, 0.04, 0.04, 0.004]),
    (lambda: L.CosineAnnealingDecay(0.4, 3), [0.4, 0.3, 0.1, 0.0, 0.1]),
    (lambda: L.LinearLR(0.4, 3), [0.4 / 3, 2 / 9, 2.8 / 9, 0.4, 0.4]),
]


@pytest.mark.parametrize("make, expected", PADDLE)
def test_built_in_schedules_give_the_numbers_of_paddle(make, expected):
    assert rates(make(), 5) == pytest.approx(expected, rel=1e-14, abs=1e-15)


def test_closed_forms():
    assert rates(L.ExponentialDecay(0.5, 0.9)) == pytest.approx([0.5 * 0.9**i for i in range(6)])
    assert rates(L.NaturalExpDecay(0.5, 0.1)) == pytest.approx([0.5 * math.exp(-0.1 * i) for i in range(6)])
    assert rates(L.InverseTimeDecay(0.5, 0.1)) == pytest.approx([0.5 / (1 + 0.1 * i) for i in range(6)])
    assert rates(L.LambdaDecay(0.5, lambda e: 0.95**e)) == pytest.approx([0.5 * 0.95**i for i in range(6)])
    assert rates(L.MultiplicativeDecay(0.5, lambda e: 0.95)) == pytest.approx([0.5 * 0.95**i for i in range(6)])
    cyclic = L.CyclicLR(0.1, 0.5, 2, scale_fn=lambda x: 0.5, scale_mode="iterations")
    assert rates(cyclic) == pytest.approx([0.1, 0.2, 0.3, 0.2, 0.1, 0.2])


def test_attributes_and_signature():
    schedule = L.CosineAnnealingDecay(learning_rate=0.4, T_max=3)
    assert (schedule.T_max, schedule.base_lr, schedule.last_epoch, schedule.last_lr) == (3, 0.4, 0, 0.4)
    names = ["learning_rate", "T_max", "eta_min", "last_epoch", "verbose"]
    assert list(inspect.signature(L.CosineAnnealingDecay).parameters) == names
    schedule.step(2)
    assert schedule.last_epoch == 2 and schedule() == pytest.approx(0.1)
    assert isinstance(schedule, L.LRScheduler)
    with pytest.raises(AttributeError, match="gamma"):
        schedule.gamma


class Harmonic(L.LRScheduler):
    def __init__(self, learning_rate, k, last_epoch=-1, verbose=False):
        self.k = k
        super().__init__(learning_rate, last_epoch, verbose)

    def get_lr(self):
        return self.base_lr / (1 + self.k * self.last_epoch)


def test_a_schedule_of_the_user_drives_an_optimizer():
    p = sampan.nn.Linear(1, 1, bias_attr=False).weight
    p.set_value([[0.0]])
    schedule = Harmonic(0.8, 1.0)
    opt = sampan.optimizer.SGD(schedule, parameters=[p])
    for step in range(3):
        p.grad = sampan.ones([1, 1])
        opt.step()
        assert opt.get_lr() == 0.8 / (1 + step)
        schedule.step()
    assert p.item() == pytest.approx(-0.8 - 0.4 - 0.8 / 3)
    schedule.last_lr = 0.125
    assert opt.get_lr() == 0.125
    assert opt.state_dict()["LR_Scheduler"] == {"last_epoch": 3, "last_lr": 0.125}


def test_warmup_around_a_schedule_of_the_user():
    after = Harmonic(0.1, 1.0)
    warm = L.LinearWarmup(after, 3, 0.0, 0.1)
    assert rates(warm, 7) == pytest.approx([0.0, 0.1 / 3, 0.2 / 3, 0.1, 0.05, 0.1 / 3, 0.025])
    state = warm.state_dict()
    assert state["LinearWarmup_LR"] == {"last_epoch": 4, "last_lr": 0.02}
    again = L.LinearWarmup(Harmonic(0.1, 1.0), 3, 0.0, 0.1)
    again.set_state_dict(state)
    again.step()
    warm.step()
    assert again() == warm() == 0.1 / 6
    assert after.last_epoch == 5


def test_a_subclass_of_a_built_in_schedule():
    class Halved(L.StepDecay):
        def get_lr(self):
            return super().get_lr() / 2

    schedule = Halved(0.4, 1)
    opt = sampan.optimizer.SGD(schedule, parameters=sampan.nn.Linear(1, 1).parameters())
    assert opt.get_lr() == 0.2
    schedule.step()
    assert opt.get_lr() == pytest.approx(0.02)
    assert rates(L.LinearWarmup(Halved(0.4, 1), 1, 0.0, 0.1), 3) == pytest.approx([0.0, 0.2, 0.02])


def test_a_schedule_without_get_lr_or_with_a_wrong_one():
    with pytest.raises(NotImplementedError, match="get_lr"):
        L.LRScheduler(0.1)

    class Wrong(L.LRScheduler):
        def get_lr(self):
            return None

    with pytest.raises(TypeError, match="get_lr must return a number, got NoneType"):
        Wrong(0.1)

    class Failing(L.LRScheduler):
        def get_lr(self):
            if self.last_epoch > 0:
                raise KeyError("mine")
            return 0.1

    with pytest.raises(KeyError, match="mine"):
        warm = L.LinearWarmup(Failing(0.1), 1, 0.0, 0.1)
        warm.step()
        warm.step()


@pytest.mark.parametrize("wrap", [float, lambda v: sampan.to_tensor([v]), lambda v: np.array([v]), np.float32])
def test_reduce_on_plateau_takes_numbers_tensors_and_arrays(wrap):
    schedule = L.ReduceOnPlateau(1.0, factor=0.5, patience=1)
    for loss in (3.0, 2.0, 2.0, 2.0):
        schedule.step(wrap(loss))
    assert schedule() == 0.5
    assert schedule.best == 2.0 and schedule.num_bad_epochs == 0
    again = L.ReduceOnPlateau(1.0, factor=0.5, patience=1)
    again.set_state_dict(schedule.state_dict())
    assert again.state_dict() == schedule.state_dict()
    with pytest.raises(ValueError, match="one number, got 2"):
        schedule.step(sampan.ones([2]))
    with pytest.raises(TypeError, match="got str"):
        schedule.step("low")


def test_verbose_lines_go_to_the_output_of_python(capsys):
    L.StepDecay(0.5, 1, verbose=True).step()
    Harmonic(0.5, 1.0, verbose=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines == [
        "Epoch 0: StepDecay set learning rate to 0.5.",
        "Epoch 1: StepDecay set learning rate to 0.05.",
        "Epoch 0: Harmonic set learning rate to 0.5.",
    ]


def test_states_that_do_not_fit():
    with pytest.raises(RuntimeError, match="has no `last_lr`"):
        Harmonic(0.1, 1.0).set_state_dict({"last_epoch": 1})
    with pytest.raises(KeyError, match="last_epoch"):
        L.StepDecay(0.1, 1).set_state_dict({})


def test_copies_go_their_own_way():
    warm = L.LinearWarmup(L.StepDecay(0.5, 2), 2, 0.0, 0.5)
    for schedule in (Harmonic(0.8, 1.0), warm, L.ExponentialDecay(0.5, 0.9)):
        schedule.step()
        schedule.step()
        for again in (copy.deepcopy(schedule), copy.copy(schedule)):
            before = schedule()
            assert again() == before and again.last_epoch == 2 and again.base_lr == schedule.base_lr
            again.step(3)
            assert schedule() == before and schedule.last_epoch == 2
    state = pickle.loads(pickle.dumps(L.CosineAnnealingDecay(0.5, 7))).state_dict()
    assert state == L.CosineAnnealingDecay(0.5, 7).state_dict()


def test_restarts_begin_anywhere_and_go_on_where_they_were():
    whole = rates(L.CosineAnnealingWarmRestarts(0.5, 2, 3, 0.01), 30)
    for start in range(20):
        # PaddlePaddle begins with the last value of a cycle where a new one has begun.
        assert rates(L.CosineAnnealingWarmRestarts(0.5, 2, 3, 0.01, last_epoch=start - 1), 5) == whole[start : start + 5]
        first, second = (L.CosineAnnealingWarmRestarts(0.5, 2, 3, 0.01) for _ in range(2))
        rates(first, start)
        # PaddlePaddle forgets where in its cycle it was.
        second.set_state_dict(first.state_dict())
        assert rates(second, 5) == whole[start : start + 5]
