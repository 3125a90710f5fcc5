"""Finds `paddle` and its parts in sampan. A module has one object for both names."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import sys

# Parts of Paddle, old ones too, whose home in sampan has another name.
_HOMES = {
    "paddle.base": "sampan.compat.base",
    "paddle.fluid": "sampan.compat.fluid",
    "paddle.dygraph": "sampan.compat.fluid.dygraph",
    "paddle.imperative": "sampan.compat.fluid.dygraph",
    "paddle.nn.utils.weight_norm_hook": "sampan.nn.utils.norms",
    "paddle.nn.utils.spectral_norm_hook": "sampan.nn.utils.norms",
    "paddle.base.dygraph.base": "sampan.compat.fluid.dygraph.base",
    "paddle.base.initializer": "sampan.nn.initializer",
    "paddle.base.param_attr": "sampan.nn.attr",
    "paddle.base.unique_name": "sampan.utils.unique_name",
    "paddle.io.dataloader": "sampan.io",
    "paddle.io.dataloader.batch_sampler": "sampan.io.sampler",
    "paddle.io.reader": "sampan.io.loader",
    "paddle.metric.metrics": "sampan.metric",
    "paddle.core": "sampan.compat.base.core",
    "paddle.common_ops_import": "sampan.compat.common_ops_import",
    "paddle.pir": "sampan.compat.pir",
    "paddle.distributed.collective": "sampan.compat.collective",
    "paddle.distributed.communication.group": "sampan.compat.collective",
    "paddle.distributed.communication.reduce": "sampan.compat.collective",
    "paddle.distributed.communication.stream": "sampan.distributed.stream",
    "paddle.distributed.fleet.layers.mpu.mp_layers": "sampan.distributed.fleet.meta_parallel.layers",
    "paddle.distributed.fleet.layers.mpu.mp_ops": "sampan.compat.collective",
    "paddle.distributed.fleet.layers.mpu.random": "sampan.distributed.fleet.meta_parallel.random",
    "paddle.distributed.fleet.meta_parallel.parallel_layers": "sampan.distributed.fleet.meta_parallel",
    "paddle.distributed.fleet.meta_parallel.parallel_layers.mp_layers": "sampan.distributed.fleet.meta_parallel.layers",
    "paddle.distributed.fleet.meta_parallel.parallel_layers.pp_layers": "sampan.distributed.fleet.meta_parallel",
    "paddle.distributed.fleet.meta_parallel.parallel_layers.random": "sampan.distributed.fleet.meta_parallel.random",
    "paddle.incubate.nn.layer": "sampan.incubate.nn",
    "paddle.incubate.nn.layer.fused_dropout_add": "sampan.incubate.nn",
    "paddle.incubate.nn.layer.fused_linear": "sampan.incubate.nn",
    "tb_paddle": "sampan.compat.tb_paddle",
}
# Files of Paddle's that are one module here: programs import from them what the package itself has as well.
_FILES = {
    "paddle.nn.functional": "activation common conv extension input loss norm pooling vision",
    "paddle.nn.initializer": "assign bilinear constant dirac initializer kaiming normal orthogonal uniform xavier",
    "paddle.optimizer": "adadelta adagrad adam adamax adamw lamb lbfgs momentum nadam radam rmsprop rprop sgd",
    "paddle.framework": "dtype io random",
}
for _package, _files in _FILES.items():
    _HOMES |= {f"{_package}.{file}": _package.replace("paddle", "sampan") for file in _files.split()}


def home_of(name: str) -> str | None:
    """The module of sampan that a module of Paddle is: `sampan.nn` for `paddle.nn`; None if it is not one of
    Paddle's."""
    first, dot, rest = name.partition(".")
    if first not in ("paddle", "tb_paddle"):
        return None
    # The longest beginning that has a home of its own.
    known = name
    while known:
        if known in _HOMES:
            return _HOMES[known] + name[len(known) :]
        known = known.rpartition(".")[0]
    return "sampan" + dot + rest


