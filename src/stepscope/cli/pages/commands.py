"""The page docs/reference/cli.md, made from the commands: python -m stepscope.cli.pages.commands docs/reference/cli.md"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from typing import Any

import typer

from stepscope.cli.app import app
from stepscope.markdown import write_page

_INTRODUCTION = """# Every option

All commands with their arguments and options, as `stepscope COMMAND --help` prints them. [Command line](../cli.md) explains them with examples.

This page is generated from the commands: `python -m stepscope.cli.pages.commands docs/reference/cli.md`.
"""
_TYPE = re.compile(r" <\w+(\[\w+\])?>$")  # what Typer adds to arguments: no news to a reader


def page() -> str:
    """The whole page, in the order of `stepscope --help`."""
    group: Any = typer.main.get_command(app)
    return "\n".join([_INTRODUCTION, *(part for each in group.commands.values() for part in _command(each))])


def _command(command: Any) -> Iterator[str]:
    context = command.make_context(command.name, [], resilient_parsing=True)
    yield f"## {command.name}\n\n{_paragraphs(command.help)}\n\n```\n{_usage(command, context)}\n```\n"
    for kind in ("argument", "option"):
        records = [each.get_help_record(context) for each in command.params if each.param_type_name == kind]
        rows = [record for record in records if record is not None]
        if rows:
            yield _table(kind, rows)


def _usage(command: Any, context: Any) -> str:
    pieces = [piece for piece in command.collect_usage_pieces(context) if piece]
    return " ".join(["stepscope", command.name, *pieces])


def _table(kind: str, rows: list[tuple[str, str]]) -> str:
    cells = [
        f"| `{_cell(_TYPE.sub('', name))}` | {_cell(text).replace('<', '&lt;')} |" for name, text in rows
    ]
    return "\n".join([f"| {kind} | |", "|---|---|", *cells, ""])


def _paragraphs(text: str | None) -> str:
    return "\n\n".join(" ".join(part.split()) for part in (text or "").split("\n\n"))


def _cell(text: str) -> str:
    """Bars are not the ends of cells here."""
    return " ".join(text.replace("|", "\\|").split())


if __name__ == "__main__":
    write_page(page(), sys.argv[1:])
