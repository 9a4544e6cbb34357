"""The page docs/reference/api.md, made from docstrings and types: python -m stepscope.cli.pages.api docs/reference/api.md"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
from typing import Any

import stepscope
from stepscope.diffs.build import Diff
from stepscope.markdown import write_page
from stepscope.profiles.profile import Profile
from stepscope.reports.report import Report

_INTRODUCTION = """# Python API

Everything that `import stepscope` offers, with its types. Recording needs nothing but Python and your framework; `load`, `report` and `diff`
read profiles. Fields of a report are in [its schema](../report/schema.json), columns of tables in [Tables](../tables.md).

This page is generated from the docstrings: `python -m stepscope.cli.pages.api docs/reference/api.md`.
"""
_RECORDING = ("profile", "Profiler", "schedule", "annotate", "op", "step", "listen")
_READING = ("load", "report", "diff")
_TRYING = ("try_",)
_RETURNED = (Profile, Report, Diff)
# Called by other parts of stepscope, not by users.
_INTERNAL = ("give_way_to", "become_inert", "hear_on_step")
_WIDTH = 100
_ANNOTATION = re.compile(r"(: |-> )'([^']*)'")  # annotations are strings here


def page() -> str:
    """The whole page."""
    parts = [_INTRODUCTION, "## Recording\n"]
    parts += [text for name in _RECORDING for text in _documented(name, getattr(stepscope, name))]
    parts.append("## Reading\n")
    parts += [text for name in _READING for text in _documented(name, getattr(stepscope, name))]
    parts += [text for each in _RETURNED for text in _documented(each.__name__, each, made_by_us=True)]
    parts.append("## Trying\n")
    parts += [text for name in _TRYING for text in _documented(name, getattr(stepscope, name))]
    return "\n".join(parts)


def _documented(name: str, value: Any, made_by_us: bool = False) -> Iterator[str]:
    yield f"### {name}\n"
    if not made_by_us:
        yield f"```text\nstepscope.{_signature(name, value)}\n```\n"
    yield f"{_doc(value)}\n"
    if inspect.isclass(value):
        members = [_member(each, inspect.getattr_static(value, each)) for each in _public(value)]
        if members:
            yield "\n".join(["| member | |", "|---|---|", *members, ""])


def _public(kind: type) -> list[str]:
    """Methods and properties that the class or one of its bases here defines, in the order of the code."""
    found = {
        name: None
        for base in reversed(kind.__mro__)
        if base.__module__.startswith("stepscope")
        for name, value in vars(base).items()
        if not name.startswith("_") and name not in _INTERNAL and _is_member(value) and _doc(value)
    }
    return list(found)


def _is_member(value: Any) -> bool:
    return isinstance(value, property | classmethod | staticmethod) or inspect.isfunction(value)


def _member(name: str, value: Any) -> str:
    shown = name if isinstance(value, property) else _signature(name, value)
    return f"| `{_cell(shown)}` | {_cell(_doc(value))} |"


def _cell(text: str) -> str:
    return " ".join(text.replace("|", "\\|").split())


def _signature(name: str, value: Any) -> str:
    text = _ANNOTATION.sub(r"\1\2", str(inspect.signature(value)))
    text = text.replace("(self, ", "(").replace("(self)", "()")
    line = f"{name}{text}".removesuffix(" -> None") if inspect.isclass(value) else f"{name}{text}"
    return line if len(line) <= _WIDTH else _broken(line)


def _broken(line: str) -> str:
    """One parameter per line."""
    name, _, rest = line.partition("(")
    inside, closing, result = rest.rpartition(")")
    parameters, depth, last = [], 0, 0
    for place, sign in enumerate(inside):
        depth += (sign in "([") - (sign in ")]")
        if sign == "," and depth == 0:
            parameters.append(inside[last:place].strip())
            last = place + 1
    parameters.append(inside[last:].strip())
    return f"{name}(\n" + "".join(f"    {each},\n" for each in parameters) + f"{closing}{result}"


def _doc(value: Any) -> str:
    """The docstring, with its line ends as they are: Markdown joins them."""
    return inspect.getdoc(value) or ""


if __name__ == "__main__":
    write_page(page(), sys.argv[1:])
