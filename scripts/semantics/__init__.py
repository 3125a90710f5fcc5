"""Small programs that must mean here what they mean in PaddlePaddle: the cases, one file for each topic.

A case is a function that takes the module `paddle` and gives plain values: numbers, strings, lists, dicts. Tensors and
arrays may be among them; an exception is an answer too, by the name of its class. Every function of a file whose name
has no leading underscore is a case.

    def augmented_assignment_rebinds(paddle):
        x = paddle.ones([2])
        same = x
        x += 1
        return same, x

`@case` says more: `each` calls the function once for each value, `rtol` and `atol` loosen the comparison, and `right`
is the answer where PaddlePaddle is wrong, `because` of what; `crashes` if it must not even be called there.
"""
import contextlib
import importlib
import io
import math
import pathlib
import pkgutil
import warnings
from dataclasses import dataclass
from typing import Any, Callable

import numpy as np

RECORDED = pathlib.Path(__file__).resolve().parents[2] / "python/tests/recorded"
NOTHING = object()


@dataclass
class Case:
    """A program and how its answer is compared."""

    topic: str
    name: str
    program: Callable
    arguments: tuple = ()
    rtol: float = 1e-5
    atol: float = 1e-6
    right: Any = NOTHING
    because: str = ""
    crashes: bool = False

    def answer(self, paddle):
        """What the program gives on this module, as plain values."""
        paddle.seed(0)
        dtype = paddle.get_default_dtype()
        try:
            with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
                warnings.simplefilter("ignore")
                return plain(self.program(paddle, *self.arguments))
        except Exception as error:
            return {"raises": type(error).__name__}
        finally:
            paddle.set_default_dtype(dtype)


def case(each=(), **options):
    """Marks a function with what its cases need; see the module."""
    if ("right" in options) != bool(options.get("because")):
        raise ValueError("`right` and `because` belong together")

    def mark(program):
        program.options = {"each": each, **options}
        return program

    return mark


def topics():
    """The names of the files."""
    return sorted(m.name for m in pkgutil.iter_modules(__path__))


def cases(topic):
    """The cases of one file, in its order."""
    module = importlib.import_module(f"{__name__}.{topic}")
    for name, program in list(vars(module).items()):
        if name.startswith("_") or getattr(program, "__module__", "") != module.__name__ or not callable(program):
            continue
        options = dict(getattr(program, "options", {}))
        each = options.pop("each", ())
        for arguments in each or [()]:
            arguments = arguments if isinstance(arguments, tuple) else (arguments,)
            label = f"{name}({', '.join(map(str, arguments))})" if each else name
            yield Case(topic, label, program, arguments, **options)


def file(topic):
    """Where PaddlePaddle's answers stand."""
    return RECORDED / f"semantics_{topic}.json"


def plain(value):
    """An answer as JSON has it; a tensor or an array is a dict from its dtype and shape to its elements in a row."""
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return float(f"{value:.9g}")
    if isinstance(value, complex):
        return {"complex": [plain(value.real), plain(value.imag)]}
    if isinstance(value, dict):
        return {str(k): plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [plain(v) for v in value]
    if isinstance(value, np.generic):
        return plain(value.item())
    if isinstance(value, np.ndarray):
        return {f"{value.dtype}{list(value.shape)}": plain(value.reshape(-1).tolist())}
    if hasattr(value, "numpy") and hasattr(value, "stop_gradient"):
        dtype = str(value.dtype).rpartition(".")[2]
        array = (value.astype("float32") if dtype == "bfloat16" else value).numpy()
        return {f"{dtype}{list(value.shape)}": plain(array.reshape(-1).tolist())}
    return str(value)


def agree(case, wanted, found):
    """Whether two answers are the same, numbers within the case's tolerance."""
    if isinstance(wanted, dict) and isinstance(found, dict):
        return list(wanted) == list(found) and all(agree(case, wanted[k], found[k]) for k in wanted)
    if isinstance(wanted, list) and isinstance(found, list):
        return len(wanted) == len(found) and all(agree(case, w, f) for w, f in zip(wanted, found))
    if isinstance(wanted, float) and isinstance(found, float) and math.isfinite(wanted) and math.isfinite(found):
        return abs(wanted - found) <= case.atol + case.rtol * abs(wanted)
    if isinstance(wanted, float) and isinstance(found, float):
        return wanted == found or (math.isnan(wanted) and math.isnan(found))
    return type(wanted) is type(found) and wanted == found
