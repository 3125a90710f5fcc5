"""Checks that every dependency comes from crates.io and has a licence that deny.toml allows.

`cargo deny check licenses bans sources` says the same and more, but takes minutes to build; this needs Python alone.
"""

import json
import re
import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
REGISTRY = "registry+https://github.com/rust-lang/crates.io-index"


def allowed(expression: str, allow: set[str]) -> bool:
    """Does an SPDX expression, `MIT OR (Apache-2.0 AND ISC)`, leave a choice that is allowed? OR binds less than AND."""
    words = re.findall(r"[()]|[^\s()]+", expression.replace("/", " OR "))

    def either() -> bool:
        found = both()
        while words and words[0] == "OR":
            words.pop(0)
            found = both() or found
        return found

    def both() -> bool:
        found = one()
        while words and words[0] == "AND":
            words.pop(0)
            found = one() and found
        return found

    def one() -> bool:
        word = words.pop(0)
        if word == "(":
            found = either()
            words.pop(0)
            return found
        if words and words[0] == "WITH":
            words.pop(0)
            word = f"{word} WITH {words.pop(0)}"
        return word in allow

    return either() and not words


def main() -> int:
    allow = set(tomllib.loads((ROOT / "deny.toml").read_text())["licenses"]["allow"])
    command = ["cargo", "metadata", "--locked", "--all-features", "--format-version", "1"]
    metadata = json.loads(subprocess.run(command, cwd=ROOT, check=True, capture_output=True).stdout)
    members = set(metadata["workspace_members"])
    faults = []
    for package in metadata["packages"]:
        name = f"{package['name']} {package['version']}"
        if package["id"] in members:
            wild = [d["name"] for d in package["dependencies"] if d["req"] == "*" and not d.get("path")]
            faults += [f"{name} takes any version of {d}" for d in wild]
        elif package["source"] != REGISTRY:
            faults.append(f"{name} comes from {package['source']}, not from crates.io")
        if not allowed(package["license"] or "none", allow):
            faults.append(f"{name} has the licence {package['license']}, which deny.toml does not allow")
    for fault in faults:
        print(fault, file=sys.stderr)
    print(f"{len(metadata['packages'])} packages, {len(faults)} faults")
    return 1 if faults else 0


if __name__ == "__main__":
    sys.exit(main())
