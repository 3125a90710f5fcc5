"""Networks and optimizers for level `O2`: parameters in a low precision, with float32 copies in the optimizer."""

from __future__ import annotations

from .. import _core


def _as_list(value, base: type, what: str) -> list:
    items = list(value) if isinstance(value, (list, tuple)) else [value]
    for item in items:
        if not isinstance(item, base):
            raise TypeError(
                f"(InvalidType) decorate: {what} is a {base.__name__} or a list of them, got {type(item).__name__}."
            )
    return items


def _excluded(layers, given) -> set[int]:
    """The layers that stay as they are: those given, those of given types, and all inside them."""
    from ..nn import Layer

    given = [] if given is None else given if isinstance(given, (list, tuple)) else [given]
    kept = set()
    for item in given:
        if isinstance(item, Layer):
            kept.update(id(layer) for layer in item.sublayers(include_self=True))
        elif isinstance(item, type) and issubclass(item, Layer):
            kept.update(id(layer) for layer in layers if isinstance(layer, item))
        else:
            raise TypeError(f"(InvalidType) decorate: excluded_layers holds layers or types of layers, got {item!r}.")
    return kept


def _stays_float32(layer, dtype: str) -> bool:
    """Statistics of batch norm need float32, and in float16 the other norms do too."""
    from .. import nn

    def types(*names):
        return tuple(getattr(nn, name) for name in names if hasattr(nn, name))

    if isinstance(layer, types("BatchNorm", "BatchNorm1D", "BatchNorm2D", "BatchNorm3D", "SyncBatchNorm")):
        return True
    norms = types("LayerNorm", "InstanceNorm1D", "InstanceNorm2D", "InstanceNorm3D")
    return dtype == "float16" and isinstance(layer, norms)


def _cast(tensor, dtype: str) -> None:
    """Changes the dtype of a parameter or buffer in its place."""
    if "float" not in str(tensor.dtype):
        return
    new = tensor.detach().astype(dtype)
    new.stop_gradient, new.persistable, new.name = tensor.stop_gradient, tensor.persistable, tensor.name
    tensor._replace(new)


def decorate(
    models,
    optimizers=None,
    level: str = "O1",
    dtype="float16",
    master_weight: bool | None = None,
    save_dtype=None,
    master_grad: bool = False,
    excluded_layers=None,
):
    """Prepares networks and optimizers for `auto_cast` of the same level: at `O2` parameters go to `dtype`, but for
    norms and `excluded_layers`, and optimizers keep float32 copies unless `master_weight` is False; `O1` changes nothing.

    `master_grad` keeps gradients in float32 once a `GradScaler` has scaled them down. `save_dtype` is the dtype of what
    `state_dict` gives.
    """
    from ..nn import Layer
    from ..optimizer import Optimizer

    level = str(level).upper()
    if level not in ("O1", "O2"):
        raise ValueError(f"(InvalidArgument) decorate: level is 'O1' or 'O2', got {level!r}.")
    dtype = str(_core._dtype(dtype)).rpartition(".")[2]
    if dtype not in ("float16", "bfloat16"):
        raise ValueError(f"(InvalidArgument) decorate: dtype is 'float16' or 'bfloat16', got {dtype!r}.")
    if save_dtype is not None and save_dtype not in ("float16", "bfloat16", "float32", "float64"):
        raise ValueError(f"(InvalidArgument) decorate: save_dtype is the name of a float type, got {save_dtype!r}.")
    networks = _as_list(models, Layer, "models")
    trained = [] if optimizers is None else _as_list(optimizers, Optimizer, "optimizers")
    if level == "O2":
        layers = [layer for network in networks for layer in network.sublayers(include_self=True)]
        kept = _excluded(layers, excluded_layers)
        for layer in layers:
            if id(layer) not in kept and not _stays_float32(layer, dtype):
                for tensor in [*layer._parameters.values(), *layer._buffers.values()]:
                    if tensor is not None:
                        _cast(tensor, dtype)
        for optimizer in trained:
            if hasattr(type(optimizer), "_multi_precision"):
                optimizer._multi_precision = master_weight is not False
        if master_grad:
            for network in networks:
                for p in network.parameters():
                    p._master_grad = True
        if save_dtype is not None:
            for network in networks:
                _save_as(network, save_dtype)
    return models if optimizers is None else (models, optimizers)


def _save_as(network, save_dtype: str) -> None:
    """Gives what `state_dict` returns another dtype."""
    plain = network.state_dict

    def state_dict(*args, **kwargs):
        state = plain(*args, **kwargs)
        for name, tensor in state.items():
            if "float" in str(tensor.dtype):
                state[name] = tensor.detach().astype(save_dtype)
        return state

    object.__setattr__(network, "state_dict", state_dict)


amp_decorate = decorate
