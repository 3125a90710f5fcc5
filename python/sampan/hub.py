"""Models from a folder that describes them in a file `hubconf.py`, whose functions each build one."""

import builtins
import importlib.util
import sys
from pathlib import Path

import sampan

__all__ = ["list", "help", "load", "load_state_dict_from_url"]


def list(repo_dir, source="github", force_reload=False):
    """The names of the models that the folder `repo_dir` offers, with `source="local"`.

    >>> import pathlib, tempfile
    >>> from sampan import hub
    >>> folder = pathlib.Path(tempfile.mkdtemp())
    >>> text = "def one(n=1):\\n    'A list of ones.'\\n    return [1] * n"
    >>> _ = (folder / "hubconf.py").write_text(text)
    >>> hub.list(str(folder), source="local")
    ['one']
    >>> hub.help(str(folder), "one", source="local")
    'A list of ones.'
    >>> hub.load(str(folder), "one", source="local", n=3)
    [1, 1, 1]
    """
    conf = _conf(repo_dir, source)
    return [name for name in dir(conf) if callable(getattr(conf, name)) and not name.startswith("_")]


def help(repo_dir, model, source="github", force_reload=False):
    """The documentation of one of the models."""
    return _entry(_conf(repo_dir, source), model).__doc__


def load(repo_dir, model, source="github", force_reload=False, **kwargs):
    """One of the models, built with `kwargs`."""
    conf = _conf(repo_dir, source)
    missing = [name for name in getattr(conf, "dependencies", ()) if importlib.util.find_spec(name) is None]
    if missing:
        raise RuntimeError(f"hub: {model} needs packages that are not installed: {', '.join(missing)}")
    return _entry(conf, model)(**kwargs)


def load_state_dict_from_url(url, model_dir=None, check_hash=False, file_name=None, map_location=None):
    """What the file behind `url` holds, downloaded once into `model_dir`; `check_hash` may be its md5 sum.

    `map_location` "numpy" or "np" gives arrays; any other place is where tensors are anyway.
    """
    from sampan.utils import download

    places = (None, "cpu", "gpu", "xpu", "npu", "numpy", "np")
    if map_location not in places:
        raise ValueError(f"hub: map_location must be one of {places}, but received {map_location!r}")
    folder = Path(model_dir) if model_dir else download.home() / "hub" / "checkpoints"
    path = folder / file_name if file_name else None
    if path is None or not path.exists():
        md5sum = check_hash if isinstance(check_hash, str) else None
        found = Path(download.get_path_from_url(url, str(folder), md5sum, decompress=False))
        path = found.rename(path) if path else found
    return sampan.load(str(path), return_numpy=map_location in ("numpy", "np"))


def _conf(repo_dir, source):
    """The module `hubconf.py` of a folder, read anew."""
    if source not in ("github", "gitee", "local"):
        raise ValueError(f"hub: source must be 'github', 'gitee' or 'local', but received {source!r}")
    if source != "local":
        raise RuntimeError(
            f"hub: repositories on {source} are not fetched. Hint: clone {repo_dir} and call this with the folder "
            "and source='local'"
        )
    path = Path(repo_dir) / "hubconf.py"
    if not path.is_file():
        raise FileNotFoundError(f"hub: {repo_dir} must be a folder with a file hubconf.py, but there is no {path}")
    spec = importlib.util.spec_from_file_location("hubconf", path)
    module = importlib.util.module_from_spec(spec)
    # The file may import its neighbours.
    before = builtins.list(sys.path)
    sys.path.insert(0, str(path.parent))
    try:
        spec.loader.exec_module(module)
    finally:
        sys.path[:] = before
    return module


def _entry(conf, model):
    if not isinstance(model, str):
        raise ValueError(f"hub: model must be the name of a function, but received {type(model).__name__} {model!r}")
    function = getattr(conf, model, None)
    if not callable(function):
        raise RuntimeError(f"hub: {conf.__file__} has no function {model!r}")
    return function
