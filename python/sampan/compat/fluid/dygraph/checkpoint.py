"""State on disk: `save_dygraph` and `load_dygraph`."""

from __future__ import annotations

import os

from .... import _core, framework


def save_dygraph(state_dict, model_path: str) -> None:
    """Writes a layer's state as `model_path.pdparams`, an optimizer's as `model_path.pdopt`."""
    if not os.path.basename(model_path):
        raise ValueError(
            f"(InvalidArgument) save_dygraph: model_path is 'folder/name' or 'name', received {model_path!r}."
        )
    if not state_dict:
        raise ValueError("(InvalidArgument) save_dygraph: the state is empty, there is nothing to save.")
    is_layer = any(isinstance(value, _core.Parameter) for value in state_dict.values())
    framework.save(dict(state_dict), model_path + (".pdparams" if is_layer else ".pdopt"))


def load_dygraph(model_path: str, **configs):
    """The states of a layer and of an optimizer, as `save_dygraph` wrote them; None for one that is not there."""
    base, end = os.path.splitext(model_path)
    if end not in (".pdparams", ".pdopt"):
        base = model_path
    paths = [base + ".pdparams", base + ".pdopt"]
    if not any(map(os.path.exists, paths)):
        raise ValueError(f"(NotFound) load_dygraph: there is neither {paths[0]} nor {paths[1]}.")
    return tuple(framework.load(path) if os.path.exists(path) else None for path in paths)
