"""What the registries of the core hold, sorted into the package's modules."""

from __future__ import annotations

import types

from . import _core

def _collect() -> dict[str, dict[str, _core.Op]]:
    modules: dict[str, dict[str, _core.Op]] = {}
    for name, module, also, inplace in _core.ops():
        for public in (f"{module}.{name}" if module else name, *also):
            home, _, last = public.rpartition(".")
            modules.setdefault(home, {})[last] = _core.op(name)
            if inplace and not last.endswith("_"):
                modules.setdefault(home, {})[last + "_"] = _core.op(name + "_")
    return modules


_FUNCTIONS = _collect()


def functions(module: str) -> dict[str, _core.Op]:
    """The ops of a module (`''` is the top, `'nn.functional'`, `'Tensor'` …) by name."""
    return _FUNCTIONS.get(module, {})


def _classes() -> dict[str, dict[str, _core.ClassDef]]:
    modules: dict[str, dict[str, _core.ClassDef]] = {}
    for definition in _core.classes():
        home = definition.module.removeprefix("sampan").removeprefix(".")
        modules.setdefault(home, {})[definition.name] = definition
    return modules


_CLASSES = _classes()


def classes(module: str) -> dict[str, _core.ClassDef]:
    """The classes of a module by name."""
    return _CLASSES.get(module, {})


class _ClassSignature:
    """`__signature__` of a class of the registry, made when somebody asks; a subclass has its own."""

    def __get__(self, instance, owner):
        if instance is not None or "_definition" not in owner.__dict__:
            raise AttributeError("__signature__")
        made = signature(owner._definition)
        if getattr(owner, "_takes_name", True):
            return made
        return made.replace(parameters=[p for p in made.parameters.values() if p.name != "name"])


def signature(definition):
    """What the constructor of a class takes, as `inspect` shows it."""
    import inspect

    made = eval(f"lambda {definition.text_signature[1:-1]}: None", {})
    return inspect.signature(made)


def define(namespace: dict, module: str, base: type, bases: dict[str, type] | None = None, **more) -> list[str]:
    """Makes a Python class of every class of a module, as a subclass of `base`, which builds itself from `_definition`;
    `bases` are those of single classes."""
    names = []
    for name, definition in classes(module).items():
        if name in namespace:
            continue
        body = {
            "__doc__": definition.doc,
            "__module__": namespace["__name__"],
            "_definition": definition,
            "__signature__": _ClassSignature(),
            **more,
        }
        made = types.new_class(name, ((bases or {}).get(name, base),), exec_body=lambda ns, body=body: ns.update(body))
        namespace[name] = made
        names.append(name)
        for other in definition.also:
            home, _, last = other.rpartition(".")
            if home in ("", module):
                namespace[last] = made
                names.append(last)
    return names


def _collect_plain() -> dict[str, dict[str, _core.Function]]:
    modules: dict[str, dict[str, _core.Function]] = {}
    for module, name, function in _core._functions():
        for public in (f"{module}.{name}", *function.also):
            home, _, last = public.rpartition(".")
            modules.setdefault(home, {})[last] = function
    return modules


_PLAIN = _collect_plain()


def plain_functions(module: str) -> dict[str, _core.Function]:
    """The functions of a module that are no ops, by name."""
    return _PLAIN.get(module, {})
