"""A first program that shows whether the installation works."""

import sampan


def run_check():
    """Runs a step of training, compares its numbers with the ones known, and prints what it found.

    >>> from sampan.utils import run_check
    >>> run_check()
    sampan computes, differentiates and trains as it should on 1 CPU.
    """
    constant = sampan.nn.initializer.Constant
    linear = sampan.nn.Linear(
        2,
        3,
        weight_attr=sampan.ParamAttr(initializer=constant(0.5)),
        bias_attr=sampan.ParamAttr(initializer=constant(1.0)),
    )
    out = linear(sampan.to_tensor([[1.0, 2.0], [3.0, 4.0]]))
    _expect("the output of a Linear layer", out, [[2.5] * 3, [4.5] * 3])
    out.sum().backward()
    _expect("the gradient of its weight", linear.weight.grad, [[4.0] * 3, [6.0] * 3])
    _expect("the gradient of its bias", linear.bias.grad, [2.0] * 3)
    sampan.optimizer.SGD(learning_rate=0.25, parameters=linear.parameters()).step()
    _expect("the weight after a step", linear.weight, [[-0.5] * 3, [-1.0] * 3])
    print("sampan computes, differentiates and trains as it should on 1 CPU.")


def _expect(what, tensor, expected):
    if tensor.tolist() != expected:
        raise RuntimeError(f"run_check: {what} should be {expected}, but is {tensor.tolist()}")
