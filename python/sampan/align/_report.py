"""What a comparison found."""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass, field

from .. import _core
from ._arguments import mapping_text, names, number, path as _path


@dataclass(frozen=True)
class Finding:
    """One difference: where it is, and why."""

    #: The check that found it: forward, backward, data, metric, loss, optimizer, training, initialisation.
    check: str
    #: layer, function, between, data, loss, optimizer, learning rate, metric, initialisation.
    where: str
    #: The layer or call of the reference.
    reference: str
    #: The layer or call of the candidate.
    candidate: str
    #: A word of the catalogue, empty if the cause is not known.
    cause: str
    #: One sentence for people.
    sentence: str
    #: What speaks for it.
    evidence: list[str] = field(default_factory=list)
    #: `confirmed`: the cause explains the numbers; `likely`: it fits; `unknown`.
    certainty: str = "unknown"
    #: Does the difference show in the numbers of this run, or only in the settings?
    visible: bool = True


class Report:
    """The verdict on two sides."""

    def __init__(self, native):
        self._native = native

    @functools.cached_property
    def data(self) -> dict:
        """All of it, as plain values."""
        return json.loads(self._native.json())

    @property
    def ok(self) -> bool:
        """Is nothing different?"""
        return self.data["ok"]

    @functools.cached_property
    def findings(self) -> list[Finding]:
        """The differences, the first and surest first."""
        names = Finding.__dataclass_fields__
        return [Finding(**{k: v for k, v in f.items() if k in names}) for f in self.data["findings"]]

    @property
    def first_forward(self) -> str | None:
        """The candidate's first layer or call that diverges forward."""
        return self.data.get("first_forward")

    @property
    def first_backward(self) -> str | None:
        """The candidate's first layer or call that diverges on the way back."""
        return self.data.get("first_backward")

    def text(self) -> str:
        """The report as text."""
        return self._native.text()

    def html(self, path=None) -> str:
        """The report as one page, which is written to `path` if one is given."""
        page = self._native.html()
        if path is not None:
            path = _path(path, "Report.html")
            try:
                with open(path, "w", encoding="utf-8") as file:
                    file.write(page)
            except OSError as error:
                raise type(error)(f"(External) Report.html: the page cannot be written to {path}: {error.strerror}.") from None
        return page

    def logs(self, folder) -> list[str]:
        """Writes `forward_diff.log` and its like in `reprod_log`'s words; gives their paths."""
        return [str(p) for p in self._native.logs(_path(folder, "Report.logs"))]

    def __str__(self) -> str:
        return self.text()

    def __repr__(self) -> str:
        return f"Report: {'aligned' if self.ok else f'{len(self.findings)} findings'}"


def compare(reference, candidate, *, mapping=None, checks=None, tolerance: float | None = None) -> Report:
    """Compares two recordings: `Recording`s, folders, or `.npy` files of `reprod_log`.

    `checks` are some of forward, data, metric, loss, optimizer, backward, training and initialisation.
    """
    from ._align import as_recording

    a, b = as_recording(reference), as_recording(candidate)
    wanted, limit = names(checks, "compare"), number(tolerance, "compare", "tolerance")
    return Report(_core._align_compare(a._native, b._native, mapping_text(mapping), wanted, limit))
