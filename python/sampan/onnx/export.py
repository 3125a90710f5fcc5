"""`onnx.export`: networks as files that ONNX Runtime and its like read."""

from __future__ import annotations

import os

from ..jit import saving

# Versions of ONNX's operators that are written; Paddle's default of 9 is older than all of them.
_OLDEST = 13
_CONFIGS = {"output_spec", "enable_onnx_checker", "verbose", "auto_upgrade_opset", "custom_op_info", "deploy_backend"}


def export(layer, path, input_spec=None, opset_version=9, **configs) -> None:
    """Writes a network as `path.onnx`, as it computes after `eval()`.

    `input_spec` says what the inputs are like; `None` in a shape stands for any extent. `opset_version` is the version of
    ONNX's operators, from 13 to 21; one that is older is raised to 13, as Paddle's exporter does.

    >>> import sampan, tempfile
    >>> net = sampan.nn.Sequential(sampan.nn.Linear(4, 2), sampan.nn.ReLU())
    >>> path = tempfile.mkdtemp() + "/net"
    >>> sampan.onnx.export(net, path, input_spec=[sampan.static.InputSpec([None, 4], "float32", "x")])
    >>> x = sampan.ones([3, 4])
    >>> bool(sampan.allclose(sampan.onnx.load(path + ".onnx")(x), net(x), atol=1e-6))
    True
    """
    unknown = set(configs) - _CONFIGS
    if unknown:
        raise ValueError(f"(InvalidArgument) onnx.export: there is no config {sorted(unknown)[0]!r}.")
    path = os.fspath(path)
    if not os.path.basename(path):
        raise ValueError(
            f"(InvalidArgument) onnx.export: the path is a folder and the beginning of a file's name, got {path!r}."
        )
    if not isinstance(opset_version, int) or isinstance(opset_version, bool):
        raise TypeError(f"(InvalidType) onnx.export: opset_version is an int, got {type(opset_version).__name__}.")
    graph, _ = saving.traced(layer, input_spec, configs.get("output_spec"), "onnx.export")
    graph.save_onnx(path.removesuffix(".onnx") + ".onnx", max(opset_version, _OLDEST))
