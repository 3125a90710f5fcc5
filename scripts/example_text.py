"""Examples in docstrings as text: finding them, cutting them into statements, comparing what they print."""
import ast
import re
import textwrap

# Paddle marks parts that its own checker leaves out. Those left out for their output alone still have to run.
DIRECTIVE = re.compile(r"#\s*x?doctest:\s*([+-])(SKIP|REQUIRES)\b(.*)")
ONLY_OUTPUT = re.compile(r"random|diff|environment|change|address|not same|output|windows|xdoctest|version", re.I)
# Another generator gives other numbers from the same seed (NumPy's own is the same).
SEEDED = re.compile(r"(?<!random\.)\bseed\(|manual_seed")
PLACES = re.compile(r"CPUPlace|Place\(\w+(:\d+)?\)|0x[0-9a-f]+|<BLANKLINE>")
HEAD = re.compile(r"Tensor\(shape=\[[\d, ]*\], dtype=\w+, .*?stop_gradient=\w+")
# Not the digits of a name such as float32; the parts of 1.5-2j are two.
NUMBER = re.compile(r"((?:[-+]|(?<![\w.]))(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?\d++)?+)(?![A-Za-ik-z_])")


def code_blocks(doc):
    """The Python programs in a docstring: its code blocks, or all of it from the first prompt on."""
    lines = doc.expandtabs().splitlines()
    starts = [i for i, line in enumerate(lines) if re.match(r"\s*\.\.\s+code-block::\s*(python|pycon)", line)]
    prompt = re.search(r"^ *>>>", doc, re.M)
    if prompt and not starts:
        return [textwrap.dedent(doc[prompt.start() :])]
    blocks = []
    for start in starts:
        indent = len(lines[start]) - len(lines[start].lstrip())
        body = []
        for line in lines[start + 1 :]:
            if line.strip() and len(line) - len(line.lstrip()) <= indent:
                break
            if not re.match(r"\s*:\w+:", line):  # an option of the block
                body.append(line)
        blocks.append(textwrap.dedent("\n".join(body)).strip("\n"))
    return [b for b in blocks if b]


def steps(text, obey_marks=True):
    """The top-level statements of an example: [{source, line, mode, want}].

    The mode is `run`, `heads` (of the output only the shape and type of tensors can be compared) or `skip`.
    """
    if ">>>" not in text:
        return statements(text.splitlines(), ["run"] * len(text.splitlines()), 1, "")
    found, source, modes, want, first = [], [], [], [], 1
    general = "heads" if SEEDED.search(text) else "run"
    marked = {}
    for number, line in enumerate([*text.splitlines(), ">>> "], 1):
        if line.startswith("...") and not want:
            source.append(line[4:])
            modes.append(modes[-1])
        elif line.startswith(">>>"):
            if any(w.strip() for w in want) or number > text.count("\n") + 1:
                found += statements(source, modes, first, "\n".join(want))
                source, modes, first = [], [], number
            source.append(line[4:])
            modes.append(worst([general, *(marked | marks(line[4:], marked, obey_marks)).values()]))
            want = []
        elif source:
            want.append(line)
            if not any(w.strip() for w in want):  # a blank line between statements: the line numbers stay right
                source.append("")
                modes.append(modes[-1])
                want = []
        else:
            first += 1
    return found


def marks(code, marked, obey):
    """What a mark in this line means for it; one that stands alone is kept in `marked` for the lines that follow."""
    found = DIRECTIVE.search(code)
    if not found:
        return {}
    sign, kind, reason = found.groups()
    here = {kind: "run" if sign == "-" else "skip" if obey and not ONLY_OUTPUT.search(reason) else "heads"}
    if code.lstrip().startswith("#"):
        marked.update(here)
    return here


def worst(modes):
    return max(modes, key=["run", "heads", "skip"].index)


def statements(source, modes, first, want):
    found = []
    for node in ast.parse("\n".join(source)).body:
        start = min([node.lineno] + [d.lineno for d in getattr(node, "decorator_list", [])])
        code = "\n".join(source[start - 1 : node.end_lineno])
        mode = worst(modes[start - 1 : node.end_lineno])
        found.append({"source": code, "line": first + start - 1, "mode": mode, "want": ""})
    shown = "\n".join(line for line in want.splitlines() if line.strip() and not line.lstrip().startswith("#"))
    if found and modes[-1] != "skip":  # a mark may stand between the statement and its output
        found[-1] |= {"want": shown, "mode": worst([found[-1]["mode"], modes[-1]])}
    return found


def agrees(want, got, heads_only=False):
    """Whether two outputs are the same but for white space, the place and the last digits of numbers."""
    # NumPy 2 shows the type of its scalars.
    want, got = (re.sub(r"np\.\w+\(([^()]*)\)", r"\1", PLACES.sub("", text)) for text in (want, got))
    if heads_only:
        return not HEAD.search(want) or HEAD.findall(want) == HEAD.findall(got)
    lines = want.splitlines()
    if "..." in lines:  # left out: the beginning and the end have to agree
        cut = lines.index("...")
        kept, shown = len(lines) - cut - 1, got.splitlines()
        return agrees("\n".join(lines[:cut]), "\n".join(shown[:cut])) and (
            not kept or agrees("\n".join(lines[-kept:]), "\n".join(shown[-kept:]))
        )
    theirs, ours = NUMBER.split(want), NUMBER.split(got)  # texts and numbers in turn
    texts = ("".join("".join(text.split()) + "#" for text in side[::2]) for side in (theirs, ours))
    return len(set(texts)) == 1 and all(map(close, theirs[1::2], ours[1::2]))


def close(want, got):
    whole = re.fullmatch(r"-?\d+ -?\d+", f"{want} {got}")
    return want == got or not whole and abs(float(want) - float(got)) <= 1e-3 * max(1, abs(float(want)))