class _Loader(importlib.abc.Loader):
    """Gives the module of sampan under Paddle's name."""

    def __init__(self, home: str, spec: importlib.machinery.ModuleSpec):
        self._home, self._spec = home, spec

    def create_module(self, spec):
        module = importlib.import_module(self._home)
        self._own = module.__spec__
        return module

    def exec_module(self, module):
        theirs = module.__spec__.name
        # It ran when it was imported by its own name, which it keeps.
        module.__spec__ = self._own
        # What it imported is there by Paddle's name too: otherwise `import paddle.amp.auto_cast` would put the module in
        # the place of the function of that name.
        for name, part in list(sys.modules.items()):
            alias = theirs + name.removeprefix(self._home)
            if name.startswith(self._home + ".") and home_of(alias) == name:
                sys.modules.setdefault(alias, part)

    def is_package(self, fullname):
        return self._spec.submodule_search_locations is not None

    def get_code(self, fullname):
        return self._spec.loader.get_code(self._home)

    def get_source(self, fullname):
        return self._spec.loader.get_source(self._home)


class _Finder(importlib.abc.MetaPathFinder):
    """Answers for `paddle`, `paddle.nn`, … before Python looks for files."""

    def find_spec(self, fullname, path=None, target=None):
        home = home_of(fullname)
        if home is None:
            return None
        if not fullname.startswith("paddle") and importlib.machinery.PathFinder.find_spec(fullname):
            return None  # The real package is there.
        spec = _spec_of(home)
        if spec is None:
            raise ModuleNotFoundError(
                f"No module named {fullname!r}: sampan runs in Paddle's place and has no part of this name ({home}).",
                name=fullname,
            )
        found = importlib.machinery.ModuleSpec(fullname, _Loader(home, spec), origin=spec.origin)
        if spec.submodule_search_locations is not None:
            found.submodule_search_locations = list(spec.submodule_search_locations)
        return found


def _spec_of(home: str) -> importlib.machinery.ModuleSpec | None:
    loaded = sys.modules.get(home)
    if loaded is not None:
        return loaded.__spec__
    try:
        return importlib.util.find_spec(home)
    except ModuleNotFoundError:
        return None


_FINDER = _Finder()
_own_version: tuple[str, ...] | None = None


def _show_version(whole: str, *parts: str) -> None:
    import sampan

    sampan.__version__ = whole
    sampan.version.major, sampan.version.minor, sampan.version.patch = parts


def installed() -> bool:
    """Does `import paddle` mean sampan?"""
    return _FINDER in sys.meta_path


def install_as_paddle() -> None:
    """Lets `import paddle`, `paddle.nn`, `paddle.fluid` and so on mean sampan in this process.

    An installed PaddlePaddle stays as it is on disk. From here on `sampan.__version__` is the version of Paddle whose
    API sampan follows, and so are `sampan.version.major`, `minor` and `patch`, since programs compare them;
    `sampan.version.full_version` remains sampan's own.
    """
    import sampan

    global _own_version
    if installed():
        return
    real = sys.modules.get("paddle")
    if real is not None and real is not sampan:
        origin = getattr(real, "__file__", None)
        raise RuntimeError(
            f"(PreconditionNotMet) install_as_paddle: another paddle was imported already, from {origin}. Hint: call "
            "it before the first `import paddle`."
        )
    sys.meta_path.insert(0, _FINDER)
    version = sampan.version
    _own_version = (sampan.__version__, version.major, version.minor, version.patch)
    _show_version(version.api_version, *version.api_version.split("."))
    sys.modules["paddle"] = sampan
    # `import paddle` alone made these attributes too.
    files = [f"{package}.{file}" for package, names in _FILES.items() for file in names.split()]
    for part in ("paddle.base", "paddle.fluid", *files):
        importlib.import_module(part)


def uninstall() -> None:
    """Undoes `install_as_paddle`; modules that were imported by Paddle's names stay where they were bound."""
    import sampan

    global _own_version
    if not installed():
        return
    sys.meta_path.remove(_FINDER)
    _show_version(*_own_version)
    _own_version = None
    for name in [n for n in sys.modules if home_of(n) is not None]:
        if sys.modules[name] is sys.modules.get(home_of(name)):
            del sys.modules[name]
