#!/usr/bin/env python3
"""Records what the real PaddlePaddle's optimizers, schedules and metrics do with given numbers.

    python scripts/optim_golden.py            write crates/sampan-nn/tests/optim_golden.json
    python scripts/optim_golden.py --check    compare a live run with the committed file

Needs paddlepaddle and numpy. A case is a recipe that the Rust tests read as well: class, arguments, and what came of it.
"""
import argparse
import json
import pathlib
import sys
import warnings

import numpy as np

warnings.filterwarnings("ignore")
ROOT = pathlib.Path(__file__).resolve().parent.parent
GOLDEN = ROOT / "crates/sampan-nn/tests/optim_golden.json"
STEPS = 7  # as many as RAdam needs to trust its second moment
SHAPES = {"w": [2, 3], "b": [3], "c": [2]}


def values(name, seed):
    """Numbers that need no generator: the tests compute the same ones."""
    n = int(np.prod(SHAPES[name]))
    base = sum(ord(ch) for ch in name)
    return np.sin(np.arange(n) * 1.7 + base + seed * 0.9).reshape(SHAPES[name])


def digits(x):
    """Nine significant digits, which hold a float32 exactly."""
    return [float(f"{float(v):.9g}") for v in np.ravel(x)]


# Arguments: plain JSON; {"L1": c}, {"L2": c} penalties, {"value"|"norm"|"global": …} clips, {"schedule": [class, args]}.
OPTIMIZERS = [
    ("SGD", {}),
    ("SGD", {"weight_decay": 0.1}),
    ("SGD", {"weight_decay": {"L1": 0.05}}),
    ("SGD", {"grad_clip": {"value": [0.3, -0.2]}}),
    ("SGD", {"grad_clip": {"norm": 0.5}}),
    ("SGD", {"grad_clip": {"global": 0.7}, "weight_decay": {"L2": 0.2}}),
    ("SGD", {"grad_clip": {"global": 100.0}}),
    ("SGD", {"learning_rate": {"schedule": ["StepDecay", {"learning_rate": 0.5, "step_size": 2}]}}),
    ("SGD", {"groups": [{"weight_decay": 0.3, "learning_rate": 0.5}, {"grad_clip": {"global": 0.2}}], "weight_decay": 0.1}),
    ("SGD", {"attr": {"learning_rate": 0.3, "regularizer": {"L1": 0.1}, "need_clip": False}, "weight_decay": 0.2,
             "grad_clip": {"global": 0.4}}),
    ("Momentum", {}),
    ("Momentum", {"momentum": 0.7, "use_nesterov": True, "weight_decay": 0.1}),
    # Paddle's CPU kernel ignores `rescale_grad`, so it is not asked for here.
    ("Momentum", {"weight_decay": {"L1": 0.1}}),
    ("Momentum", {"weight_decay": {"L2": 0.1}, "grad_clip": {"value": [0.5, None]}}),
    ("Momentum", {"groups": [{"momentum": 0.5}, {"learning_rate": 0.2}]}),
    ("Adagrad", {}),
    ("Adagrad", {"initial_accumulator_value": 0.1, "epsilon": 0.01, "weight_decay": 0.1}),
    ("Adadelta", {}),
    ("Adadelta", {"rho": 0.8, "epsilon": 0.01, "grad_clip": {"norm": 0.4}}),
    ("RMSProp", {}),
    ("RMSProp", {"rho": 0.8, "momentum": 0.5, "centered": True, "epsilon": 0.01, "weight_decay": 0.1}),
    ("Adam", {}),
    ("Adam", {"amsgrad": True, "beta1": 0.8, "beta2": 0.9}),
    ("Adam", {"weight_decay": {"L1": 0.05}, "grad_clip": {"global": 0.5}, "lazy_mode": True}),
    ("Adam", {"groups": [{"beta1": 0.5, "epsilon": 0.1}, {"learning_rate": 2.0, "weight_decay": 0.1}]}),
    ("Adam", {"dtype": "float64", "weight_decay": 0.1}),
    ("Adam", {"frozen": True}),
    ("AdamW", {}),
    ("AdamW", {"weight_decay": 0.3, "amsgrad": True, "decay_only": "w"}),
    ("AdamW", {"groups": [{"weight_decay": 0.5}, {"learning_rate": 0.1}], "weight_decay": 0.1}),
    ("AdamW", {"attr": {"learning_rate": 0.5}, "grad_clip": {"norm": 0.3}}),
    ("Adamax", {}),
    ("Adamax", {"beta1": 0.8, "beta2": 0.9, "epsilon": 0.01, "weight_decay": 0.1}),
    ("Lamb", {}),
    ("Lamb", {"lamb_weight_decay": 0.2, "exclude": "b", "always_adapt": True}),
    ("Lamb", {"lamb_weight_decay": 0.0}),
    ("Lamb", {"lamb_weight_decay": 0.1, "exclude": "w", "grad_clip": {"global": 0.5}}),
    ("NAdam", {}),
    ("NAdam", {"momentum_decay": 0.1, "beta2": 0.9, "weight_decay": 0.1}),
    ("RAdam", {}),
    ("RAdam", {"beta1": 0.8, "beta2": 0.7, "weight_decay": 0.1}),
    ("ASGD", {"batch_num": 3}),
    ("ASGD", {"weight_decay": 0.1}),
    ("Rprop", {"learning_rate": 0.01}),
    ("Rprop", {"learning_rate": 0.1, "learning_rate_range": [0.05, 0.15], "etas": [0.4, 1.5]}),
]

