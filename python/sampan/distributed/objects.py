"""Python values that processes give each other: numbers, texts, bytes, lists, tuples, dicts and tensors. They travel as
data: nothing that arrives is run."""

from __future__ import annotations

import numpy

from .. import _core
from . import group as groups


def _packed(value):
    return _core.to_tensor_py(numpy.frombuffer(_core._save_bytes(value, 4), "uint8").copy())


def _unpacked(tensor):
    return _core._load_bytes(tensor.numpy().tobytes(), False, False)[0]


def _sizes(engine, own: int) -> list[int]:
    sizes = [_core.to_tensor_py(numpy.zeros(1, "int64")) for _ in range(engine.size())]
    engine.all_gather(sizes, _core.to_tensor_py(numpy.array([own])), True)
    return [size.item() for size in sizes]


def _room(size: int):
    return _core.to_tensor_py(numpy.zeros(size, "uint8"))


def all_gather_object(object_list: list, obj, group=None) -> None:
    """Appends the values of all processes to a list, in the order of their ranks."""
    engine = groups.of(group, "all_gather_object")
    if engine is None:
        return
    packed = _packed(obj)
    rooms = [_room(size) for size in _sizes(engine, packed.shape[0])]
    engine.all_to_all(rooms, [packed] * engine.size(), True)
    object_list.extend(map(_unpacked, rooms))


def broadcast_object_list(object_list: list, src, group=None) -> None:
    """Gives the values in a list of process `src` to all, in place."""
    engine = groups.of(group, "broadcast_object_list")
    if engine is None:
        return
    mine = engine.ranks[engine.rank] == src
    packed = _packed(list(object_list)) if mine else _room(0)
    size = _sizes(engine, packed.shape[0])[engine.ranks.index(src)]
    room = packed if mine else _room(size)
    engine.broadcast(room, src, True)
    if not mine:
        object_list[:] = _unpacked(room)


def scatter_object_list(out_object_list: list, in_object_list=None, src=0, group=None) -> None:
    """Gives each process one value of a list that process `src` has."""
    engine = groups.of(group, "scatter_object_list")
    if engine is None:
        return
    mine = engine.ranks[engine.rank] == src
    if mine and len(in_object_list or ()) != engine.size():
        raise ValueError(
            f"(InvalidArgument) scatter_object_list: {len(in_object_list or ())} values for {engine.size()} processes."
        )
    given = [_packed(value) for value in in_object_list] if mine else [_room(0)] * engine.size()
    sizes = _core.to_tensor_py(numpy.array([t.shape[0] for t in given]))
    engine.broadcast(sizes, src, True)
    root = engine.ranks.index(src)
    rooms = [_room(sizes.tolist()[engine.rank] if r == root else 0) for r in range(engine.size())]
    engine.all_to_all(rooms, given, True)
    out_object_list[:] = [_unpacked(rooms[root])]


def send_object_list(object_list: list, dst=None, group=None, dst_in_group=None) -> None:
    """Gives the values in a list to process `dst`, which calls `recv_object_list`."""
    engine = groups.of(group, "send_object_list")
    if engine is not None:
        dst = engine.ranks[dst_in_group] if dst_in_group is not None else dst
        packed = _packed(list(object_list))
        engine.send(_core.to_tensor_py(numpy.array([packed.shape[0]])), dst, True)
        engine.send(packed, dst, True)


def recv_object_list(object_list: list, src=None, group=None, src_in_group=None) -> None:
    """Fills a list with the values that process `src` sends."""
    engine = groups.of(group, "recv_object_list")
    if engine is not None:
        src = engine.ranks[src_in_group] if src_in_group is not None else src
        size = _core.to_tensor_py(numpy.zeros(1, "int64"))
        engine.recv(size, src, True)
        room = _room(size.item())
        engine.recv(room, src, True)
        object_list[:] = _unpacked(room)


