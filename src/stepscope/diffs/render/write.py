"""A diff in the format of a file name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import msgspec

from stepscope.diffs.data.model import Diff, json_schema
from stepscope.diffs.flame import fold_stacks
from stepscope.diffs.render.html import as_html
from stepscope.diffs.render.markdown import as_markdown
from stepscope.diffs.render.text import as_text
from stepscope.profiles.cache.atomic_files import whole_file
from stepscope.registers.policy.diffs import DIFF_HTML_ROWS, DIFF_ROWS, DIFF_TEXT_ROWS

# Rows of a table, unless the user gives a limit.
ROWS = {
    "text": DIFF_TEXT_ROWS,
    "md": DIFF_TEXT_ROWS,
    "html": DIFF_HTML_ROWS,
    "json": DIFF_ROWS,
    "folded": 0,
}
_SUFFIXES = {".json": "json", ".md": "md", ".html": "html", ".htm": "html", ".folded": "folded"}
_FORMS: dict[str, Callable[..., str]] = {"text": as_text, "md": as_markdown, "html": as_html}


def form_of(path: Path | None) -> str:
    """text, json, md, html or folded, by the name of the file."""
    return "text" if path is None else _SUFFIXES.get(path.suffix.lower(), "text")


def written(diff: Diff, form: str, *, limit: int | None = None) -> str:
    """The diff as text, md, html, json, or the stacks of a differential flame graph."""
    if form == "json":
        return _encode_json(diff)
    if form == "folded":
        return fold_stacks(diff.flame)
    return _FORMS[form](diff, limit=ROWS[form] if limit is None else limit)


def save(diff: Diff, path: Path, *, force: bool = False) -> None:
    """Write the whole diff."""
    with whole_file(path, force) as file:
        file.write(written(diff, form_of(path)).encode())


def schema_text() -> str:
    """The JSON schema of a diff."""
    return _encode_json(json_schema())


def _encode_json(value: object) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"
