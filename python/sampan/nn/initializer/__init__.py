"""First values of parameters: Paddle's `nn.initializer`."""

from __future__ import annotations

import warnings

from ... import _core, _registry


class Initializer:
    """Makes the first values of a parameter.

    A subclass of your own defines `forward(var, block=None)`, which fills `var` or returns its values.

    >>> import sampan
    >>> class Steps(sampan.nn.initializer.Initializer):
    ...     def forward(self, var, block=None):
    ...         var.set_value(sampan.arange(var.size, dtype=var.dtype).reshape(var.shape))
    >>> sampan.nn.Linear(2, 2, weight_attr=Steps()).weight.tolist()
    [[0.0, 1.0], [2.0, 3.0]]
    """

    _definition = None

    def __init__(self, *args, **kwargs):
        if self._definition is not None:
            self._made_from = (args, kwargs)
            self._make(args, kwargs)

    def _make(self, args: tuple, kwargs: dict) -> None:
        """`TruncatedNormal(weight, std=0.02)`, which fills nothing and takes the weight for the mean, is met in programs
        for Paddle: it is an initializer there that nobody uses. Here it says so."""
        if self._definition.name != "Assign":
            args = tuple(_number(a) for a in args)
            kwargs = {name: _number(a) for name, a in kwargs.items()}
            if any(isinstance(a, _core.Tensor) for a in (*args, *kwargs.values())):
                here = type(self).__name__
                warnings.warn(
                    f"{here} was given a tensor as a number and fills nothing. Hint: {here}(…)(tensor) fills one.",
                    stacklevel=4,
                )
                self._made, self._settings = None, {}
                return
        self._made, self._settings = self._definition.make(*args, **kwargs)

    def __call__(self, param, block=None):
        """Fills a parameter that exists already."""
        return self.forward(param, block)

    def forward(self, var, block=None):
        """Fills a parameter."""
        if self._definition is None:
            raise NotImplementedError(
                f"(Unimplemented) {type(self).__name__} has no forward(). Hint: define forward(var, block=None)."
            )
        var.set_value(self._filler().init(var.shape, var.dtype))
        return var

    def _filler(self):
        if self._made is None:
            here = type(self).__name__
            raise TypeError(f"(InvalidType) {here} was built with a tensor as a number. Hint: {here}(…)(tensor).")
        return self._made

    @property
    def _core(self):
        cls = type(self)
        own = cls.forward is not Initializer.forward or cls.__call__ is not Initializer.__call__
        return _core._python_initializer(self) if own or self._definition is None else self._filler()

    def __getattr__(self, name):
        # What it was built from: `init._low` or `init.low`.
        settings = self.__dict__.get("_settings", {})
        for key in (name, name.removeprefix("_")):
            if key in settings:
                return settings[key]
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'")

    def __getstate__(self):
        return {name: value for name, value in self.__dict__.items() if name != "_made"}

    def __setstate__(self, state):
        self.__dict__.update(state)
        if "_made_from" in state:
            self._make(*state["_made_from"])

    def __repr__(self):
        inner = ", ".join(f"{name}={value}" for name, value in self.__dict__.get("_settings", {}).items())
        return f"{type(self).__name__}({inner})"


def _number(value):
    return value.item() if isinstance(value, _core.Tensor) and value.size == 1 else value


def set_global_initializer(weight_init, bias_init=None) -> None:
    """From now on fills weights, and biases if `bias_init` is given, wherever nothing else is said about a parameter;
    `set_global_initializer(None)` goes back to each layer's own default."""
    _core._set_global_initializer(weight_init, bias_init)


def calculate_gain(nonlinearity: str, param=None) -> float:
    """The factor that keeps the deviation of values through a nonlinearity."""
    return _core._calculate_gain(nonlinearity, None if param is None else float(param))


_registry.define(globals(), "nn.initializer", Initializer)
