"""The line that shows how training goes."""

from __future__ import annotations

import numbers
import shutil
import sys
import time

__all__ = ["ProgressBar"]


def _clock(seconds: float) -> str:
    """`35s`, `2:05`, `1:02:05`."""
    s = int(seconds)
    if s > 3600:
        return f"{s // 3600}:{s % 3600 // 60:02}:{s % 60:02}"
    return f"{s // 60}:{s % 60:02}" if s > 60 else f"{s}s"


def _figure(value) -> str:
    """A loss or a metric; an array of one element counts as a number."""
    if getattr(value, "size", None) == 1 and hasattr(value, "item"):
        value = value.item()
    if isinstance(value, numbers.Real) and not isinstance(value, numbers.Integral):
        return f" {value:.4f}" if abs(value) > 1e-3 else f" {value:.4e}"
    return f" {value}"


class ProgressBar:
    """Shows `step  40/938 [>....] - loss: 0.0325 - acc: 0.9938 - ETA: 35s - 38ms/step`.

    With `verbose=1` a terminal or a notebook sees one line that changes; elsewhere, and with 2 and 3, each update is a
    line.
    """

    def __init__(self, num=None, width=30, verbose=1, start=True, file=None, name="step"):
        if isinstance(num, int) and num <= 0:
            raise TypeError(f"(InvalidType) ProgressBar: num should be None or an integer (> 0), received {num}.")
        columns = shutil.get_terminal_size().columns or 80
        self._num = num
        self._width = max(min(width, int(columns * 0.6), columns - 50), 0)
        self._verbose = verbose
        self._name = name
        self.file = file
        self._shown = 0
        self._start = time.time()
        if not start:
            self._start = None

    def _out(self):
        # Looked up late, since standard output may be another one by now.
        return self.file or sys.stdout

    def _is_live(self) -> bool:
        is_terminal = getattr(self._out(), "isatty", lambda: False)()
        return self._verbose == 1 and (is_terminal or "ipykernel" in sys.modules)

    def start(self) -> None:
        """Begins to count the time."""
        self._start = time.time()

    def _position(self, current: int) -> str:
        if not self._num:
            return f"{self._name} {current:3}"
        text = f"{self._name} {current:{len(str(self._num))}}/{self._num}"
        if self._verbose != 1:
            return text
        filled = int(self._width * current / self._num)
        bar = "=" * (filled - 1) + (">" if current < self._num else "=") if filled > 0 else ""
        return f"{text} [{bar}{'.' * (self._width - filled)}]"

    def update(self, current_num: int, values=()) -> None:
        """Shows the step and figures, as pairs of name and value (a number, or a list of them)."""
        each = (time.time() - (self._start or time.time())) / current_num if current_num else 0.0
        line = self._position(current_num)
        for name, value in values:
            line += f" - {name}:" + "".join(
                _figure(v) for v in (value if isinstance(value, (list, tuple)) else [value])
            )
        if self._verbose == 1 and self._num and current_num < self._num:
            line += f" - ETA: {_clock(each * (self._num - current_num))}"
        if each >= 1 or each == 0:
            line += f" - {each:.0f}s/{self._name}"
        elif each >= 1e-3:
            line += f" - {each * 1e3:.0f}ms/{self._name}"
        else:
            line += f" - {each * 1e6:.0f}us/{self._name}"
        if self._verbose not in (1, 2, 3):
            return
        if self._is_live():
            # Blanks wipe out what a longer line left.
            text = "\r" + line.ljust(self._shown)
            self._shown = len(line)
            text += "\n" if not self._num or current_num >= self._num else ""
        else:
            text = line + "\n"
        self._out().write(text)
        self._out().flush()
