#!/usr/bin/env python3
"""Writes docs/python-coverage.md: which of PaddlePaddle's public names the Python package has, with which arguments.

    scripts/python_coverage.py                   compare the installed sampan with the recorded names
    scripts/python_coverage.py --check           fail where docs/python-coverage.md is stale
    scripts/python_coverage.py --module paddle   compare Paddle with its own record (all must agree); writes nothing
    scripts/python_coverage.py --record          record the names anew (needs paddle)

A name is compatible where each of Paddle's parameters is accepted under its name, in its position and with its default;
further optional parameters are welcome. `inspect.signature` must work on our objects (`__signature__` or
`__text_signature__`), and a method seen on its class has the object itself as first parameter.
"""
import argparse
import collections
import sys
import warnings

import paddle_names as names

PAGE = names.ROOT / "docs/python-coverage.md"
STARS = ("VAR_POSITIONAL", "VAR_KEYWORD")


def differences(theirs, ours, method=False):
    """What keeps a call written for `theirs` from meaning the same for `ours` (both as `describe` gives them)."""
    if theirs["kind"] != ours["kind"] and (theirs["kind"], ours["kind"]) != ("function", "class"):
        return [f"is a {ours['kind']}, not a {theirs['kind']}"]
    expected, received = theirs["parameters"], ours["parameters"]
    if expected is None or [kind for _, kind, _ in expected] == list(STARS):
        return []  # nothing is known about Paddle's parameters
    if received is None:
        return ["has no signature"]
    if method:
        expected, received = without_self(expected), without_self(received)
    expected = without_label(expected, received)
    place = {name: index for index, (name, kind, _) in enumerate(received) if kind not in STARS}
    found = []
    for index, (name, kind, default) in enumerate(expected):
        if kind == "VAR_KEYWORD":
            continue  # options that Paddle does not name; ours may name them
        if kind == "VAR_POSITIONAL":
            if kind not in (k for _, k, _ in received) and expected[-1][1] != "VAR_KEYWORD":
                found.append(f"takes no `*{name}`")
        elif kind == "POSITIONAL_ONLY":
            if index >= len(received) or received[index][1] == "KEYWORD_ONLY":
                found.append(f"takes no argument at position {index + 1}")
        elif name not in place:
            found.append(f"lacks `{name}`")
        else:
            found += compare_parameter(name, kind, default, index, place[name], received[place[name]])
    known = {name for name, _, _ in expected}
    found += [
        f"requires `{name}`"
        for index, (name, kind, default) in enumerate(received)
        if name not in known and kind not in STARS and default is None
        and not (index < len(expected) and expected[index][1] == "POSITIONAL_ONLY")
    ]
    return found


def compare_parameter(name, kind, default, index, at, ours):
    if ours[1] == "POSITIONAL_ONLY":
        yield f"`{name}` is not accepted by name"
    if kind != "KEYWORD_ONLY" and ours[1] == "KEYWORD_ONLY":
        yield f"`{name}` is not accepted by position"
    elif kind != "KEYWORD_ONLY" and at != index:
        yield f"`{name}` is at position {at + 1}, not {index + 1}"
    if default is None and ours[2] is not None:
        return  # more lenient
    if default != ours[2]:
        yield f"`{name}` is required" if ours[2] is None else f"`{name}={ours[2]}`, not `{default}`"


def without_self(parameters):
    return parameters[1:] if parameters and parameters[0][1] not in STARS else parameters


def without_label(expected, received):
    """Without Paddle's last positional `name=None`, a label for graphs, where ours does not take it."""
    positional = [p for p in expected if p[1] == "POSITIONAL_OR_KEYWORD"]
    label = positional and positional[-1][::2] == ["name", "None"] and "name" not in (p[0] for p in received)
    return [p for p in expected if p[0] != "name"] if label else expected


def compare(package):
    """For each namespace: all names, the absent ones, and the differing ones with their differences."""
    for namespace, theirs in names.recorded()["namespaces"].items():
        space = names.resolve(namespace, package)
        absent = [name for name in theirs if not hasattr(space, name)]
        differing = {}
        for name in theirs:
            if name not in absent:
                found = differences(theirs[name], names.describe(space, name), names.is_class(namespace))
                if found:
                    differing[name] = found
        yield namespace, list(theirs), absent, differing


def share(part, whole):
    # Rounded down, so that 100 % means all.
    return f"{100 * part // whole} %"


def page(package):
    """The page, and the number of compatible names and of all."""
    rows, lists, totals, causes = [], [], [0, 0, 0, 0], collections.Counter()
    for namespace, theirs, absent, differing in compare(package):
        compatible = len(theirs) - len(absent) - len(differing)
        counts = [len(theirs), compatible, len(differing), len(absent)]
        totals = [a + b for a, b in zip(totals, counts)]
        causes.update(cause for found in differing.values() for cause in found)
        rows.append((f"`{namespace}`", *counts))
        if absent or differing:
            lists += ["", f"## {namespace}"]
        if absent:
            lists += ["", "Absent: " + ", ".join(f"`{name}`" for name in absent)]
        if differing:
            lists += ["", "Different:", ""] + [f"- `{name}`: {'; '.join(found)}" for name, found in differing.items()]
    lines = [
        "# Coverage of PaddlePaddle's Python names",
        "",
        f"Made by `scripts/python_coverage.py` against PaddlePaddle {names.recorded()['version']}. Compatible: every",
        "parameter of Paddle's is accepted under its name, in its position and with its default. Of classes, the",
        "constructors are compared.",
        "",
        "| namespace | names | compatible | different | absent | share present | share compatible |",
        "|---|---:|---:|---:|---:|---:|---:|",
    ]
    for title, count, good, different, absent in [*rows, ("**all**", *totals)]:
        cells = [title, count, good, different, absent, share(count - absent, count), share(good, count)]
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    often = [f"- {count} times: {cause}" for cause, count in causes.most_common(20) if count > 2]
    if often:
        lines += ["", "## The most common differences", "", *often]
    return "\n".join(lines + lists) + "\n", totals[1], totals[0]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--module", default="sampan", help="the package to compare (sampan)")
    parser.add_argument("--record", action="store_true", help="record the names of the installed paddle")
    parser.add_argument("--check", action="store_true", help="write nothing; fail where the page is stale")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if options.record:
        return names.record()
    if names.resolve("paddle", options.module) is None:
        sys.exit(f"the package {options.module} is not installed in this Python")
    text, compatible, count = page(options.module)
    if options.module != "sampan":
        print(text)
        sys.exit(compatible < count and options.module == "paddle")
    if not options.check:
        PAGE.write_text(text)
    elif not PAGE.exists() or PAGE.read_text() != text:
        sys.exit("docs/python-coverage.md is stale: run scripts/python_coverage.py")
    print(f"{compatible} of {count} names are compatible")


if __name__ == "__main__":
    main()
