#!/usr/bin/env python3
"""Records what small programs mean in the real PaddlePaddle, for python/tests/test_semantics.py.

    python scripts/semantics_golden.py [TOPIC …]            write python/tests/recorded/semantics_TOPIC.json
    python scripts/semantics_golden.py --check [TOPIC …]    compare the recorded answers with the live ones
    python scripts/semantics_golden.py --show NAME          print the answers of the cases whose name contains NAME

The programs stand in scripts/semantics/TOPIC.py.
"""
import argparse
import json
import sys
import warnings

warnings.filterwarnings("ignore")

import paddle  # noqa: E402

import semantics  # noqa: E402


def answers(topic, pattern=""):
    """Every case of a topic with PaddlePaddle's answer."""
    for case in semantics.cases(topic):
        if pattern in case.name:
            yield case, {"crashes": True} if case.crashes else case.answer(paddle)


def check(topic):
    """The names of the cases whose recorded answer is not the live one."""
    recorded, live = json.loads(semantics.file(topic).read_text()), list(answers(topic))
    unknown = recorded.keys() - {case.name for case, _ in live}
    return sorted(unknown) + [
        case.name for case, found in live
        if case.name not in recorded or not semantics.agree(case, recorded[case.name], found)
    ]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("topics", nargs="*", default=semantics.topics(), metavar="TOPIC")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--show", metavar="NAME")
    args = parser.parse_args()
    bad = []
    for topic in args.topics or semantics.topics():
        if args.show is not None:
            for case, found in answers(topic, args.show):
                print(f"{topic}/{case.name}: {json.dumps(found)}")
        elif args.check:
            bad += [f"{topic}/{name}" for name in check(topic)]
        else:
            rows = [f"{json.dumps(case.name)}: {json.dumps(found)}" for case, found in answers(topic)]
            semantics.file(topic).write_text("{\n" + ",\n".join(rows) + "\n}\n")
            print(f"{topic}: {len(rows)} cases")
    for name in bad:
        print(f"{name}: PaddlePaddle answers otherwise now", file=sys.stderr)
    sys.exit(bool(bad))


if __name__ == "__main__":
    main()
