"""`from tb_paddle import SummaryWriter`: curves, pictures and spreads for TensorBoard."""

from __future__ import annotations

import os
import time

from .. import _core

__all__ = ["SummaryWriter"]


class SummaryWriter:
    """Writes what TensorBoard shows into a folder.

    >>> import tempfile
    >>> from sampan.compat.tb_paddle import SummaryWriter
    >>> with SummaryWriter(logdir=tempfile.mkdtemp()) as log:
    ...     log.add_scalar("train/loss", 0.5, 100)
    """

    def __init__(
        self, logdir=None, comment="", max_queue=1024, filename_suffix="", write_to_disk=True, log_dir=None, **_
    ):
        self.logdir = logdir or log_dir or os.path.join("runs", time.strftime("%b%d_%H-%M-%S") + comment)
        self._writer = _core.EventWriter(self.logdir)

    @property
    def path(self) -> str:
        """The file."""
        return os.fspath(self._writer.path)

    def add_scalar(self, tag, scalar_value, global_step=None, walltime=None) -> None:
        """A point of a curve; a number, or an array or tensor of one element."""
        self._writer.scalar(tag, _number(scalar_value), global_step or 0)

    def add_scalars(self, main_tag, tag_scalar_dict, global_step=None, walltime=None) -> None:
        """Points of several curves."""
        for tag, value in tag_scalar_dict.items():
            self.add_scalar(f"{main_tag}/{tag}", value, global_step)

    def add_histogram(self, tag, values, global_step=None, bins=None, walltime=None, max_bins=None) -> None:
        """How the values of an array or tensor are spread."""
        values = values if isinstance(values, _core.Tensor) else _core.to_tensor_py(values)
        self._writer.histogram(tag, values, global_step or 0)

    def add_text(self, tag, text_string, global_step=None, walltime=None) -> None:
        """A text, shown as Markdown."""
        self._writer.text(tag, text_string, global_step or 0)

    def add_image(self, tag, img_tensor, global_step=None, walltime=None, dataformats="CHW") -> None:
        """A picture: floats in [0, 1] or bytes, of the layout `CHW`, `HWC` or `HW`."""
        self._writer.image(tag, _png(img_tensor, dataformats), global_step or 0)

    def flush(self) -> None:
        """Puts everything said so far into the file."""
        self._writer.flush()

    close = flush

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


def _number(value) -> float:
    return float(value.item() if hasattr(value, "item") else value)


def _png(picture, layout: str) -> bytes:
    import io

    import numpy
    from PIL import Image

    pixels = numpy.asarray(picture)
    if layout.upper() == "CHW":
        pixels = pixels.transpose(1, 2, 0)
    if pixels.ndim == 3 and pixels.shape[2] == 1:
        pixels = pixels[:, :, 0]
    if pixels.dtype != numpy.uint8:
        pixels = (pixels.astype("float64") * 255).round().clip(0, 255).astype("uint8")
    file = io.BytesIO()
    Image.fromarray(pixels).save(file, "PNG")
    return file.getvalue()
