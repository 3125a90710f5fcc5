"""`python -m sampan.distributed.launch --nproc_per_node 2 train.py`: a program in several processes."""

from __future__ import annotations

import sys

from .. import _core


def launch(arguments: list[str] | None = None) -> int:
    """Runs a program as a command line says and gives its exit code. Rank 0 is seen on the screen, all are in the log
    folder."""
    given = sys.argv[1:] if arguments is None else arguments
    try:
        return _core._dist_launch(given, sys.executable)
    except (ValueError, RuntimeError) as problem:
        text = str(problem).removeprefix("(InvalidArgument) ")
        asked = any(word in ("-h", "--help") for word in given)
        print(text.removesuffix("."), file=sys.stdout if asked else sys.stderr)
        return 0 if asked else 2


if __name__ == "__main__":
    sys.exit(launch())
