"""Writes the `.pyi` stubs of the Python package: what its modules get from the registries, with types and text.

    python scripts/python_stubs.py            # writes them beside the modules of python/sampan
    python scripts/python_stubs.py --check    # fails if one of them is stale

A stub replaces the source of its module for type checkers and editors, so it holds the module's own functions and
classes too, without their bodies.
"""

import ast
import importlib
import inspect
import pathlib
import re
import sys
import textwrap
import types

ROOT = pathlib.Path(__file__).resolve().parent.parent / "python"

import sampan
from sampan import _core

PACKAGE = pathlib.Path(sampan.__file__).parent

# Modules whose names come from the registries. Their sources alone would tell an editor nothing.
MODULES = """
    sampan sampan.nn sampan.nn.functional sampan.nn.initializer sampan.optimizer sampan.optimizer.lr sampan.linalg
    sampan.fft sampan.signal sampan.metric sampan.vision.ops sampan.vision.transforms sampan.vision.models
""".split()

# The package has names such as `bool` and `int` of its own, so annotations use others.
HEADER = '''# Made by scripts/python_stubs.py from the registries; do not edit.
from builtins import bool as _bool, float as _float, int as _int, list as _list, str as _str, tuple as _tuple, type as _type
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy

from sampan._core import Parameter, Tensor, dtype as _dtype

DTypeLike = _dtype | _str | _type | numpy.dtype
'''


def typed(annotation):
    """An annotation in the names of the header."""
    return re.sub(r"\b(bool|int|float|str|list|tuple|type|dtype)\b", r"_\1", annotation)


# What the native attributes of a tensor give.
TENSOR_TYPES = {
    "shape": "list[int]", "strides": "list[int]", "ndim": "int", "size": "int", "dtype": "dtype", "stop_gradient": "bool",
    "requires_grad": "bool", "is_leaf": "bool", "name": "str", "persistable": "bool", "grad": "Tensor | None",
    "grad_fn": "str | None", "place": "Any", "offset": "int", "inplace_version": "int", "T": "Tensor", "mT": "Tensor",
    "trainable": "bool", "numpy": "numpy.ndarray", "item": "Any", "tolist": "Any", "detach": "Tensor", "cpu": "Tensor",
    "__len__": "int", "__bool__": "bool", "__float__": "float", "__int__": "int", "__index__": "int", "__hash__": "int",
    "__contains__": "bool", "__iter__": "Iterator[Tensor]", "__repr__": "str", "__str__": "str", "__format__": "str",
    "backward": "None", "clear_grad": "None", "clear_gradient": "None", "set_value": "None", "retain_grads": "None",
    "__setitem__": "None", "is_contiguous": "bool", "dim": "int", "numel": "Tensor", "gradient": "numpy.ndarray | None",
}  # fmt: skip
COMPARISONS = ("__lt__", "__le__", "__eq__", "__ne__", "__gt__", "__ge__")


def docstring(text, indent):
    """A docstring of the first paragraph, indented; `help` shows the rest."""
    text = text.strip().split("\n\n")[0].replace("\\", "\\\\").replace('"""', "'''")
    lines = text.strip().splitlines() or [""]
    body = "\n".join([lines[0], *(f"{indent}{line}".rstrip() for line in lines[1:])])
    end = "" if len(lines) == 1 else f"\n{indent}"
    return f'{indent}"""{body}{end}"""'


def parameter(entry):
    name, _, default, _, kind = entry
    kind = typed(kind)
    return f"{name}: {kind}" if default is None else f"{name}: {kind} = {default}"


def op_stub(public, op, indent="", method=False):
    """An op as a function, or as a method whose first argument is the tensor."""
    info = _core.op_info(op.__name__)
    params = [parameter(p) for p in info["params"]]
    if method:
        params = ["self", *params[1:]]
    # Other names that arguments go by, `name=`, and lists written as several arguments.
    params += ["*args: Any", "**kwargs: Any"]
    head = f"{indent}def {public}({', '.join(params)}) -> {typed(info['returns'])}:"
    text = op.__doc__.split("\n\n")[1]
    return f"{head}\n{docstring(text, indent + '    ')}\n"


