"""Both columns as a page: `python scripts/align_faults/table.py ours.json padiff.json > docs/align-faults.md`."""

from __future__ import annotations

import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent))

from catalogue import FAULTS
from score import AROUND, causes_of, fits, named

NETWORKS = "LeNet AlexNet ResNet18 MobileNetV3 LSTMClassifier Transformer ViT".split()

HEAD = """# Injected faults

Seven networks in PyTorch ([reference.py](../scripts/align_faults/reference.py)) and in Paddle's words
([candidate.py](../scripts/align_faults/candidate.py)), with the same weights. {count} faults
([catalogue.py](../scripts/align_faults/catalogue.py)) are planted in the second, one at a time, and `sampan.align` is asked
where the two part and why. The first finding of the report counts, and no other.

* *Layer*: it names the layer at fault, the call of a function in the layer's `forward` (or the layer that gets a wrong input
  because of it), or the part around the network: loss, optimizer, learning rate, data, initialisation.
* *Cause*: its word for the cause is one that the catalogue lists for the fault.
* The last {held} faults were written when the tool was finished; the others were known while it was made, and some of them
  led to changes in it. Both are counted apart. The catalogue's words for causes were chosen with the tool's vocabulary at
  hand, and after their first run two of the held-out rows were corrected: one fault had not been planted at all, and calls
  inside of the loss function now count as the loss. When the tool learned to name whole blocks, `block_missing` became a
  right answer for the block that is left out.
* The same faults go through PaDiff 0.2 with PaddlePaddle in our place, at the strictest tolerance at which networks without a
  fault agree, with a layer map for recurrent layers. A layer that it names for a function inside of it counts, and so does
  the function of a layer without parameters; what it also says about the network without a fault does not. Naming causes,
  and data, learning rates and initial weights are not its aim.

`make align-faults` runs everything and writes this page.

| | sampan.align | PaDiff 0.2 |
|---|---|---|
| networks without a fault that are called equal | {clean} of {nets} | {padiff_clean} of {nets} |
| the layer, call or part is named | {layers} of {count} ({layer_share}) | {padiff_layers} of {count} ({padiff_share}) |
| … of the {held} that were held out | {held_layers} | {held_padiff} |
| the cause is named | {causes} of {count} ({cause_share}) | – |
| … of the {held} that were held out | {held_causes} | – |
| a difference is seen | {seen} of {count} | {padiff_seen} of {count} |
| the slowest | {slowest} s | {padiff_slowest} s |

PaDiff's alarm about the networks with Adam is the bias of the keys in an attention: its gradient is nothing but rounding, and
Adam makes a step of it that is as large as any other.

"""


WITHOUT_PARAMETERS = r"(^|\.)(pool\d|avgpool|maxpool|relu|act|features\.[268]|classifier\.[03])$"


def padiff_named(fault, row: dict, clean: dict) -> bool:
    """PaDiff's answer, unless it says the same about the network without a fault."""
    if row["ok"] or (not row["where"] and not row["stage"]):
        return False
    if fault.where.split("|")[0] in AROUND:
        return row["stage"] in fault.where.split("|") and clean["stage"] != row["stage"]
    if row["stage"] not in ("forward", "backward"):
        return False
    places = [place.rstrip("/") for place in fault.where.split("|")]
    inside = lambda place: not row["where"] or place.startswith(row["where"] + ".")  # noqa: E731
    # Layers without parameters are functions to PaDiff, which it names in the layer around them.
    if row["call"] and any(re.search(WITHOUT_PARAMETERS, place) and inside(place) for place in places):
        return True
    return any(fits(place, row["where"]) if place else not row["where"] for place in places)


def mark(yes: bool) -> str:
    return "yes" if yes else "**no**"


def main() -> None:
    ours, padiff = (json.loads(pathlib.Path(path).read_text()) for path in sys.argv[1:3])
    rows, totals = [], dict.fromkeys("layers causes seen padiff_layers padiff_seen held_layers held_causes held_padiff".split(), 0)
    for held in (False, True):
        for fault in sorted((f for f in FAULTS if f.held_out == held), key=lambda f: NETWORKS.index(f.network)):
            network = fault.network
            key = f"{network}: {fault.name}"
            row, other = ours[key], padiff[key]
            layer, cause = named(fault, row), causes_of(fault, row)
            there = padiff_named(fault, other, padiff[f"{network}: none"])
            totals["layers"] += layer
            totals["causes"] += cause
            totals["seen"] += row["ok"] is False
            totals["padiff_layers"] += there
            totals["padiff_seen"] += not other["ok"] and not other["error"]
            totals["held_layers"] += layer and held
            totals["held_causes"] += cause and held
            totals["held_padiff"] += there and held
            first = row["findings"][0] if row["findings"] else {}
            said = f"`{first['candidate'] or first['reference'] or first['where']}`: {first['cause'] or 'no cause'}" if first else "nothing"
            place = other["where"] or ("the network" if other["stage"] in ("forward", "backward") else "")
            theirs = other["error"] and "fails" or " ".join(filter(None, [other["stage"], f"`{place}`" if place else "", other["call"]])) or "equal"
            where = fault.where.split("|")[0]
            where = "the network's own calls" if where == "/" else where
            cells = [network, fault.name, f"`{where}`" if where not in AROUND and " " not in where else where, said, mark(layer), mark(cause), theirs, mark(there)]
            rows.append("| " + " | ".join(cells) + " |")
    count = len(rows)
    percent = lambda n: f"{100 * n / count:.0f} %"  # noqa: E731
    clean = [ours[f"{n}: none"]["ok"] for n in NETWORKS]
    times = [row["seconds"] for row in ours.values()], [row["seconds"] for row in padiff.values()]
    print(
        HEAD.format(
            count=count,
            held=sum(f.held_out for f in FAULTS),
            nets=len(NETWORKS),
            clean=sum(map(bool, clean)),
            padiff_clean=sum(padiff[f"{n}: none"]["ok"] for n in NETWORKS),
            layer_share=percent(totals["layers"]),
            cause_share=percent(totals["causes"]),
            padiff_share=percent(totals["padiff_layers"]),
            slowest=round(max(times[0]), 1),
            padiff_slowest=round(max(times[1]), 1),
            **totals,
        ),
        end="",
    )
    print("| network | fault | where it is | first finding | layer | cause | PaDiff says | layer |")
    print("|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))


if __name__ == "__main__":
    main()
