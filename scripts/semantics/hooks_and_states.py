"""Hooks that outlive their tensors, and states of the random numbers."""
import gc


def _leaf(paddle, value=3.0):
    x = paddle.to_tensor([value])
    x.stop_gradient = False
    return x


def _hooked(paddle, held, which):
    """A graph whose tensors are forgotten before it is walked."""
    seen = []
    x = _leaf(paddle)
    y = x * 2
    for name, t in (("x", x), ("y", y)):
        if name in which:
            kept = (x, y) if held else ()
            t.register_hook(lambda grad, name=name, kept=kept: seen.append([name, grad.item()]))
    z = y * y
    del x, y, t, kept
    gc.collect()
    z.backward()
    return seen


def hooks_outlive_their_tensors(paddle):
    return _hooked(paddle, False, "xy")


def hooks_that_hold_their_tensors_outlive_them(paddle):
    return [_hooked(paddle, True, which) for which in ("x", "y", "xy")]


def a_hook_on_a_parameter_outlives_its_layer(paddle):
    seen = []
    layer = paddle.nn.Linear(1, 1)
    layer.weight.register_hook(lambda grad: seen.append(grad.item()))
    z = layer(_leaf(paddle))
    del layer
    gc.collect()
    z.backward()
    return seen


def hooks_are_taken_off_once(paddle):
    x = _leaf(paddle)
    first, second = x.register_hook(lambda grad: grad * 2), x.register_hook(lambda grad: grad * 10)
    removed = [first.remove(), first.remove()]
    (x * 3).backward()
    return removed, x.grad


def a_generator_goes_back_to_the_exact_place(paddle):
    generator = paddle.seed(5)
    paddle.rand([7])
    state, kept = generator.get_state(), paddle.get_rng_state()
    first = paddle.rand([3]).tolist()
    found = []
    for go_back in (
        lambda: generator.set_state(state),
        lambda: paddle.Generator().set_state(state),
        lambda: paddle.set_rng_state(kept),
        lambda: paddle.set_rng_state([state], "cpu"),
        lambda: paddle.device.set_rng_state(state),
    ):
        go_back()
        found.append(paddle.rand([3]).tolist() == first)
    return found, state.current_seed(), generator.initial_seed()


def states_of_no_gpu(paddle):
    paddle.set_cuda_rng_state(paddle.get_cuda_rng_state())
    return paddle.get_cuda_rng_state()


def one_state_is_needed(paddle):
    try:
        paddle.set_rng_state([])
    except ValueError:
        return "ValueError"


def bits_come_back(paddle):
    generator = paddle.seed(3)
    state = generator.get_state()
    first = generator.random()
    generator.set_state(state)
    return generator.random() == first, generator.random() == first