RATES = [
    ("NoamDecay", {"d_model": 64, "warmup_steps": 10}),
    ("PiecewiseDecay", {"boundaries": [3, 9, 20], "values": [0.1, 0.05, 0.02, 0.01]}),
    ("NaturalExpDecay", {"learning_rate": 0.5, "gamma": 0.1}),
    ("InverseTimeDecay", {"learning_rate": 0.5, "gamma": 0.1}),
    ("PolynomialDecay", {"learning_rate": 0.5, "decay_steps": 12, "end_lr": 0.01, "power": 2.0}),
    ("PolynomialDecay", {"learning_rate": 0.5, "decay_steps": 7, "cycle": True}),
    ("LinearWarmup", {"learning_rate": 0.5, "warmup_steps": 6, "start_lr": 0.0, "end_lr": 0.5}),
    ("LinearWarmup", {"learning_rate": {"schedule": ["StepDecay", {"learning_rate": 0.5, "step_size": 4}]},
                      "warmup_steps": 6, "start_lr": 0.1, "end_lr": 0.5}),
    ("LinearWarmup", {"learning_rate": {"schedule": ["CosineAnnealingDecay", {"learning_rate": 0.5, "T_max": 9}]},
                      "warmup_steps": 5, "start_lr": 0.0, "end_lr": 0.4}),
    ("ExponentialDecay", {"learning_rate": 0.5, "gamma": 0.9}),
    ("MultiStepDecay", {"learning_rate": 0.5, "milestones": [4, 11], "gamma": 0.3}),
    ("StepDecay", {"learning_rate": 0.5, "step_size": 5, "gamma": 0.8}),
    ("StepDecay", {"learning_rate": 0.5, "step_size": 5, "last_epoch": 7}),
    ("LambdaDecay", {"learning_rate": 0.5, "lr_lambda": 0.95}),
    ("MultiplicativeDecay", {"learning_rate": 0.5, "lr_lambda": 0.95}),
    ("ReduceOnPlateau", {"learning_rate": 1.0, "factor": 0.5, "patience": 2, "cooldown": 1}),
    ("ReduceOnPlateau", {"learning_rate": 1.0, "mode": "max", "factor": 0.3, "patience": 1, "threshold": 0.2,
                         "threshold_mode": "abs", "min_lr": 0.05}),
    ("CosineAnnealingDecay", {"learning_rate": 0.5, "T_max": 8, "eta_min": 0.01}),
    ("OneCycleLR", {"max_learning_rate": 1.0, "total_steps": 30}),
    ("OneCycleLR", {"max_learning_rate": 1.0, "total_steps": 35, "divide_factor": 5.0, "end_learning_rate": 0.01,
                    "phase_pct": 0.4, "anneal_strategy": "linear", "three_phase": True}),
    ("CyclicLR", {"base_learning_rate": 0.1, "max_learning_rate": 1.0, "step_size_up": 4, "step_size_down": 3}),
    ("CyclicLR", {"base_learning_rate": 0.1, "max_learning_rate": 1.0, "step_size_up": 5, "mode": "triangular2"}),
    ("CyclicLR", {"base_learning_rate": 0.1, "max_learning_rate": 1.0, "step_size_up": 5, "mode": "exp_range",
                  "exp_gamma": 0.9}),
    ("CyclicLR", {"base_learning_rate": 0.1, "max_learning_rate": 1.0, "step_size_up": 3, "scale_fn": 0.8,
                  "scale_mode": "iterations"}),
    ("LinearLR", {"learning_rate": 0.5, "total_steps": 10, "start_factor": 0.25, "end_factor": 0.9}),
    ("CosineAnnealingWarmRestarts", {"learning_rate": 0.5, "T_0": 4, "T_mult": 2, "eta_min": 0.05}),
    ("CosineAnnealingWarmRestarts", {"learning_rate": 0.5, "T_0": 7}),
]


