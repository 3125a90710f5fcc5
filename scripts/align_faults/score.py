"""When an answer counts: the layer is named, and the cause."""

from __future__ import annotations

AROUND = {"loss", "optimizer", "learning rate", "data", "initialisation"}


def names_place(fault, where: str, reference: str, candidate: str) -> bool:
    """Is it the layer at fault, or a call of a function in it where a function is at fault?"""
    if where in AROUND:
        return where in fault.where.split("|")
    names = [name for name in (reference, candidate) if name]
    return any(fits(place, name, where == "between") for place in fault.where.split("|") for name in names)


def fits(place: str, name: str, between: bool = False) -> bool:
    """Is a name the place? `layer/` is a call of a function in the layer, or what stands between the layers inside of it,
    which is told by the one that gets a wrong input; `*` is any beginning, and `name@2` the second call of a layer."""
    owner, slash, _ = name.partition("/")
    name = name.partition("@")[0]
    if place.endswith("/"):
        inside = name.startswith(place[:-1] + ".") if len(place) > 1 else "." not in name
        return owner == place[:-1] if slash else between and inside
    return name.endswith(place[1:]) if place.startswith("*") else name == place


def named(fault, row: dict) -> bool:
    """The first finding must be right: who reads a report looks there."""
    first = row["findings"][:1]
    return bool(first) and names_place(fault, first[0]["where"], first[0]["reference"] or "", first[0]["candidate"] or "")


def causes_of(fault, row: dict) -> bool:
    first = row["findings"][:1]
    return bool(first) and first[0]["cause"] in fault.cause.split("|")
