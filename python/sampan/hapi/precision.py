"""Mixed precision, as `Model.prepare(amp_configs=…)` describes it."""

from __future__ import annotations

_LISTS = ("custom_white_list", "custom_black_list", "custom_black_varnames")
_SCALING = (
    "init_loss_scaling",
    "incr_ratio",
    "decr_ratio",
    "incr_every_n_steps",
    "decr_every_n_nan_or_inf",
    "use_dynamic_loss_scaling",
)
_LEVELS = ("O0", "O1", "O2")


class Precision:
    """Level, lists of ops and loss scaling."""

    def __init__(self, configs=None):
        configs = {"level": configs} if isinstance(configs, str) else dict(configs or {"level": "O0"})
        self.level = configs.pop("level", "O1")
        if self.level not in _LEVELS:
            raise ValueError(
                f"(InvalidArgument) prepare: the level of amp_configs is 'O0', 'O1' or 'O2', received {self.level!r}."
            )
        if "use_pure_fp16" in configs:
            raise ValueError(
                "(InvalidArgument) prepare: amp_configs has no 'use_pure_fp16'. Hint: it depends on 'level' alone."
            )
        if "use_fp16_guard" in configs:
            raise ValueError("(InvalidArgument) prepare: 'use_fp16_guard' is for static graphs only.")
        unknown = [key for key in configs if key not in _LISTS + _SCALING]
        if unknown:
            raise ValueError(
                f"(InvalidArgument) prepare: amp_configs has unknown keys {unknown}. Hint: besides 'level' there are "
                f"{', '.join(_SCALING + _LISTS)}."
            )
        # `custom_black_varnames` names variables of static graphs; there are none here.
        self.lists = {key: configs[key] for key in _LISTS[:2] if key in configs}
        self.scaling = {key: configs[key] for key in _SCALING if key in configs}

    @property
    def is_mixed(self) -> bool:
        """Is anything computed in half precision?"""
        return self.level != "O0"

    def cast(self):
        """The context in which the network runs."""
        if not self.is_mixed:
            import contextlib

            return contextlib.nullcontext()
        from ..amp import auto_cast

        return auto_cast(enable=True, level=self.level, **self.lists)

    def scaler(self):
        """The scaling of the loss."""
        from ..amp import GradScaler

        return GradScaler(**self.scaling)

    def decorate(self, network, optimizer):
        """Half-precision parameters, where the level asks for them."""
        if self.level != "O2" or optimizer is None:
            return network, optimizer
        from ..amp import decorate

        return decorate(models=network, optimizers=optimizer, level="O2")
