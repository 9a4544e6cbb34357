"""One catalogue: every code that the sources raise has its words there, no other words exist, and no entry is unused."""

from __future__ import annotations

import ast
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from stepscope.doctor import environment, profile, script
from stepscope.doctor.check import Check
from stepscope.problems import catalogue
from stepscope.problems.catalogue import CATALOGUE, cause_of, words
from stepscope.problems.entry import Entry
from tests.shared.sources import parsed

ALL_CHECKS: tuple[Check[Any], ...] = (*environment.CHECKS, *script.CHECKS, *profile.CHECKS)

ROOT = Path(__file__).resolve().parent.parent.parent
PACKAGE = ROOT / "src" / "stepscope"
SOURCES = sorted(PACKAGE.rglob("*.py"))
# Functions that take a code and put the catalogue's words to it.
MAKERS = ("problem", "trouble", "CHECKS.add")
# What holds the words of a problem, and the only modules that may put words into it: from the catalogue, or as a file quotes them.
HOLDERS = ("Problem", "Trouble", "Result", "Words", "ProblemTold")
MAY_HOLD = {
    "capture/process/troubles.py",
    "doctor/diagnose.py",
    "doctor/examine.py",
    "doctor/profile/problems.py",
    "formats/own_export/header.py",
    "problems/entry.py",
    "profiles/sidecar_tables.py",
    "profiles/overview.py",
    "reports/problems.py",
    "trace/problems.py",
}


@cache
def calls(path: Path) -> list[tuple[str, ast.Call]]:
    """Every call of a file with the name of what is called."""
    nodes = ast.walk(parsed(path.read_text("utf-8")))
    return [(dotted(node.func), node) for node in nodes if isinstance(node, ast.Call)]


def dotted(called: ast.expr) -> str:
    """As it is written; of what is no plain name, its last word."""
    if isinstance(called, ast.Attribute):
        return f"{dotted(called.value)}.{called.attr}".lstrip(".")
    return called.id if isinstance(called, ast.Name) else ""


def has_entry(call: ast.Call) -> bool:
    """A check of the doctor that brings its own entry: nothing else raises that code."""
    first = call.args[0] if call.args else None
    return isinstance(first, ast.Call) and ast.unparse(first.func) == "Entry"


def raised() -> dict[str, list[tuple[str, ast.Call]]]:
    """By code, where the sources raise it."""
    found: dict[str, list[tuple[str, ast.Call]]] = {}
    for path in SOURCES:
        for name, call in calls(path):
            if name in MAKERS and not has_entry(call):
                assert call.args and isinstance(call.args[0], ast.Constant), (
                    f"{path.name}, line {call.lineno}: write the code out, so that this test can find it"
                )
                found.setdefault(str(call.args[0].value), []).append((path.name, call))
    return found


def test_every_code_has_its_words_and_every_entry_is_raised() -> None:
    codes = set(raised())
    assert sorted(codes - set(CATALOGUE)) == [], "describe these in src/stepscope/problems"
    assert sorted(set(CATALOGUE) - codes) == [], "nothing raises these any more"


def test_words_come_from_nowhere_else() -> None:
    holding = {
        path.relative_to(PACKAGE).as_posix()
        for path in SOURCES
        for name, _ in calls(path)
        if name.split(".")[-1] in HOLDERS
    }
    assert sorted(holding - MAY_HOLD) == [], "use problem(code, evidence, **facts) or its like"


@pytest.mark.parametrize("module", sorted(MAY_HOLD - {"problems/entry.py"}))
def test_those_who_hold_words_write_none(module: str) -> None:
    """Not even there is a title, cause or fix written out: every argument is computed."""
    for name, call in calls(PACKAGE / module):
        if name.split(".")[-1] in HOLDERS:
            arguments = [*call.args, *(word.value for word in call.keywords)]
            texts = [each.value for each in arguments if isinstance(each, ast.Constant)]
            assert [text for text in texts if isinstance(text, str) and " " in text] == []


def test_codes_are_unique() -> None:
    counts = Counter(entry.code for module in catalogue._MODULES for entry in module.ENTRIES)
    counts.update(check.code for check in ALL_CHECKS if CATALOGUE.get(check.code) is not check.entry)
    assert [code for code, count in counts.items() if count > 1] == []


def test_cases_exist() -> None:
    """A case that a source writes out is one of the entry's, and each of the entry's is used."""
    used: dict[str, set[str]] = {}
    for code, places in raised().items():
        for _, call in places:
            for node in ast.walk(call):
                if isinstance(node, ast.keyword) and node.arg == "case":
                    used.setdefault(code, set()).update(_texts(node.value))
    unknown = {code: cases - {"", *CATALOGUE[code].cases} for code, cases in used.items()}
    assert {code: cases for code, cases in unknown.items() if cases} == {}


def _texts(node: ast.expr) -> set[str]:
    """The outcomes that an expression writes out: a constant, or the branches of a conditional."""
    if isinstance(node, ast.IfExp):
        return _texts(node.body) | _texts(node.orelse)
    return {node.value} if isinstance(node, ast.Constant) and isinstance(node.value, str) else set()


@pytest.mark.parametrize("entry", CATALOGUE.values(), ids=lambda entry: entry.code)
def test_an_entry_says_what_why_and_how(entry: Entry) -> None:
    assert "{" not in entry.cause, "the code alone determines the cause"
    for said in entry.examples():
        assert said.title and not said.title.endswith(".")
        assert said.cause.endswith((".", "`"))
        assert said.fix
        assert said.severity in ("error", "warning", "info")


def test_facts_fill_the_placeholders() -> None:
    said = words("cupti-missing", python="/venv/bin/python", wheel="nvidia-cuda-cupti")
    assert said.fix.startswith("/venv/bin/python -m pip install nvidia-cuda-cupti, or")
    with pytest.raises(KeyError):
        words("cupti-missing", python="/venv/bin/python")


def test_a_case_replaces_only_what_differs() -> None:
    usual, chosen = words("missing-ranks"), words("missing-ranks", "chosen")
    assert (chosen.title, chosen.cause) == (usual.title, usual.cause)
    assert (usual.severity, chosen.severity) == ("warning", "info")
    assert usual.fix != chosen.fix


def test_facts_are_data() -> None:
    """Braces in a name from a profile are not placeholders."""
    assert words("capture-warning", message="{count} {0} {}").title.endswith(": {count} {0} {}")


def test_a_code_of_a_newer_version_has_no_cause() -> None:
    assert cause_of("from-the-future") == ""
