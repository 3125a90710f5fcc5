"""Which layer is which."""

from __future__ import annotations

import json
from dataclasses import dataclass, field

import numpy as np

from .. import _core
from ._arguments import mapping_text
from ._recorder import Recorder, describe
from ._recording import Recording
from .sides import side_of


@dataclass(frozen=True)
class LayerPair:
    """Two layers that are the same; the score is 1 for a perfect fit."""

    reference: str
    candidate: str
    score: float


@dataclass(frozen=True)
class Transform:
    """How the reference's tensor becomes the candidate's, step by step in this order."""

    take: tuple | None = None
    gates: tuple | None = None
    transpose: bool = False
    reshape: bool = False
    put: tuple | None = None

    def apply(self, array, shape=None) -> np.ndarray:
        """The reference's array in the candidate's form."""
        if self.take:
            array = array[self.take[0] : sum(self.take)]
        if self.gates:
            parts = np.split(array, len(self.gates))
            array = np.concatenate([parts[g] for g in self.gates])
        if self.transpose:
            array = array.T
        if self.reshape and shape is not None:
            array = array.reshape(shape)
        return np.ascontiguousarray(array)


@dataclass(frozen=True)
class ParameterPair:
    """Two parameters or buffers that are the same."""

    reference: str
    candidate: str
    transform: Transform


@dataclass
class Pairing:
    """What belongs together."""

    layers: list[LayerPair]
    parameters: list[ParameterPair]
    calls: list[tuple[int, int, bool, bool]]
    left_reference: list[str]
    left_candidate: list[str]
    doubts: list[str]
    _table: str = field(repr=False)

    def table(self) -> str:
        """The pairs as a table; a line of it, `layer = layer`, corrected, is a line of a mapping."""
        return self._table


def structure(model) -> dict:
    """The layers of a model, its classes, settings and parameters, as `structure.json` has them; nothing is run.

    >>> from sampan import align, nn
    >>> [layer["class"] for layer in align.structure(nn.Sequential(nn.Linear(4, 3), nn.ReLU()))["layers"]]
    ['Sequential', 'Linear', 'ReLU']
    """
    side = side_of(model)
    return {"format": 1, "side": side.name, "version": side.version, "layers": describe(side, model), "calls": []}


def _structure(value) -> dict:
    if isinstance(value, Recorder):
        return value.structure()
    if isinstance(value, Recording):
        return value.structure
    return value if isinstance(value, dict) else structure(value)


def pair(reference, candidate, mapping=None) -> Pairing:
    """Pairs the layers and parameters of two recordings, structures or models.

    `mapping` corrects it: a dict `{layer of the reference: layer of the candidate}`, or lines `layer = layer`; a layer
    stands for all that is in it, and `-` for none.

    >>> from sampan import align, nn
    >>> pairing = align.pair(nn.Linear(4, 3), nn.Linear(4, 3))
    >>> [(p.reference, p.candidate) for p in pairing.parameters]
    [('weight', 'weight'), ('bias', 'bias')]
    """
    a, b = json.dumps(_structure(reference)), json.dumps(_structure(candidate))
    text, table = _core._align_pair(a, b, mapping_text(mapping))
    found = json.loads(text)
    parameters = []
    for p in found["parameters"]:
        how = {k: tuple(v) if isinstance(v, list) else v for k, v in p["transform"].items()}
        parameters.append(ParameterPair(p["reference"], p["candidate"], Transform(**how)))
    return Pairing(
        [LayerPair(x["reference"], x["candidate"], x["score"]) for x in found["layers"]],
        parameters,
        [(c["reference"], c["candidate"], c["moved"], c["glue"]) for c in found["calls"]],
        found["left_reference"],
        found["left_candidate"],
        found["doubts"],
        table,
    )


def copy_weights(reference, candidate, mapping=None) -> Pairing:
    """Writes the reference's parameters into the candidate, by pairing the two models; gives the pairing.

    >>> import sampan
    >>> from sampan import align, nn
    >>> one, other = nn.Linear(4, 3), nn.Linear(4, 3)
    >>> pairing = align.copy_weights(one, other)
    >>> bool(sampan.allclose(one.weight, other.weight))
    True
    """
    pairing = pair(reference, candidate, mapping)
    sides = side_of(reference), side_of(candidate)

    def tensors(side, model):
        listed = ((f"{n}.{own}" if n else own, t) for n, layer in side.layers(model) for own, t, *_ in side.parameters(layer))
        return dict(listed)

    ours, theirs = tensors(sides[0], reference), tensors(sides[1], candidate)
    written = {}
    for p in pairing.parameters:
        if p.transform.put:
            continue
        values = p.transform.apply(sides[0].array(ours[p.reference]), tuple(theirs[p.candidate].shape))
        before = written.setdefault(id(theirs[p.candidate]), (p, values))
        if not np.array_equal(before[1], values, equal_nan=True):
            raise ValueError(
                f"(InvalidArgument) copy_weights: {before[0].candidate} and {p.candidate} are one parameter in the candidate, and "
                f"two with different values in the reference ({before[0].reference}, {p.reference}). Hint: untie them, or leave "
                f"one out with a line `{p.reference} = -` of the mapping."
            )
    for p in pairing.parameters:
        target = theirs[p.candidate]
        array = p.transform.apply(sides[0].array(ours[p.reference]), None if p.transform.put else tuple(target.shape))
        if p.transform.put:
            whole = sides[1].array(target)
            whole[p.transform.put[0] : sum(p.transform.put)] = array
            array = whole
        sides[1].set_value(target, array.astype(sides[1].array(target).dtype))
    return pairing
