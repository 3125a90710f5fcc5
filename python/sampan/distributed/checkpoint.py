"""Checkpoints that all processes write and read together, in Paddle's files: whoever loads may have other processes and other
placements."""

from __future__ import annotations

import math
import pathlib
import re

from .. import _core
from . import group as groups
from .auto_parallel.placement import Replicate
from .auto_parallel.tensor import OnMesh, box_at, is_elsewhere, moved, wrap
from .sharded_weight import ShardedWeight


def _flat(state: dict, way: tuple = (), found: dict | None = None) -> dict:
    """The values of dicts in dicts by the names they have on disk, each with the way to it."""
    found = {} if found is None else found
    for name, value in state.items():
        here = (*way, str(name))
        key = ".".join(here)
        if isinstance(value, dict):
            _flat(value, here, found)
        elif not isinstance(value, (_core.Tensor, ShardedWeight)):
            raise ValueError(
                f"(InvalidArgument) a state dict has tensors, and dicts of them; {key} is {type(value).__name__}. Hint: save "
                "numbers and texts beside it, by sampan.save."
            )
        elif key in found:
            raise ValueError(
                f"(InvalidArgument) two tensors of a state dict are called {key}: names of dicts in dicts are joined by dots."
            )
        else:
            found[key] = here, value
    return found


def _piece(value):
    """This process's part of a tensor, where it begins, its extents, those of the whole, and which elements are there."""
    if isinstance(value, ShardedWeight):
        flat = value.flattened_range
        told = None if flat is None else (flat.start, flat.stop)
        return value.local_tensor, value.global_offset, value.local_shape, value.global_shape, told
    if isinstance(value, OnMesh):
        whole, mesh = [Replicate() if p.is_partial() else p for p in value.placements], value.process_mesh
        value = moved(value, whole)
        offset, shape = box_at(value.shape, mesh, whole, mesh.coordinates())
        return _core._plain(value), offset, shape, value.shape, None
    return value, [0] * value.ndim, value.shape, value.shape, None


def _told_all(own, group) -> list:
    """What each process says, in the order of their ranks."""
    from .objects import all_gather_object

    found: list = []
    if group is not None and group.size() > 1:
        all_gather_object(found, own, group)
    return found or [own]


def _shared_out(told: list, names: list[str]) -> tuple[list, list[set]]:
    """Who writes which box: those that several processes have go to whoever has least to write."""
    holders: dict[tuple, list[int]] = {}
    about: dict[tuple, list] = {}
    size: dict[tuple, int] = {}
    for rank, pieces in enumerate(told):
        for key, offset, shape, dtype, whole, flat in pieces:
            place = key, tuple(offset), tuple(shape), flat and tuple(flat)
            size[place] = flat[1] - flat[0] if flat else math.prod(shape)
            # Parts without elements are nobody's, unless the tensor has none at all.
            if size[place] == 0 < math.prod(whole):
                continue
            holders.setdefault(place, []).append(rank)
            about[place] = [key, list(offset), list(shape), dtype, list(whole), flat and tuple(flat)]
    load, mine = [0] * len(told), [set() for _ in told]
    found = []
    for place in sorted(holders, key=lambda place: len(holders[place])):
        rank = min(holders[place], key=lambda rank: (load[rank], rank))
        load[rank] += size[place]
        mine[rank].add(place[0])
        found.append((*about[place], names[rank]))
    order = {key: at for at, key in enumerate(dict.fromkeys(place[0] for place in holders))}
    return sorted(found, key=lambda piece: (order[piece[0]], piece[1])), mine


def save_state_dict(
    state_dict: dict,
    path,
    process_group=None,
    coordinator_rank=0,
    unique_id=None,
    async_save=False,
    safetensors=False,
    save_replicas=False,
) -> None:
    """Writes the tensors of a dict into a folder that all processes see; all of them call it. Each writes the parts it has, what
    several have is written once, and process `coordinator_rank` writes what lies where. Paddle reads it, too.

    `unique_id` tells several checkpoints in one folder apart; without it the one with the largest number is written anew, or 0 where
    there is none. `safetensors` is the other format of the parts. The call returns when all is on the disk, with `async_save` as well.
    """
    from ..framework import save
    from .parallel import get_rank

    group = groups.of(process_group, "save_state_dict")
    if group is None:
        return
    folder, rank, ranks = pathlib.Path(path), get_rank(), group.ranks
    if coordinator_rank not in ranks:
        raise ValueError(
            f"(InvalidArgument) save_state_dict: process {coordinator_rank}, which should write what lies where, is none of the "
            f"group {ranks}. Hint: coordinator_rank is the number in the job of one of them."
        )
    if unique_id is not None and int(unique_id) < 0:
        raise ValueError(f"(InvalidArgument) save_state_dict: unique_id is 0 or more, got {unique_id}.")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"(InvalidArgument) save_state_dict: {folder} is a file, a folder is needed.")
    flat = _flat(state_dict)
    parts, pieces = {}, []
    for key, (_, value) in flat.items():
        if is_elsewhere(value):
            continue
        tensor, offset, shape, whole, told = _piece(value)
        parts[key] = tensor.detach()
        pieces.append([key, list(offset), list(shape), tensor.dtype.name, list(whole), told])
    end = "safetensors" if safetensors else "distcp"
    asked = -1 if unique_id is None else int(unique_id)
    told = _told_all([pieces, [list(way) for way, _ in flat.values()], asked, _largest(folder)], group)
    if any(theirs != asked for *_, theirs, _ in told):
        raise ValueError("(InvalidArgument) save_state_dict: unique_id is not the same in all processes.")
    # Nobody writes before all have looked.
    number = max(largest for *_, largest in told) if unique_id is None else asked
    placed, mine = _shared_out([pieces for pieces, *_ in told], [f"{r}_{number}.{end}" for r in ranks])
    metadata, leads = folder / f"{number}.metadata", rank == coordinator_rank
    if leads:
        # Whoever is killed from here on leaves a folder that says so, not one of old and new parts.
        folder.mkdir(parents=True, exist_ok=True)
        metadata.unlink(missing_ok=True)
    problem = None
    _meet(group)
    own = mine[ranks.index(rank)]
    if own:
        try:
            save({key: parts[key] for key in parts if key in own}, str(folder / f"{rank}_{number}.{end}"))
        except Exception as error:
            problem = error
    failed = [who for who, message in zip(ranks, _told_all(str(problem or ""), group)) if message]
    if problem is not None:
        raise problem
    if failed:
        raise RuntimeError(f"(PreconditionNotMet) save_state_dict: process {failed[0]} could not write its part.")
    if leads:
        paths = dict.fromkeys((".".join(way), tuple(way)) for _, ways, *_ in told for way in ways)
        _core.Checkpoint.write(metadata, placed, [(key, list(way)) for key, way in paths])
    _meet(group)


