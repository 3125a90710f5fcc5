"""Checks what cargo makes of the README's commands.

`cargo run` must find one program. And the `sampan` command and the Python package must ask for the same features of every
library they share: where they differ, `pip install ./python` after `cargo run --release` compiles that library, and all that is
built on it, again.
"""

import json
import subprocess
import sys


def features(package: str) -> dict[str, str]:
    tree = ["cargo", "tree", "--locked", "-p", package, "-e", "no-dev", "-f", "{p}|{f}", "--prefix", "none"]
    lines = subprocess.run(tree, capture_output=True, text=True, check=True).stdout.splitlines()
    return dict(line.removesuffix(" (*)").split("|") for line in lines if "|" in line)


def programs() -> list[str]:
    """What `cargo run` can choose from."""
    command = ["cargo", "metadata", "--locked", "--no-deps", "--format-version", "1"]
    workspace = json.loads(subprocess.run(command, capture_output=True, text=True, check=True).stdout)
    default = [p for p in workspace["packages"] if p["id"] in workspace["workspace_default_members"]]
    return [t["name"] for p in default for t in p["targets"] if "bin" in t["kind"]]


def main() -> None:
    if programs() != ["sampan"]:
        sys.exit(f"`cargo run` must mean the sampan command, and could be {programs()}: see default-members")
    command, package = features("sampan"), features("sampan-py")
    # Only the package speaks to parameter servers; nothing but `sampan` itself stands above it.
    shared = [name for name in command if name in package and not name.startswith("sampan-dist ")]
    differing = [name for name in shared if command[name] != package[name]]
    for name in differing:
        print(f"{name}: the command asks for [{command[name]}], the Python package for [{package[name]}]")
    if differing:
        sys.exit("name the missing features where the library is used, as crates/sampan-data/Cargo.toml does")
    print(f"{len(shared)} libraries with the same features")


main()
