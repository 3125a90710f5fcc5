"""Weight norm and spectral norm: hooks that compute a weight from other parameters before each call."""

from __future__ import annotations

from ... import _core
from ...framework import no_grad

_op = _core.op


class _Form:
    """A hook that puts a computed weight in the place of a parameter."""

    kind = ""

    def __init__(self, name: str):
        self.name = name

    def __call__(self, layer, inputs) -> None:
        setattr(layer, self.name, self.compute_weight(layer))

    def attach(self, layer, names: tuple[str, ...]) -> None:
        """Computes the weight before each call from now on."""
        weight = self.compute_weight(layer)
        # The place was a parameter's; a tensor that is computed is no parameter.
        layer._parameters.pop(self.name, None)
        setattr(layer, self.name, weight)
        layer.register_forward_pre_hook(self)

    def detach(self, layer, names: tuple[str, ...]) -> None:
        """Makes the weight, as it is now, a parameter again."""
        with no_grad():
            weight = self.compute_weight(layer).detach()
        for name in (self.name, *names):
            delattr(layer, name)
        setattr(layer, self.name, _core.Parameter(weight))


def _weight_of(layer, name: str, kind: type) -> _core.Parameter:
    for hook in layer._forward_pre_hooks.values():
        if isinstance(hook, _Form) and hook.name == name:
            here = type(layer).__name__
            raise RuntimeError(f"(PreconditionNotMet) {kind.kind}: '{name}' of {here} has a norm already.")
    weight = layer._parameters.get(name)
    if weight is None:
        raise ValueError(
            f"(InvalidArgument) {kind.kind}: {type(layer).__name__} has no parameter '{name}'. Hint: there are "
            f"{', '.join(layer._parameters) or 'none'}."
        )
    return weight


def _remove(layer, name: str, kind: type, parts: tuple[str, ...]):
    for key, hook in layer._forward_pre_hooks.items():
        if isinstance(hook, kind) and hook.name == name:
            hook.detach(layer, parts)
            del layer._forward_pre_hooks[key]
            layer._note_hooks()
            return layer
    raise ValueError(f"(InvalidArgument) remove_{kind.kind}: '{name}' of {type(layer).__name__} has no {kind.kind}.")


class WeightNorm(_Form):
    """`weight = g * v / |v|`, with one length for each position of `dim`, or (-1) one for all."""

    kind = "weight_norm"

    def __init__(self, name: str, dim: int):
        super().__init__(name)
        self.dim = dim

    def _axes(self, v) -> list[int]:
        return [i for i in range(v.ndim) if i != self.dim]

    def lengths(self, v):
        """The lengths that belong to `g`."""
        axes = None if self.dim == -1 else self._axes(v)
        return _op("vector_norm")(v, 2.0, axes) if axes is None or axes else _op("abs")(v)

    def compute_weight(self, layer):
        g, v = getattr(layer, self.name + "_g"), getattr(layer, self.name + "_v")
        if self.dim == -1:
            return v * (g / (self.lengths(v) + 1e-12))
        column = [1] * v.ndim
        column[self.dim] = -1
        return v * (g / _op("clip")(self.lengths(v), 1e-12)).reshape(column)


def weight_norm(layer, name: str = "weight", dim: int | None = 0):
    """Trains a parameter as lengths `name_g` and directions `name_v`: one length for each position of the axis `dim`,
    or (`None`) one for the whole weight.

    >>> import sampan
    >>> fc = sampan.nn.utils.weight_norm(sampan.nn.Linear(3, 4), dim=1)
    >>> sorted(fc.state_dict())
    ['bias', 'weight_g', 'weight_v']
    """
    weight = _weight_of(layer, name, WeightNorm)
    rank = weight.ndim
    dim = -1 if dim is None else dim
    if not -rank <= dim < rank:
        raise ValueError(f"(InvalidArgument) weight_norm: dim must lie in [{-rank}, {rank}), got {dim}.")
    form = WeightNorm(name, dim if dim == -1 else dim % rank)
    with no_grad():
        length, direction = form.lengths(weight).detach(), weight.detach().clone()
    del layer._parameters[name]
    layer.add_parameter(name + "_v", _core.Parameter(direction, trainable=not weight.stop_gradient))
    layer.add_parameter(name + "_g", _core.Parameter(length, trainable=not weight.stop_gradient))
    form.attach(layer, ("_g", "_v"))
    return layer


def remove_weight_norm(layer, name: str = "weight"):
    """Undoes `weight_norm`: the weight keeps its present value and is trained as it is."""
    return _remove(layer, name, WeightNorm, (name + "_g", name + "_v"))


class SpectralNorm(_Form):
    """A weight over its largest singular value, whose vectors get better with each call in training."""

    kind = "spectral_norm"

    def __init__(self, name: str = "weight", n_power_iterations: int = 1, dim: int = 0, eps: float = 1e-12):
        super().__init__(name)
        if n_power_iterations <= 0:
            raise ValueError(f"(InvalidArgument) n_power_iterations must be positive, got {n_power_iterations}.")
        self.n_power_iterations, self.dim, self.eps = n_power_iterations, dim, eps

    def rows(self, weight):
        """The weight as a matrix with one row for each position of `dim`."""
        if self.dim != 0:
            weight = weight.transpose([self.dim, *(i for i in range(weight.ndim) if i != self.dim)])
        return weight.reshape([weight.shape[0], -1])

    def unit(self, x):
        """A vector of length one."""
        return _op("normalize")(x, axis=0, epsilon=self.eps)

    def compute_weight(self, layer):
        weight, u, v = (getattr(layer, self.name + end) for end in ("_orig", "_u", "_v"))
        rows = self.rows(weight)
        if layer.training:
            with no_grad():
                for _ in range(self.n_power_iterations):
                    v.set_value(self.unit(rows.t().matmul(u)))
                    u.set_value(self.unit(rows.matmul(v)))
                # Copies, so that the next call may change them while a gradient still needs these.
                u, v = u.clone(), v.clone()
        return weight / u.matmul(rows.matmul(v))


def spectral_norm(layer, name: str = "weight", n_power_iterations: int = 1, eps: float = 1e-12, dim: int | None = None):
    """Divides a parameter by its largest singular value before each call. The parameter is kept as `name_orig`, the
    singular vectors as the buffers `name_u` and `name_v`."""
    from ... import nn

    weight = _weight_of(layer, name, SpectralNorm)
    if dim is None:
        inputs_first = (nn.Linear, nn.Conv1DTranspose, nn.Conv2DTranspose, nn.Conv3DTranspose)
        dim = 1 if isinstance(layer, inputs_first) else 0
    form = SpectralNorm(name, n_power_iterations, dim, eps)
    with no_grad():
        height, width = form.rows(weight.detach()).shape
        u, v = (form.unit(_op("randn")([n]).astype(weight.dtype)) for n in (height, width))
    del layer._parameters[name]
    layer.add_parameter(name + "_orig", weight)
    setattr(layer, name, weight * 1.0)
    layer.register_buffer(name + "_u", u)
    layer.register_buffer(name + "_v", v)
    layer.register_forward_pre_hook(form)
    return layer


def remove_spectral_norm(layer, name: str = "weight"):
    """Undoes `spectral_norm`: the weight keeps its present value and is trained as it is."""
    return _remove(layer, name, SpectralNorm, (name + "_orig", name + "_u", name + "_v"))