def clip(spec):
    import paddle.nn as nn

    (kind, value), = spec.items()
    if kind == "value":
        return nn.ClipGradByValue(*value)
    return nn.ClipGradByNorm(value) if kind == "norm" else nn.ClipGradByGlobalNorm(value)


def penalty(spec):
    import paddle.regularizer as r

    if isinstance(spec, dict):
        (kind, c), = spec.items()
        return r.L1Decay(c) if kind == "L1" else r.L2Decay(c)
    return spec


def schedule(spec):
    import paddle.optimizer.lr as lr

    name, args = spec
    args = dict(args)
    if isinstance(args.get("learning_rate"), dict):
        args["learning_rate"] = schedule(args["learning_rate"]["schedule"])
    for key in ("lr_lambda", "scale_fn"):
        if key in args:
            base = args[key]
            args[key] = (lambda _: base) if name == "MultiplicativeDecay" else (lambda x: base**x)
    return getattr(lr, name)(**args)


def optimize(name, args):
    import paddle

    args = dict(args)
    dtype = args.pop("dtype", "float32")
    attr = args.pop("attr", None)
    frozen = args.pop("frozen", False)
    params = {}
    for key, shape in SHAPES.items():
        a = paddle.ParamAttr(name=f"{name}.{key}_0")
        if attr and key == "w":
            a.learning_rate = attr.get("learning_rate", 1.0)
            a.regularizer = penalty(attr["regularizer"]) if "regularizer" in attr else None
            a.need_clip = attr.get("need_clip", True)
        with paddle.utils.unique_name.guard():
            p = paddle.create_parameter(shape, dtype, attr=a)
        p.set_value(values(key, 0).astype(dtype))
        params[key] = p
    if frozen:
        params["b"].stop_gradient = True
    if "weight_decay" in args:
        args["weight_decay"] = penalty(args["weight_decay"])
    if "grad_clip" in args:
        args["grad_clip"] = clip(args["grad_clip"])
    lr = args.pop("learning_rate", 0.1)
    sched = schedule(lr["schedule"]) if isinstance(lr, dict) else None
    if "decay_only" in args:
        only = args.pop("decay_only")
        args["apply_decay_param_fun"] = lambda n: f".{only}_" in n
    if "exclude" in args:
        excluded = args.pop("exclude")
        args["exclude_from_weight_decay_fn"] = lambda p: f".{excluded}_" in p.name
    groups = args.pop("groups", None)
    if groups:
        lists = [[params["w"]], [params["b"], params["c"]]]
        given = []
        for members, group in zip(lists, groups):
            group = dict(group)
            if "grad_clip" in group:
                group["grad_clip"] = clip(group["grad_clip"])
            given.append({"params": members, **group})
    else:
        given = list(params.values())
    with paddle.utils.unique_name.guard():
        opt = getattr(paddle.optimizer, name)(learning_rate=sched or lr, parameters=given, **args)
        trace = []
        for step in range(STEPS):
            for key, p in params.items():
                # `c` has no gradient in the first step.
                if p.stop_gradient or (key == "c" and step == 0):
                    continue
                p.grad = paddle.to_tensor(values(key, step + 1).astype(dtype))
            opt.step()
            opt.clear_grad(set_to_zero=False)
            if sched:
                sched.step()
            trace.append({k: digits(p.numpy()) for k, p in params.items()})
    state = {}
    for key, value in opt.state_dict().items():
        if key == "LR_Scheduler":
            state[key] = value
        else:
            state[key] = {"dtype": str(value.dtype).split(".")[-1], "shape": list(value.shape), "values": digits(value.numpy())}
    return {"params": trace, "state": state}