def _meet(group) -> None:
    if group is not None and group.size() > 1:
        group.barrier()


def _largest(folder) -> int:
    """The largest number of a checkpoint in a folder; 0 if there is none."""
    names = [file.name for file in folder.glob("*")]
    found = [re.fullmatch(r"(?:\d+_)?(\d+)\.(?:distcp|safetensors|metadata)", name, re.ASCII) for name in names]
    return max((int(match[1]) for match in found if match), default=0)


def _opened(path, unique_id, who: str):
    """The checkpoint of a number; without one, that with the largest."""
    folder = pathlib.Path(path)
    found = sorted(int(f.stem) for f in folder.glob("*.metadata") if f.stem.isdigit())
    number = int(unique_id) if unique_id is not None else (found or [None])[-1]
    if number not in found:
        have = f"; it has {', '.join(map(str, found))}" if found else ""
        what = "metadata" if number is None else f"{number}.metadata"
        raise FileNotFoundError(
            f"(NotFound) {who}: {folder} has no {what}{have}. Hint: dist.save_state_dict writes it, when every process has "
            "written its part."
        )
    return _core.Checkpoint.open(folder / f"{number}.metadata")


def _no_recipes(aoa_config, who: str) -> None:
    if aoa_config is not None:
        raise NotImplementedError(
            f"(Unimplemented) {who}: aoa_config, which renames and transforms tensors. Hint: load_merged_state_dict gives all of "
            "them by name, to be changed in Python."
        )


def load_state_dict(
    state_dict: dict,
    path,
    process_group=None,
    coordinator_rank=0,
    unique_id=None,
    offload=False,
    mw_name_compatibility=True,
    aoa_config=None,
    safetensors=False,
    worker_groups=None,
    comm_method="broadcast",
) -> None:
    """Fills the tensors of a dict, in place, with those of their names in a folder that `save_state_dict` wrote, here or in
    Paddle. Each process reads what it needs, cut as its tensors are cut; dtypes are those of the tensors that are filled."""
    _no_recipes(aoa_config, "load_state_dict")
    checkpoint = _opened(path, unique_id, "load_state_dict")
    have = {key: shape for key, shape, _ in checkpoint.tensors()}
    wanted, targets = [], []
    for key, (_, value) in _flat(state_dict).items():
        if is_elsewhere(value):
            continue
        if key not in have:
            raise KeyError(f"(NotFound) load_state_dict: {path} has no {key}. It has {', '.join(sorted(have)[:8])}, …")
        tensor, offset, shape, whole, flat = _piece_to_fill(value)
        if list(whole) != have[key]:
            raise ValueError(f"(InvalidArgument) load_state_dict: {key} has shape {list(whole)}, on disk {have[key]}.")
        wanted.append((key, list(offset), list(shape)))
        targets.append((tensor, flat))
    for (tensor, flat), value in zip(targets, checkpoint.read(wanted)):
        if flat is not None:
            value = value.reshape([-1])[flat[0] : flat[1]].reshape(tensor.shape)
        tensor.set_value(value.astype(tensor.dtype))


class _Sum:
    """A tensor that is a sum of parts takes its values as a whole."""

    def __init__(self, tensor):
        self._tensor, self.dtype = tensor, tensor.dtype

    def set_value(self, value) -> None:
        mesh = self._tensor.process_mesh
        self._tensor.set_value(wrap(value, mesh, [Replicate()] * mesh.ndim, value.shape))


def _piece_to_fill(value):
    if isinstance(value, OnMesh) and any(p.is_partial() for p in value.placements):
        return _Sum(value), [0] * len(value.shape), value.shape, value.shape, None
    return _piece(value)


def load_merged_state_dict(
    path, prefix=None, unique_id=None, offload=False, aoa_config=None, safetensors=False
) -> dict:
    """The whole tensors of a folder that `save_state_dict` wrote, by name; with `prefix` those whose names begin with it and a
    dot, by what follows."""
    _no_recipes(aoa_config, "load_merged_state_dict")
    checkpoint = _opened(path, unique_id, "load_merged_state_dict")
    start = "" if not prefix else prefix.rstrip(".") + "."
    found = [(key, [0] * len(shape), shape) for key, shape, _ in checkpoint.tensors() if key.startswith(start)]
    return {key[len(start) :]: value for (key, *_), value in zip(found, checkpoint.read(found))}
