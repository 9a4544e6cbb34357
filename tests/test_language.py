"""One language: phrases that docs/glossary.md advises against stay out of what people read.

Read are string literals and docstrings of src/, strings and comments of the page, Markdown and the Makefile. Text in
backquotes or in a fenced block is a quotation and does not count. Files that are still to be rewritten are listed in
tests/language_backlog.txt with their number of hits. The list can only shrink: `python -m tests.test_language` lowers
the numbers after a rewrite and never raises one.
"""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

from tests.shared.sources import parsed

ROOT = Path(__file__).resolve().parent.parent
BACKLOG = Path(__file__).with_name("language_backlog.txt")

# What to avoid, as docs/glossary.md spells it; what finds it; what to write instead.
PHRASES: tuple[tuple[str, str, str], ...] = (
    ("tell, told", r"\b(?:tell|tells|told|telling)\b", "show, report, identify, distinguish"),
    ("mend", r"\bmend(?:s|ed|ing)?\b", "fix"),
    ("aloud", r"\baloud\b", "prints a warning"),
    ("2× as fast", r"\bas fast\b(?! as\b)", "2× faster, speed-up of 2×"),
    ("noughts", r"\bnoughts?\b", "zeros"),
    ("so many rows", r"\bso many\b", "n rows, the number of rows"),
    ("whom", r"\bwhom\b", "which rank, which thread"),
    ("for want of", r"\bfor want of\b", "X not found"),
    ("may be chance", r"\b(?:be|is|are|by|than|nothing|what) chance\b", "within noise"),
    ("no accident", r"\b(?:no|by) accident\b", "significant"),
    ("stands (of data)", r"\b(?:stand|stands|stood)\b(?!-| alone\b| for\b| still\b)", "is"),
    ("lies (of data)", r"\b(?:lie|lies)\b", "is"),
    ("nobody, whoever", r"\b(?:nobody|whoever|somebody)\b", "no process, the caller"),
    ("who comes late", r"\bwho (?:comes?|waits?|is late|arrives?|asks?)\b", "the rank that arrives late"),
    ("his", r"\b(?:his|him)\b", "its"),
    ("is obeyed", r"\b(?:is|are) obeyed\b", "stepscope honours X"),
    (
        "is no profile",
        r"(?<!\bthere )\b(?:is|are|was|were) no\b(?!-| longer\b| more\b| less\b| better\b| worse\b)",
        "is not a profile",
    ),
    ("knows no steps", r"\bknows? no\b", "has no steps"),
    ("played again", r"\b(?:play|plays|played)\b", "replayed, simulated"),
    ("a stretch of time", r"\bstretch(?:es)?\b", "an interval"),
    ("the begin of", r"\bbegin of\b|\bthe begin\b", "the start of"),
    ("remarks", r"\bremarks?\b", "notes"),
    ("a slow world", r"\bslow world\b", "a throttled browser"),
    ("of no use", r"\bof no use\b", "say what to do instead"),
    ("4 ms beside it would go too", r"\bbeside (?:it|them)\b|\bwould go too\b", "another 4 ms would disappear as well"),
    ("in 9 of 10 cases", r"\bin \d+ of \d+ cases\b", "p90"),
    ("not kept (of a limit)", r"\b(?:is|are) (?:not )?kept by\b|\bnot kept\b", "exceeded, met"),
    ("not decided", r"\bnot decided\b", "inconclusive"),
    ("3 problems more", r"\b(?:problem|row|line|step|event|file|name)s? more\b", "3 more problems"),
    ("say which", r"\bsay which\b", "show"),
)  # fmt: skip
_COMPILED = tuple((label, re.compile(pattern, re.IGNORECASE), instead) for label, pattern, instead in PHRASES)

_QUOTED = re.compile(r"``[^`]*``|`[^`\n]*`")
_FENCED = re.compile(r"^ *```.*?^ *```", re.MULTILINE | re.DOTALL)
_LINK_TARGET = re.compile(r"\]\([^)\s]*\)")
_SCRIPT_TEXT = re.compile(
    r"""//[^\n]*|/\*.*?\*/|"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*'|`(?:[^`\\]|\\.)*`""", re.DOTALL
)


