"""What `Model.save` writes and `Model.load` reads."""

from __future__ import annotations

import os
import warnings

from .. import _core, framework


def save_training(model, path: str) -> None:
    """Parameters, optimizer and loss scaling, each in a file of its own if it has something to keep.

    All files are new or all are old afterwards, even if the process is killed between two of them: what is left to do then
    is done by whoever reads one of them.
    """
    files = {"pdparams": model.network.state_dict()}
    if model._optimizer is not None and (state := model._optimizer.state_dict()):
        files["pdopt"] = state
    if model._scaler is not None and (state := model._scaler.state_dict()):
        files["pdscaler"] = state
    framework._written(_core._save_set, path, framework._plain(files))


def save_inference(model, path: str) -> None:
    """The network for `jit.load`."""
    if model._inputs is None or any(-1 in spec.shape[1:] or not spec.shape for spec in model._inputs):
        raise RuntimeError(
            "(PreconditionNotMet) Model.save: saving for inference needs the shapes of the inputs. Hint: pass "
            "inputs=[InputSpec(…)] to Model, or run a batch before."
        )
    if model._inferred:
        shapes = [spec.shape for spec in model._inputs]
        warnings.warn(f"Model has no 'inputs', so the shapes of the last batch are saved: {shapes}.", stacklevel=4)
    try:
        from .. import jit
    except ImportError:
        raise NotImplementedError(
            "(Unimplemented) Model.save(training=False) needs sampan.jit, which this build lacks."
        ) from None
    jit.save(model.network, path, input_spec=model._inputs)


def load(model, path: str, skip_mismatch: bool, reset_optimizer: bool) -> None:
    """Takes over what `save_training` wrote."""
    base, end = os.path.splitext(path)
    if end not in (".pdparams", ".pdopt", ".pdmodel"):
        base = path
    _core._finish_set(base + ".pdparams")
    if not os.path.exists(base + ".pdparams"):
        raise FileNotFoundError(f"(NotFound) Model.load: there is no file {base}.pdparams.")
    state = framework.load(base + ".pdparams")
    fitting = []
    for name, own in model.network.state_dict().items():
        problem = None
        if name not in state:
            problem = f"{name} is not found in the providing file."
        elif list(state[name].shape) != list(own.shape):
            problem = f"{name} receives a shape {list(state[name].shape)}, but the expected shape is {list(own.shape)}."
        if problem is None:
            fitting.append((own, state[name]))
        elif skip_mismatch:
            warnings.warn(f"Skip loading for {name}. {problem}", stacklevel=3)
            # What the optimizer remembers belongs to other weights.
            reset_optimizer = True
        else:
            raise ValueError(
                f"(InvalidArgument) Model.load: {problem} Hint: skip_mismatch=True leaves such parameters as they are."
            )
    for own, value in fitting:
        own.set_value(value)
    if model._scaler is not None and os.path.exists(base + ".pdscaler"):
        model._scaler.load_state_dict(framework.load(base + ".pdscaler"))
    if model._optimizer is not None and not reset_optimizer and os.path.exists(base + ".pdopt"):
        model._optimizer.set_state_dict(framework.load(base + ".pdopt"))
