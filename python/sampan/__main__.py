"""`python -m sampan`: runs programs written for Paddle, and tells what this package is."""

from __future__ import annotations

import argparse
import contextlib
import platform
import sys

_EXAMPLES = """examples:
  python -m sampan run train.py --epochs 3      train.py says `import paddle`; sampan runs it
  python -m sampan run -m package.train         the same for a module
  python -m sampan align reference candidate    two recordings: where they part, and why
  python -m sampan convert net.pth --to net.pdparams --model resnet50
  python -m sampan quantize net --to small.pdmodel --data examples.npy
  python -m sampan info                         versions, threads and devices"""

# What the `sampan` command does, done here the same way, so that it need not be installed.
_COMMANDS = {
    "align": "compare two recordings of sampan.align, or two files of reprod_log",
    "convert": "make the weights of one framework or format those of another",
    "quantize": "make a saved network smaller and faster",
}


def _command(arguments: list[str]) -> int:
    import signal

    from . import _core

    # Ctrl-C ends it at once, as it does the command; files are written whole or not at all.
    with contextlib.suppress(ValueError):
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    return _core._command(["python -m sampan", *arguments])


def _info() -> None:
    import sampan

    rows = {
        "sampan": sampan.version.full_version,
        "API": f"Paddle {sampan.version.api_version}",
        "Python": platform.python_version(),
        "machine": f"{platform.machine()}, {platform.system()}",
        "threads": sampan._core.num_threads(),
    }
    for name, value in rows.items():
        print(f"{name:<8} {value}")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m sampan",
        description=__doc__,
        epilog=_EXAMPLES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="store_true", help="print the version and exit")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND")
    run = commands.add_parser(
        "run", help="run a program in which `import paddle` means sampan", usage="%(prog)s [-m] PROGRAM [ARGUMENT …]"
    )
    run.add_argument(
        "rest", nargs=argparse.REMAINDER, metavar="PROGRAM", help="a file, or a module after -m, and its arguments"
    )
    for name, does in _COMMANDS.items():
        commands.add_parser(name, help=does, add_help=False)
    commands.add_parser("info", help="print versions, threads and devices")
    commands.add_parser("version", help="print the version")
    return parser


def main(arguments: list[str] | None = None) -> None:
    """The command line."""
    arguments = sys.argv[1:] if arguments is None else arguments
    parser = _parser()
    # What follows `run` belongs to the program, options too.
    if arguments[:1] == ["run"] and arguments[1:2] not in ([], ["-h"], ["--help"]):
        from .compat import run

        rest = arguments[1:]
        if rest[0] == "-m":
            if len(rest) < 2:
                parser.error("run -m needs the name of a module")
            run.run_module(rest[1], rest[2:])
        elif rest[0].startswith("-"):
            parser.error(f"run has no option {rest[0]!r}; options of the program follow its name")
        else:
            run.run_file(rest[0], rest[1:])
        return
    if arguments[:1] and arguments[0] in _COMMANDS:
        sys.exit(_command(arguments))
    chosen = parser.parse_args(arguments)
    if chosen.version or chosen.command == "version":
        import sampan

        print(f"sampan {sampan.version.full_version} (API of Paddle {sampan.version.api_version})")
    elif chosen.command == "info":
        _info()
    elif chosen.command == "run":
        parser.error("run needs a program")
    else:
        parser.print_help()


if __name__ == "__main__":
    main()
