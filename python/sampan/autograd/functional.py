"""Derivatives of functions as a whole: Jacobians and Hessians, computed when they are first looked at."""

from __future__ import annotations

import operator

from .. import _core

Tensor = _core.Tensor


class Jacobian:
    """The derivatives of `ys` with respect to `xs`: index it, compute with it, or call any method of a tensor.

    Its axes are those of `ys`, then those of `xs`; with a batch the first axis stands once, in front.
    """

    def __init__(self, ys: Tensor, xs: Tensor, is_batched: bool = False):
        for name, t in (("ys", ys), ("xs", xs)):
            if not isinstance(t, Tensor):
                raise TypeError(
                    f"(InvalidType) jacobian: {name} is a Tensor or a tuple of them, got {type(t).__name__}."
                )
            if is_batched and t.ndim < 1:
                raise ValueError(
                    f"(InvalidArgument) jacobian: with batch_axis=0, {name} needs a first axis, got shape []."
                )
        self._ys, self._xs, self._is_batched = ys, xs, is_batched
        self._value: Tensor | None = None

    @property
    def shape(self) -> list[int]:
        """The extents of its axes."""
        ys, xs = list(self._ys.shape), list(self._xs.shape)
        return [xs[0], *ys[1:], *xs[1:]] if self._is_batched else [*ys, *xs]

    def _evaluate_all(self) -> Tensor:
        if self._value is None:
            if self._ys.stop_gradient:
                # What depends on nothing has derivatives of zero.
                from .. import zeros

                self._value = zeros(self.shape, self._xs.dtype)
            else:
                found = _core._jacobian(self._ys, [self._xs], 0 if self._is_batched else None)[0]
                # Paddle gives one number a case as a row of one, though it is not told by the shape.
                self._value = found if self._has_rows_of_one() else found.reshape(self.shape)
        return self._value

    def __getitem__(self, index):
        if not self.shape:
            raise IndexError("(OutOfRange) a Jacobian of two numbers has no axis to index.")
        value = self._evaluate_all()
        if self._has_rows_of_one() and not isinstance(index, slice):
            value = value.reshape(self.shape)
        return value[index]

    def _has_rows_of_one(self) -> bool:
        return self._is_batched and self._ys.ndim == 1 and self._xs.ndim > 1

    def __getattr__(self, name: str):
        if name.startswith("_"):
            raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")
        return getattr(self._evaluate_all(), name)

    def __array__(self, *args, **kwargs):
        return self._evaluate_all().__array__(*args, **kwargs)

    def __len__(self) -> int:
        return len(self._evaluate_all())

    def __neg__(self):
        return -self._evaluate_all()

    def __repr__(self) -> str:
        return repr(self._evaluate_all())

    __hash__ = object.__hash__


def _add_operators() -> None:
    def plain(value):
        return value._evaluate_all() if isinstance(value, Jacobian) else value

    for name in "add sub mul truediv pow mod floordiv matmul eq ne lt le gt ge".split():
        function = getattr(operator, name)
        setattr(Jacobian, f"__{name}__", lambda a, b, f=function: f(plain(a), plain(b)))
    for name in "add sub mul truediv pow matmul".split():
        function = getattr(operator, name)
        setattr(Jacobian, f"__r{name}__", lambda a, b, f=function: f(plain(b), plain(a)))


_add_operators()


class Hessian(Jacobian):
    """The second derivatives of a number with respect to a pair of tensors."""


def _is_batched(batch_axis, name: str) -> bool:
    if batch_axis is not None and (isinstance(batch_axis, bool) or not isinstance(batch_axis, int)):
        raise ValueError(f"(InvalidArgument) {name}: batch_axis is None or 0, got {type(batch_axis).__name__}.")
    if batch_axis not in (None, 0):
        raise ValueError(f"(InvalidArgument) {name}: batch_axis is None or 0, got {batch_axis}.")
    return batch_axis is not None


def jacobian(ys, xs, batch_axis=None):
    """The derivatives of `ys` with respect to `xs`, from the recorded graph; for tuples a tuple for each of `ys` of one
    for each of `xs`. With `batch_axis=0` the first axis counts independent cases.

    >>> import sampan
    >>> x = sampan.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> sampan.autograd.jacobian(x * x, x)[:].tolist()
    [[2.0, 0.0], [0.0, 4.0]]
    """
    batched = _is_batched(batch_axis, "jacobian")
    if isinstance(ys, (tuple, list)):
        return tuple(jacobian(y, xs, batch_axis) for y in ys)
    if isinstance(xs, (tuple, list)):
        return tuple(Jacobian(ys, x, batched) for x in xs)
    return Jacobian(ys, xs, batched)


def hessian(ys: Tensor, xs, batch_axis=None):
    """The second derivatives of `ys`, one number (or one a case, with `batch_axis=0`), with respect to `xs`; for a
    tuple of `xs` a tuple of tuples, one for each pair.

    >>> import sampan
    >>> x = sampan.to_tensor([1.0, 2.0], stop_gradient=False)
    >>> sampan.autograd.hessian((x * x * x).sum(), x)[:].tolist()
    [[6.0, 0.0], [0.0, 12.0]]
    """
    batched = _is_batched(batch_axis, "hessian")
    cases = ys.shape[0] if batched and ys.ndim else 1
    if ys.size != cases:
        one = "one number a case" if batched else "one number"
        raise ValueError(f"(InvalidArgument) hessian: ys must be {one}, got shape {list(ys.shape)}.")
    several = isinstance(xs, (tuple, list))
    inputs = list(xs) if several else [xs]
    firsts = _core.grad(ys, inputs, None, None, True, True, True)
    from .. import zeros_like

    firsts = [zeros_like(x) if g is None else g for g, x in zip(firsts, inputs)]
    rows = tuple(tuple(Hessian(g, x, batched) for x in inputs) for g in firsts)
    return rows if several else rows[0][0]


def _product(func, xs, v, forward: bool):
    ys, product = _core._jacobian_product(func, xs, v, forward)

    def as_given(values, single):
        return values[0] if single else tuple(values)

    single_input = isinstance(xs, Tensor)
    single_output = len(ys) == 1
    return as_given(ys, single_output), as_given(product, single_output if forward else single_input)


def vjp(func, xs, v=None):
    """The outputs of `func` at `xs`, and the product of `v` with its Jacobian; without `v` it is ones."""
    return _product(func, xs, v, False)


def jvp(func, xs, v=None):
    """The outputs of `func` at `xs`, and the product of its Jacobian with `v`; without `v` it is ones."""
    return _product(func, xs, v, True)