def class_stub(name, cls):
    """A class of the registry."""
    definition = cls._definition
    params = ["self", *(parameter(p) for p in definition.params), "**kwargs: Any"]
    if not any(p[0] == "name" for p in definition.params):
        params.insert(-1, "name: _str | None = None")
    bases = ", ".join(base.__name__ for base in cls.__bases__)
    lines = [f"class {name}({bases}):", docstring(definition.doc, "    "), ""]
    lines.append(f"    def __init__({', '.join(params)}) -> None: ...")
    return "\n".join(lines) + "\n"


def is_built(value):
    """Is it a class of the registry?"""
    return isinstance(value, type) and vars(value).get("_definition") is not None


class Bodiless(ast.NodeTransformer):
    """Leaves of functions their heads and their text."""

    def visit_FunctionDef(self, node):
        text = ast.get_docstring(node, clean=False)
        node.body = [ast.Expr(ast.Constant(text))] if text else []
        node.body.append(ast.Expr(ast.Constant(...)))
        return node


def own_stubs(module):
    """The functions and classes that a module's source defines, and its imports, without bodies."""
    tree = ast.parse(inspect.getsource(module))
    kept = []
    # What is imported for type checkers alone, and later for programs, is known to them.
    for_checkers = [n for i in tree.body if isinstance(i, ast.If) and "TYPE_CHECKING" in ast.unparse(i.test) for n in i.body]
    for node in tree.body + for_checkers:
        if isinstance(node, ast.FunctionDef) and node.name in ("__getattr__", "__dir__"):
            continue  # Otherwise every name would be thought to exist.
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            kept.append(Bodiless().visit(node))
        elif isinstance(node, ast.ImportFrom) and node.module != "__future__":
            # Classes of the registries are written out below.
            node.names = [a for a in node.names if not is_built(getattr(module, a.asname or a.name, None))]
            if not node.names:
                continue
            for alias in node.names:
                if alias.name != "*":
                    alias.asname = alias.asname or alias.name
            kept.append(node)
        elif isinstance(node, ast.Import):
            kept.append(node)
        elif isinstance(node, ast.Assign) and all(isinstance(t, ast.Name) for t in node.targets):
            for target in node.targets:
                value = getattr(module, target.id, None)
                if not target.id.startswith("_") and value is not None and not isinstance(value, _core.Op):
                    kind = node.value.id if isinstance(value, type) and isinstance(node.value, ast.Name) else None
                    text = f"{target.id} = {kind}" if kind else f"{target.id}: {_type_name(value)}"
                    kept.extend(ast.parse(text).body)
    return "\n\n".join(ast.unparse(ast.fix_missing_locations(node)) for node in kept)


def _type_name(value):
    kind = type(value).__name__
    return f"_{kind}" if kind in ("dtype", "str", "int", "float", "bool", "list", "tuple") else "Any"


