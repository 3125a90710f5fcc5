"""Plants the faults one at a time, asks `sampan.align`, and scores its answers.

    make align-faults                              # both columns, and docs/align-faults.md
    PYTHONPATH=python python scripts/align_faults/run.py ours.json [--only WORD] [--show]
"""

from __future__ import annotations

import argparse
import gc
import json
import pathlib
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent))

import sampan
from sampan import align

import setup
from catalogue import FAULTS
from score import causes_of, named


def ask(fault) -> dict:
    """What the tool says about a fault, and how long it takes."""
    case = setup.case_of(fault, sampan)
    start, busy = time.perf_counter(), time.process_time()
    models = case.initial or (case.reference, case.candidate)
    arguments = {}
    if case.initial is None:
        arguments = {"labels": case.labels, "criterion": case.criterion}
    report = align.align(
        *models,
        case.inputs,
        optimizer=case.optimizer,
        training=case.training,
        data=case.data,
        checks=["initialisation"] if case.initial else None,
        **arguments,
    )
    # The clock runs on where the process is stopped, the processor's does not.
    seconds = min(time.perf_counter() - start, time.process_time() - busy)
    findings = [
        {key: getattr(f, key) for key in ("check", "where", "reference", "candidate", "cause", "sentence")}
        for f in report.findings
    ]
    return {"ok": report.ok, "findings": findings, "seconds": round(seconds, 2), "text": report.text()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", type=pathlib.Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args()
    rows = {}
    cases = [setup.whole(name) for name in setup.references.NETWORKS] + FAULTS
    for fault in cases:
        key = f"{fault.network}: {fault.name}"
        if options.only not in key:
            continue
        try:
            rows[key] = row = ask(fault)
        except Exception as e:  # a failure of the tool is a miss
            rows[key] = row = {"ok": None, "findings": [], "seconds": 0, "text": "", "error": f"{type(e).__name__}: {e}"}
            if options.show:
                raise
        gc.collect()
        first = row["findings"][0] if row["findings"] else {}
        if fault.name == "none":
            verdict = "right" if row["ok"] else "FALSE ALARM"
        else:
            layer, cause = named(fault, row), causes_of(fault, row)
            verdict = f"{'layer' if layer else 'NO LAYER'} {'cause' if cause else 'NO CAUSE'}"
        said = f"{first.get('where', '')} {first.get('candidate') or first.get('reference') or ''}: {first.get('cause', '')}"
        print(f"{key:62} {verdict:22} {said} {row.get('error', '')} {row['seconds']} s", flush=True)
        if options.show:
            print(row["text"])
    options.target.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
