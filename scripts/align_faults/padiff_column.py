"""The same faults through PaDiff 0.2, with real Paddle in our place: what it finds, and where.

    pip install padiff paddlepaddle torch
    python scripts/align_faults/padiff_column.py padiff.json [--only WORD]
"""

from __future__ import annotations

import contextlib
import io
import json
import pathlib
import re
import sys
import tempfile
import time

# PaDiff writes its logs into the first folder of the path.
sys.path[:1] = [tempfile.mkdtemp(), str(pathlib.Path(__file__).parent)]

import numpy as np
import paddle
import padiff
import torch
from padiff.trainer import Checker as checker

import setup
from catalogue import FAULTS

# The strictest tolerance at which networks without a fault agree.
OPTIONS = {"atol": 1e-5, "rtol": 1e-4, "compare_mode": "strict"}

found: list = []
_print_info = checker.print_info


def heard(paddle_item, torch_item, exc, step_idx, grad=False, t_root=None, p_root=None):
    """Where PaDiff says the difference is, as it prints it: a layer, or a function in one."""
    node, call = p_root, ""
    while node is not None and not hasattr(node.net, "padiff_path"):
        call = call or getattr(node, "net_str", "")
        node = node.father
    where = node.net.padiff_path.partition(".")[2] if node is not None else ""
    found.append({"where": where, "call": call, "stage": "backward" if grad else "forward"})
    return _print_info(paddle_item, torch_item, exc, step_idx, grad, t_root, p_root)


checker.print_info = heard


def run(fault) -> dict:
    """One fault; PaDiff's own words are kept."""
    found.clear()
    names = {"LSTMClassifier": ["x"], "Transformer": ["source", "target"]}
    case = setup.case_of(fault, paddle)
    # Moving a recurrent layer of Paddle 3.3 fails before its first run, and it is where it should be.
    case.candidate.to = lambda *_, **__: case.candidate
    if fault.network == "LSTMClassifier":
        # Recurrent layers of Paddle have gradients in training mode alone; this network does the same in both.
        case.candidate.train()
    keys = names.get(fault.network, ["x"])
    given = (
        {k: paddle.to_tensor(a) for k, a in zip(keys, case.inputs)},
        {k: torch.from_numpy(np.asarray(a)) for k, a in zip(keys, case.inputs)},
    )
    labels = paddle.to_tensor(case.labels), torch.from_numpy(case.labels)
    loss = (lambda out: case.criterion[1](out, labels[0]), lambda out: case.criterion[0](out, labels[1]))
    layer_map = {}
    if fault.network == "LSTMClassifier":
        layer_map = {case.candidate.lstm: case.reference.lstm, case.candidate.gru: case.reference.gru}
    arguments = {"layer_map": layer_map or None, "loss_fn": loss, "options": dict(OPTIONS), "auto_weights": False}
    if case.optimizer is not None:
        reference, candidate = case.optimizer
        arguments["optimizer"] = [candidate(case.candidate), reference(case.reference)]
        arguments["steps"] = setup.STEPS
    text = io.StringIO()
    start, busy = time.perf_counter(), time.process_time()
    error = ""
    with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
        try:
            ok = bool(padiff.auto_diff(case.candidate, case.reference, given, **arguments))
        except Exception as e:  # the table says that it failed
            ok, error = False, f"{type(e).__name__}: {e}".splitlines()[0][:200]
    # The clock runs on where the process is stopped, the processor's does not.
    seconds = min(time.perf_counter() - start, time.process_time() - busy)
    said = text.getvalue()
    where = dict(found[0]) if found else {"where": "", "call": "", "stage": ""}
    if not found and "Diff found in loss" in said:
        where["stage"] = "loss"
    elif not found and "after optimizer step" in said:
        where["stage"] = "optimizer"
    elif not found and "in model grad" in said:
        where["stage"] = "gradients"
    return {"ok": ok, **where, "error": error, "seconds": round(seconds, 2), "said": re.sub(r"(?s)\n\nPaddle Stacks:.*", "", said)[-1500:]}


def main() -> None:
    target = pathlib.Path(sys.argv[1])
    only = sys.argv[3] if len(sys.argv) > 3 else ""
    rows = {}
    cases = [setup.whole(name) for name in setup.references.NETWORKS] + FAULTS
    for fault in cases:
        key = f"{fault.network}: {fault.name}"
        if only not in key:
            continue
        rows[key] = run(fault)
        row = rows[key]
        print(f"{key:60} {'equal' if row['ok'] else 'differs'} {row['stage']} {row['where']} {row['call']} {row['error']} {row['seconds']} s", flush=True)
    target.write_text(json.dumps(rows, indent=1))


if __name__ == "__main__":
    main()