def module_stub(module):
    """The whole stub of a module."""
    parts = [HEADER, "", own_stubs(module)]
    bases = set()
    source = inspect.getsource(module)
    mentioned = {n.name for n in ast.walk(ast.parse(source)) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
    for name, value in sorted(vars(module).items()):
        if name.startswith("_") or name in mentioned:
            continue
        if isinstance(value, _core.Op):
            parts.append(op_stub(name, value))
        elif isinstance(value, _core.Function):
            head = f"def {name}({signature(value)}) -> Any:"
            parts.append(f"{head}\n{docstring(value.__doc__ or name, '    ')}\n")
        elif is_built(value):
            parts.append(class_stub(name, value) if value.__name__ == name else f"{name} = {value.__name__}\n")
            bases.update(base for base in value.__bases__ if vars(module).get(base.__name__) is not base)
    parts[1] = "\n".join(sorted(f"from {base.__module__} import {base.__name__}" for base in bases))
    public = [name for name in sorted(vars(module)) if not name.startswith("_") and name != "annotations"]
    parts.append(f"__all__ = {public!r}")
    return "\n\n".join(parts).rstrip() + "\n"


def signature(function):
    """The parameters of a native or Python function, as they are written."""
    try:
        found = inspect.signature(function)
    except (ValueError, TypeError):
        return "*args: Any, **kwargs: Any"
    shown = []
    for i, p in enumerate(found.parameters.values()):
        plain = p.replace(annotation=inspect.Parameter.empty)
        text = str(plain) if p.default is p.empty or isinstance(p.default, (int, float, str, type(None))) else f"{p.name}=..."
        shown.append("self" if i == 0 and p.name in ("self", "$self") else text)
    if "/" in str(found):
        shown.insert(1, "/")
    return ", ".join(shown)


def tensor_class(cls, base):
    """A native class with all that was attached to it."""
    lines = [f"class {cls.__name__}({base}):" if base else f"class {cls.__name__}:", docstring(cls.__doc__ or "", "    ")]
    if cls is _core.Tensor:
        lines.append("    def __init__(self, data: Any = None, dtype: DTypeLike | None = None, place: Any = None, "
                     "stop_gradient: _bool = True) -> None: ...")
        lines.append("    def __getattr__(self, name: _str) -> Any: ...")
    for name, value in sorted(vars(cls).items()):
        if name in ("__new__", "__init__", "__doc__", "__module__", "__dict__", "__weakref__", "__array_priority__"):
            continue
        if name.startswith("_") and not name.startswith("__"):
            continue
        if isinstance(value, _core.Op):
            lines.append(op_stub(name, value, "    ", method=True))
        elif isinstance(value, (property, types.GetSetDescriptorType)):
            kind = typed(TENSOR_TYPES.get(name, "Any"))
            writes = not isinstance(value, property) or value.fset
            lines.append(f"    @property\n    def {name}(self) -> {kind}:\n{docstring(value.__doc__ or name, '        ')}")
            if writes:
                lines.append(f"    @{name}.setter\n    def {name}(self, value: Any) -> None: ...")
        elif callable(value):
            default = "Tensor" if name.startswith("__") else "Any"
            kind = typed(TENSOR_TYPES.get(name, default))
            other = ", other: Any" if name in COMPARISONS else None
            params = f"self{other}" if other else signature(value)
            mark = "  # type: ignore[override]" if name in ("__eq__", "__ne__") else ""
            head = f"    def {name}({params}) -> {kind}:{mark}"
            lines.append(f"{head}\n{docstring(inspect.getdoc(value) or name, '        ')}")
    return "\n".join(lines) + "\n"


def core_stub():
    """The stub of the native module: what of it is public."""
    parts = [HEADER.replace("from sampan._core import Parameter, Tensor, dtype as _dtype\n\n", "_dtype = dtype\n")]
    parts.append(tensor_class(_core.dtype, None))
    parts.append(tensor_class(_core.Tensor, None))
    parts.append(tensor_class(_core.Parameter, "Tensor"))
    parts.append("def __getattr__(name: _str) -> Any: ...\n")
    return "\n\n".join(parts)


def stubs():
    """Every stub: path and text."""
    yield ROOT / "sampan/_core.pyi", core_stub()
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ModuleNotFoundError:
            continue
        # The package that is imported may be an installed one; the stubs are written beside the sources.
        home = pathlib.Path(module.__file__).relative_to(PACKAGE)
        yield (ROOT / "sampan" / home).with_suffix(".pyi"), module_stub(module)


def main():
    check = "--check" in sys.argv
    stale = []
    for path, text in stubs():
        if not path.exists() or path.read_text() != text:
            stale.append(path.relative_to(ROOT.parent))
            if not check:
                path.write_text(text)
    if check and stale:
        sys.exit("stale: " + ", ".join(map(str, stale)) + "; run python scripts/python_stubs.py")
    print(textwrap.fill("written: " + ", ".join(map(str, stale)) if stale else "all stubs are up to date", 120))


if __name__ == "__main__":
    main()
