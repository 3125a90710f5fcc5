"""States of networks that lie on meshes, on disk: whoever loads may have other processes and other placements."""

from __future__ import annotations

import pathlib

from .. import _core
from . import group as groups
from .auto_parallel.api import shard_tensor, unshard_dtensor
from .auto_parallel.tensor import OnMesh

_FILE = "state.pdparams"


def _flat(state: dict, before: str = "") -> dict:
    """The tensors of a dict in a dict, by their whole names."""
    found = {}
    for name, value in state.items():
        if isinstance(value, dict):
            found.update(_flat(value, f"{before}{name}."))
        elif isinstance(value, _core.Tensor):
            found[before + name] = value
    return found


def save_state_dict(
    state_dict: dict, path, process_group=None, coordinator_rank=0, unique_id=None, async_save=False
) -> None:
    """Writes the tensors of a dict into a folder, whole ones; all processes call it, and `coordinator_rank` writes."""
    from ..framework import save
    from .parallel import get_rank

    whole = {n: unshard_dtensor(t) if isinstance(t, OnMesh) else t for n, t in _flat(state_dict).items()}
    folder = pathlib.Path(path) if unique_id is None else pathlib.Path(path, str(unique_id))
    if get_rank() == coordinator_rank:
        folder.mkdir(parents=True, exist_ok=True)
        save(whole, str(folder / _FILE))
    _wait(process_group)


def _wait(process_group) -> None:
    engine = groups.of(process_group, "save_state_dict")
    if engine is not None and engine.size() > 1:
        engine.barrier()


def load_state_dict(
    state_dict: dict, path, process_group=None, coordinator_rank=0, unique_id=None, offload=False, mw_name_compatibility=True
) -> None:
    """Fills the tensors of a dict, in place, with those of their names that `save_state_dict` wrote, cut as they are cut here."""
    from ..framework import load

    folder = pathlib.Path(path) if unique_id is None else pathlib.Path(path, str(unique_id))
    file = folder / _FILE
    if not file.exists():
        raise FileNotFoundError(f"(NotFound) load_state_dict: {file} is not there. Hint: dist.save_state_dict writes it.")
    saved = load(str(file))
    for name, tensor in _flat(state_dict).items():
        if name not in saved:
            raise KeyError(f"(NotFound) load_state_dict: {folder} has no {name}.")
        value = saved[name]
        if list(value.shape) != list(tensor.shape):
            raise ValueError(
                f"(InvalidArgument) load_state_dict: {name} has shape {list(tensor.shape)}, on disk {list(value.shape)}."
            )
        if isinstance(tensor, OnMesh):
            value = _core._plain(shard_tensor(value, tensor.process_mesh, tensor.placements))
            _core._plain(tensor).set_value(value)
        else:
            tensor.set_value(value)
