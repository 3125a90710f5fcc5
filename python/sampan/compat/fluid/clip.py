"""Limits on gradients, by their old names too."""

from .. import _late

_NEW = {
    name: f"sampan.nn:ClipGradBy{name.removeprefix('GradientClipBy')}"
    for name in ("GradientClipByValue", "GradientClipByNorm", "GradientClipByGlobalNorm")
}
_NEW |= {name: f"sampan.nn:{name}" for name in ("ClipGradByValue", "ClipGradByNorm", "ClipGradByGlobalNorm")}

__getattr__ = _late.names(
    __name__, _NEW, "there are GradientClipByValue, GradientClipByNorm and GradientClipByGlobalNorm."
)