def rates(name, args):
    s = schedule((name, args))
    out, state = [], None
    n = 30
    for i in range(n):
        out.append(s())
        if i == 12:
            state = s.state_dict()
        if i + 1 < n:
            if name == "ReduceOnPlateau":
                s.step(abs(np.sin(i * 0.3)) + 1.0 / (i + 1))
            else:
                s.step()
    jumped = None
    if name != "ReduceOnPlateau":
        s = schedule((name, args))
        s.step(11)
        jumped = s()
    return {"values": out, "state": json.loads(json.dumps(state, default=float)), "at_11": jumped}


def lbfgs(search):
    """Rosenbrock's valley in two parameters."""
    import paddle

    x, y = (paddle.create_parameter([1], "float64") for _ in range(2))
    x.set_value(np.array([-1.2]))
    y.set_value(np.array([1.0]))
    opt = paddle.optimizer.LBFGS(learning_rate=1.0 if search else 1e-3, max_iter=4, line_search_fn=search, parameters=[x, y])

    def closure():
        opt.clear_grad()
        loss = ((1 - x) ** 2 + 100 * (y - x * x) ** 2).sum()
        loss.backward()
        return loss

    trace = []
    for _ in range(STEPS):
        loss = opt.step(closure)
        trace.append(digits([loss.item(), x.item(), y.item()]))
    return trace


def metrics():
    """Three batches of which the last is short."""
    import paddle
    import paddle.metric as M

    out = {"accuracy": [], "functional": [], "binary": [], "auc": []}
    acc = M.Accuracy(topk=(1, 2))
    precision, recall, auc = M.Precision(), M.Recall(), M.Auc(num_thresholds=200)
    for i, n in enumerate([4, 4, 2]):
        scores = np.sin(np.arange(n * 5) * 2.3 + i).reshape(n, 5).astype("float32")
        label = (np.arange(n) * 3 + i) % 5
        shaped = [label, label[:, None], np.eye(5)[label]][i]
        batch = acc.compute(paddle.to_tensor(scores), paddle.to_tensor(shaped))
        out["accuracy"].append([float(v) for v in acc.update(batch)])
        out["functional"].append(float(M.accuracy(paddle.to_tensor(scores), paddle.to_tensor(label[:, None]), k=2)))
        p = (np.sin(np.arange(n) * 1.9 + i) / 2 + 0.5).astype("float32")
        yes = (np.arange(n) + i) % 2
        precision.update(p, yes)
        recall.update(p, yes)
        out["binary"].append([precision.accumulate(), recall.accumulate()])
        auc.update(np.stack([1 - p, p], 1), yes[:, None])
        out["auc"].append(float(auc.accumulate()))
    out["accuracy"].append(acc.accumulate())
    return out


def record():
    return {
        "optimizers": [{"class": n, "args": a, **optimize(n, a)} for n, a in OPTIMIZERS],
        "rates": [{"class": n, "args": a, **rates(n, a)} for n, a in RATES],
        "lbfgs": {"none": lbfgs(None), "strong_wolfe": lbfgs("strong_wolfe")},
        "metrics": metrics(),
    }


def same(a, b):
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[k], b[k]) for k in a)
    if isinstance(a, list):
        return len(a) == len(b) and all(same(x, y) for x, y in zip(a, b))
    if isinstance(a, float):
        return isinstance(b, (int, float)) and abs(a - b) <= 1e-5 * max(1, abs(a))
    return a == b


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    golden = json.loads(json.dumps(record()))
    if options.check:
        fine = same(golden, json.loads(GOLDEN.read_text()))
        print("as committed" if fine else "differs from the committed file")
        sys.exit(not fine)
    parts = [f"{json.dumps(k)}: {{\n" if isinstance(v, dict) else f"{json.dumps(k)}: [\n" for k, v in golden.items()]
    text = []
    for head, part in zip(parts, golden.values()):
        if isinstance(part, dict):
            text.append(head + ",\n".join(f"{json.dumps(k)}: {json.dumps(v)}" for k, v in part.items()) + "\n}")
        else:
            text.append(head + ",\n".join(json.dumps(v) for v in part) + "\n]")
    GOLDEN.write_text("{\n" + ",\n".join(text) + "\n}\n")
    print(f"{len(golden['optimizers'])} optimizers, {len(golden['rates'])} schedules, {GOLDEN.stat().st_size} bytes")


if __name__ == "__main__":
    main()
