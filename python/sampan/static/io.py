"""Models for inference under the names that static programs use."""

from __future__ import annotations

import os

from .. import _core

__all__ = ["load_inference_model", "normalize_program", "save_inference_model"]


def save_inference_model(path_prefix, feed_vars, fetch_vars, executor=None, *, program=None, **kwargs) -> None:
    """Writes a network as `jit.save` does: `feed_vars` are its `InputSpec`s and `fetch_vars` is the network or a function.

    >>> import sampan, tempfile
    >>> path = tempfile.mkdtemp() + "/net"
    >>> spec = sampan.static.InputSpec([None, 2], "float32", "x")
    >>> sampan.static.save_inference_model(path, [spec], sampan.nn.Linear(2, 1))
    >>> _, names, _ = sampan.static.load_inference_model(path)
    >>> names
    ['x']
    """
    from .. import jit

    target = fetch_vars[0] if isinstance(fetch_vars, (list, tuple)) and len(fetch_vars) == 1 else fetch_vars
    if not callable(target):
        raise NotImplementedError(
            "(Unimplemented) static.save_inference_model: there are no static programs here; give a network or a function "
            "as fetch_vars, and InputSpecs as feed_vars."
        )
    specs = feed_vars if isinstance(feed_vars, (list, tuple)) else [feed_vars]
    jit.save(target, path_prefix, input_spec=list(specs))


def load_inference_model(path_prefix, executor=None, **kwargs):
    """Reads a saved network: `[program, feed_target_names, fetch_targets]`. The program is a layer, which is called."""
    from .. import jit

    model, params = kwargs.get("model_filename"), kwargs.get("params_filename")
    path = os.fspath(path_prefix)
    layer = jit.load(path, model_filename=model, params_filename=params) if model else jit.load(path)
    return [layer, [name for name, _, _ in layer._graph.inputs()], layer._output_spec()]


def normalize_program(program, feed_vars, fetch_vars, **kwargs):
    """The program itself: it holds nothing but what its outputs need."""
    if not isinstance(program, (_core.Graph,)) and not hasattr(program, "_graph"):
        raise TypeError(f"(InvalidType) normalize_program: a loaded program is needed, got {type(program).__name__}.")
    return program
