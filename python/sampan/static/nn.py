"""Control flow by functions, as static graphs need it; an eager program may write `if` and `while` as well."""

from __future__ import annotations

from .. import _core
from ..jit import flow

__all__ = ["case", "cond", "switch_case", "while_loop"]


def _truth(what: str, value) -> bool:
    _check(what, value)
    return bool(value)


def _check(what: str, value) -> None:
    if not hasattr(value, "stop_gradient") or value.size != 1:
        got = f"{value.size} elements" if hasattr(value, "size") else type(value).__name__
        raise TypeError(f"(InvalidType) {what}: the condition is a Tensor with one element, got {got}.")


def _nothing():
    return None


def cond(pred, true_fn=None, false_fn=None, name=None, return_names=None):
    """What one of two functions gives.

    >>> import sampan
    >>> x = sampan.to_tensor([3.0])
    >>> sampan.static.nn.cond(x > 1, lambda: x * 2, lambda: x).tolist()
    [6.0]
    """
    if flow.is_traced(pred):
        _check("cond", pred)
        return flow.select(pred, true_fn or _nothing, false_fn or _nothing)
    chosen = true_fn if _truth("cond", pred) else false_fn
    return None if chosen is None else chosen()


def case(pred_fn_pairs, default=None, name=None):
    """What the function of the first pair gives whose condition holds; else that of `default`, or of the last pair."""
    for at, (pred, function) in enumerate(pred_fn_pairs):
        if flow.is_traced(pred):
            rest = pred_fn_pairs[at + 1 :]
            if not rest and default is None:
                return function()
            return cond(pred, function, (lambda: case(rest, default)) if rest else default)
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
    if flow.is_traced(branch_index):
        pairs = [(branch_index == number, function) for number, function in sorted(functions.items())]
        return case(pairs, functions[max(functions)] if default is None else default)
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
    if _core._is_tracing():
        names = [f"loop_vars[{i}]" for i in range(len(loop_vars))]

        def step(*given):
            found = body(*given)
            return tuple(found) if isinstance(found, (list, tuple)) else (found,)

        return type(loop_vars)(flow.while_(cond, step, tuple(loop_vars), names))
    while _truth("while_loop", cond(*loop_vars)):
        found = body(*loop_vars)
        found = found if isinstance(found, (list, tuple)) else [found]
        if len(found) != len(loop_vars):
            raise ValueError(
                f"(InvalidArgument) while_loop: the body gave {len(found)} values for {len(loop_vars)} variables."
            )
        loop_vars = type(loop_vars)(found)
    return loop_vars