def texts_of_python(source: str) -> Iterator[str]:
    """String literals, f-strings whole, and docstrings; names of columns and the like are single words and harmless."""
    tree = parsed(source)
    inside = {id(part) for node in ast.walk(tree) if isinstance(node, ast.JoinedStr) for part in node.values}
    for node in ast.walk(tree):
        if isinstance(node, ast.JoinedStr):
            yield "".join(str(part.value) if isinstance(part, ast.Constant) else "…" for part in node.values)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in inside:
            yield node.value if " " in node.value else ""


def texts_of(name: str, source: str) -> Iterator[str]:
    """What people read of a file."""
    if name.endswith(".py"):
        yield from (_QUOTED.sub("", text) for text in texts_of_python(source))
    elif name.endswith(".js"):
        yield from (match[0] for match in _SCRIPT_TEXT.finditer(source))
    else:
        yield _LINK_TARGET.sub("]", _QUOTED.sub("", _FENCED.sub("", source)))


def hits_in(name: str, source: str) -> list[str]:
    """Every phrase to avoid, with what is around it and what to write instead."""
    return [
        f"{label!r} in “{_around(text, match)}”: {instead}"
        for text in texts_of(name, source)
        for label, pattern, instead in _COMPILED
        for match in pattern.finditer(text)
    ]


def _around(text: str, match: re.Match[str]) -> str:
    return " ".join(text[max(0, match.start() - 40) : match.end() + 30].split())


def files() -> Iterator[Path]:
    """What is read."""
    yield from sorted((ROOT / "src").rglob("*.py"))
    yield from sorted((ROOT / "src" / "stepscope" / "web").rglob("*.js"))
    yield from sorted((ROOT / "docs").rglob("*.md"))
    yield from sorted((ROOT / ".github").rglob("*.md"))
    yield from sorted(ROOT.glob("*.md"))
    yield ROOT / "Makefile"


def hits() -> dict[str, list[str]]:
    """By file, of those that have any."""
    found = {
        path.relative_to(ROOT).as_posix(): hits_in(path.name, path.read_text("utf-8")) for path in files()
    }
    return {name: lines for name, lines in found.items() if lines}


def backlog() -> dict[str, int]:
    """By file, how many hits are left to rewrite."""
    lines = (line.split() for line in BACKLOG.read_text("utf-8").splitlines() if not line.startswith("#"))
    return {name: int(count) for count, name in lines}


def faults(found: Mapping[str, list[str]], allowed: Mapping[str, int]) -> list[str]:
    """What is to do, in words: rewrite a sentence, or lower a number."""
    grown = [
        f"{name}: {len(lines)} phrases to avoid, {allowed.get(name, 0)} are allowed:\n  " + "\n  ".join(lines)
        for name, lines in found.items()
        if len(lines) > allowed.get(name, 0)
    ]
    shrunk = [
        f"{name}: {len(found.get(name, ()))} left of {count}; run python -m tests.test_language to lower the number"
        for name, count in allowed.items()
        if len(found.get(name, ())) < count
    ]
    return [*grown, *shrunk]


def test_no_new_phrase_that_the_glossary_advises_against() -> None:
    assert faults(hits(), backlog()) == []


def test_the_glossary_has_every_phrase() -> None:
    glossary = (ROOT / "docs" / "glossary.md").read_text("utf-8")
    assert [label for label, _, _ in PHRASES if f"| `{label}` |" not in glossary] == []


