"""Programs written for Paddle, unchanged: `import paddle` means sampan.

>>> import sampan.compat
>>> sampan.compat.install_as_paddle()
>>> import paddle.nn.functional as F
>>> import paddle, sampan
>>> paddle is sampan
True
>>> sampan.compat.uninstall()

From a shell, `python -m sampan run train.py` does the same for a whole program and the processes it starts.
"""

from .finder import install_as_paddle, installed, uninstall

__all__ = ["install_as_paddle", "installed", "uninstall"]
