"""Control flow by functions, as static graphs need it; an eager program may write `if` and `while` as well."""

from __future__ import annotations

__all__ = ["case", "cond", "switch_case", "while_loop"]


def _truth(what: str, value) -> bool:
    if not hasattr(value, "stop_gradient") or value.size != 1:
        got = f"{value.size} elements" if hasattr(value, "size") else type(value).__name__
        raise TypeError(f"(InvalidType) {what}: the condition is a Tensor with one element, got {got}.")
    return bool(value)


def cond(pred, true_fn=None, false_fn=None, name=None, return_names=None):
    """What one of two functions gives.

    >>> import sampan
    >>> x = sampan.to_tensor([3.0])
    >>> sampan.static.nn.cond(x > 1, lambda: x * 2, lambda: x).tolist()
    [6.0]
    """
    chosen = true_fn if _truth("cond", pred) else false_fn
    return None if chosen is None else chosen()


def case(pred_fn_pairs, default=None, name=None):
    """What the function of the first pair gives whose condition holds; else that of `default`, or of the last pair."""
    for pred, function in pred_fn_pairs:
        if _truth("case", pred):
            return function()
    return (pred_fn_pairs[-1][1] if default is None else default)()


def switch_case(branch_index, branch_fns, default=None, name=None):
    """What the function of that number gives; else that of `default`, or of the greatest number. `branch_fns` is a dict,
    a list of pairs, or a list that is counted from 0.

    >>> import sampan
    >>> sampan.static.nn.switch_case(sampan.to_tensor(2), {1: lambda: "a", 2: lambda: "b"})
    'b'
    """
    pairs = list(branch_fns.items()) if isinstance(branch_fns, dict) else list(branch_fns)
    functions = dict(pair if isinstance(pair, (tuple, list)) else (i, pair) for i, pair in enumerate(pairs))
    return functions.get(int(branch_index), functions[max(functions)] if default is None else default)()


def while_loop(cond, body, loop_vars, is_test=False, name=None):
    """Calls `body` with the variables as long as `cond` of them holds; it gives their next values.

    >>> import sampan
    >>> [n] = sampan.static.nn.while_loop(lambda n: n < 10, lambda n: [n * 2], [sampan.to_tensor([1])])
    >>> n.tolist()
    [16]
    """
    if not isinstance(loop_vars, (list, tuple)) or not loop_vars:
        raise ValueError("(InvalidArgument) while_loop: loop_vars is a list or tuple of at least one variable.")
    while _truth("while_loop", cond(*loop_vars)):
        found = body(*loop_vars)
        found = found if isinstance(found, (list, tuple)) else [found]
        if len(found) != len(loop_vars):
            raise ValueError(
                f"(InvalidArgument) while_loop: the body gave {len(found)} values for {len(loop_vars)} variables."
            )
        loop_vars = type(loop_vars)(found)
    return loop_vars