# What each phrase must find, and an innocent neighbour that it must leave alone.
EXAMPLES = {
    "tell, told": ("The figure is told by its ops.", "a storyteller"),
    "mend": ("3 things to mend", "recommended"),
    "aloud": ("says aloud what it skips", "allowed"),
    "2× as fast": ("would make it 2× as fast", "as fast as the device"),
    "noughts": ("a row of noughts", "thoughts"),
    "so many rows": ("At most so many rows", "many rows"),
    "whom": ("for whom it waits", "who"),
    "for want of": ("SKIPPED, for want of npm", "wanted"),
    "may be chance": ("what may be chance", "a chance of 5 %"),
    "no accident": ("what is no accident", "an accident"),
    "stands (of data)": ("the name stands in the first column", "stands for the whole recording"),
    "lies (of data)": ("the error that lies below", "replies"),
    "nobody, whoever": ("Nobody listens; nobody listens at PATH", "no body"),
    "who comes late": ("the rank who comes late", "who knows"),
    "his": ("a wait of his own", "this"),
    "is obeyed": ("NO_COLOR is obeyed", "obey"),
    "is no profile": ("This is no profile.", "There is no profile here, it is no longer one."),
    "knows no steps": ("which know no steps", "knows now"),
    "played again": ("the steps played again", "replayed, displayed"),
    "a stretch of time": ("a stretch of host time", "stretched"),
    "the begin of": ("from the begin of the tile", "begin offset"),
    "remarks": ("Remarks and remarks on the capture", "remarkable"),
    "a slow world": ("tests in a slow world", "slow worlds apart"),
    "of no use": ("A web page is of no use in a terminal.", "use"),
    "4 ms beside it would go too": ("4.06 ms beside it would go too", "beside the account"),
    "in 9 of 10 cases": ("4.40 µs in 9 of 10 cases at most", "9 of 10 steps"),
    "not kept (of a limit)": ("a limit is not kept", "kept for later"),
    "not decided": ("FAILED. Not decided: 2", "undecided"),
    "3 problems more": ("There are 3 problems more", "more problems"),
    "say which": ("Say which version this is.", "says which"),
}


@pytest.mark.parametrize(("label", "pattern", "instead"), _COMPILED, ids=[label for label, _, _ in PHRASES])
def test_every_phrase_is_found_and_its_neighbour_is_not(
    label: str, pattern: re.Pattern[str], instead: str
) -> None:
    used, innocent = EXAMPLES[label]
    assert pattern.search(used), label
    assert not pattern.search(innocent), label
    assert not any(other.search(instead) for _, other, _ in _COMPILED), "the advice itself must be clean"


@pytest.mark.parametrize(
    ("name", "source", "count"),
    [
        ("a.py", '"""What is told."""', 1),
        ("a.py", 'x = f"{a} is {b} told"', 1),
        ("a.py", 'x = "told"  # a column, told to nobody', 0),
        ("a.py", '"""The word `told` is quoted."""', 0),
        ("a.js", 'const told = "nothing";', 0),
        ("a.js", "// what is told\nconst a = `to mend ${told}`;", 3),
        ("a.md", "It is told.\n\n```\nIt is told.\n```\n\nNot `told`.", 1),
    ],
)
def test_only_what_people_read_counts(name: str, source: str, count: int) -> None:
    assert len(hits_in(name, source)) == count


def test_growth_shrinkage_and_new_files_are_faults() -> None:
    assert faults({"a.py": ["x"]}, {"a.py": 1}) == []
    assert "1 are allowed" in faults({"a.py": ["x", "y"]}, {"a.py": 1})[0]
    assert "0 are allowed" in faults({"new.py": ["x"]}, {})[0]
    assert "1 left of 2" in faults({"a.py": ["x"]}, {"a.py": 2})[0]
    assert "0 left of 2" in faults({}, {"a.py": 2})[0]


def lower() -> str:
    """The backlog with every number at what is left; files that are new or have grown keep what was allowed."""
    found, allowed = hits(), backlog()
    left = {name: min(count, len(found.get(name, ()))) for name, count in allowed.items()}
    lines = [f"{count:4} {name}" for name, count in sorted(left.items()) if count]
    return "\n".join(
        ["# Phrases of docs/glossary.md that are left to rewrite: this list only shrinks.", *lines, ""]
    )


if __name__ == "__main__":
    BACKLOG.write_text(lower(), "utf-8")
    sys.stdout.write(f"{sum(backlog().values())} phrases left in {len(backlog())} files\n")
