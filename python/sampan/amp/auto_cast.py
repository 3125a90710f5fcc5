"""Ops in a lower precision where that is safe."""

from __future__ import annotations

import functools

from .. import _core

# Names of Paddle's kernels that are other ops here, or parts of them.
_OTHER_NAMES = {
    "mul": "matmul",
    "lookup_table": "embedding",
    "softmax_with_cross_entropy": "cross_entropy",
    "sigmoid_cross_entropy_with_logits": "binary_cross_entropy_with_logits",
    "max_pool2d_with_index": "max_pool2d",
    "flash_attn": "scaled_dot_product_attention",
    "depthwise_conv2d": "conv2d",
    "tanh_shrink": "tanhshrink",
    "bce_loss": "binary_cross_entropy",
    "pool2d": "avg_pool2d",
    "top_k": "topk",
    "arg_max": "argmax",
    "arg_min": "argmin",
    "sub": "subtract",
    "div": "divide",
}
_MODES = ("linear", "nearest", "bilinear", "bicubic", "trilinear")
_OTHER_NAMES.update({f"{mode}_interp": "interpolate" for mode in _MODES})


@functools.cache
def _known_ops() -> frozenset[str]:
    return frozenset(name for name, *_ in _core.ops())


def _op_name(name: str) -> str:
    """The op that a name means: ours, or that of a kernel of Paddle (`matmul_v2`, `elementwise_add`, `reduce_sum`)."""
    if name in _known_ops():
        return name
    plain = name.removesuffix("_v2").removesuffix("2") if name.endswith(("_v2", "e2", "y2")) else name
    for prefix in ("elementwise_", "reduce_"):
        plain = plain.removeprefix(prefix)
    return _OTHER_NAMES.get(plain, plain)


def _op_names(given, which: str) -> set[str]:
    if given is None:
        return set()
    if isinstance(given, str) or not isinstance(given, (list, tuple, set, frozenset)):
        raise TypeError(
            f"(InvalidType) auto_cast: {which} is a list, tuple or set of names of ops, got {type(given).__name__}."
        )
    return {_op_name(str(name)) for name in given}


class auto_cast:
    """Inside, ops on the white list compute in `dtype`, those on the black list in float32, others in the precision of
    their inputs (level `O1`); level `O2` computes all but a few ops in `dtype`, `OD` the white list alone.

    A context, or a decorator of a function.

    >>> import sampan
    >>> x = sampan.ones([2, 2])
    >>> with sampan.amp.auto_cast(dtype="bfloat16"):
    ...     y = x @ x
    >>> y.dtype == sampan.bfloat16
    True
    """

    def __init__(
        self,
        enable: bool = True,
        custom_white_list=None,
        custom_black_list=None,
        level: str = "O1",
        dtype="float16",
        use_promote: bool = True,
    ):
        level = str(level).upper()
        if level not in ("O0", "OD", "O1", "O2"):
            raise ValueError(f"(InvalidArgument) auto_cast: level is 'O0', 'OD', 'O1' or 'O2', got {level!r}.")
        name = str(_core._dtype(dtype)).rpartition(".")[2]
        if enable and name not in ("float16", "bfloat16"):
            raise ValueError(f"(InvalidArgument) auto_cast: dtype is 'float16' or 'bfloat16', got {name!r}.")
        white = _op_names(custom_white_list, "custom_white_list")
        black = _op_names(custom_black_list, "custom_black_list")
        if white & black:
            both = sorted(white & black)[0]
            raise ValueError(f"(InvalidArgument) auto_cast: {both!r} is on both lists, the white and the black one.")
        self._policy = _core.AmpPolicy(name, level, white, black, use_promote) if enable and level != "O0" else None
        self._dtype = name
        self._told = {
            "enable": enable,
            "custom_white_list": custom_white_list,
            "custom_black_list": custom_black_list,
            "level": level,
            "dtype": name,
            "use_promote": use_promote,
        }
        self._outside: list = []

    def __enter__(self):
        global _last_dtype
        self._outside.append(_core._swap_amp(self._policy))
        _inside.append(self._told)
        _last_dtype = self._dtype
        return self

    def __exit__(self, *_):
        _inside.pop()
        _core._swap_amp(self._outside.pop())
        return False

    def __call__(self, function):
        @functools.wraps(function)
        def wrapped(*args, **kwargs):
            with self:
                return function(*args, **kwargs)

        return wrapped


# What the last `auto_cast` asked for: a scaler has nothing to do for bfloat16, whose range is that of float32.
_last_dtype = "float16"


def _last_asked_for() -> str:
    return _last_dtype


# What the contexts around were asked for, the innermost last.
_inside: list[dict] = []


def amp_state() -> dict | None:
    """What the innermost `auto_cast` was asked for; None outside."""
    return _inside[-1] if _inside else None


class AMPGlobalState:
    """What programs note about mixed precision of the whole process."""

    def __init__(self):
        self.model_parameters = []
        self.use_master_grad = False
        self.already_register_final_backward_hook = False
        self.already_classify_params_meshes = False
        self.mesh2params = {}
        self.amp_dtype = "float32"


_global_state = AMPGlobalState()


def amp_global_state() -> AMPGlobalState:
    """The notes of the process."""
    return _global_state


amp_guard = auto_cast


def autocast(device_type=None, dtype="float16", enabled: bool = True, cache_enabled: bool = True) -> auto_cast:
    """`auto_cast` with the arguments of PyTorch."""
    return auto_cast(enable=enabled, dtype=dtype)


def is_autocast_enabled(device_type=None) -> bool:
    """Is it on?"""
    return _core._amp_policy() is not None


def get_autocast_dtype(device_type=None) -> str:
    """The low precision inside `auto_cast`, else `float32`."""
    policy = _core._amp_policy()
    return "float32" if policy is None else policy.dtype


get_autocast_cpu_dtype = get_autocast_gpu_dtype = get_autocast_dtype
