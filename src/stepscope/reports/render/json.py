"""The report as JSON: the contract that programs read, and its schema: python -m stepscope.reports.render.json docs/report/schema.json"""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import Any

import msgspec

from stepscope.markdown import write_page
from stepscope.reports.model.report import Report

_ALWAYS = ("schema", "profile", "sentence", "problems", "steps")


def as_json(report: Report, *, sections: Collection[str] | None = None) -> str:
    """The report, or some of its sections with what is always there: what was profiled, problems and steps."""
    whole: dict[str, Any] = msgspec.to_builtins(report)
    if sections is not None:
        whole = {name: part for name, part in whole.items() if name in _ALWAYS or name in sections}
    return _written(whole)


def schema_text() -> str:
    """The JSON schema of a report."""
    return _written(msgspec.json.schema(Report))


def _written(value: dict[str, Any]) -> str:
    return msgspec.json.format(msgspec.json.encode(value), indent=2).decode() + "\n"


if __name__ == "__main__":
    write_page(schema_text(), sys.argv[1:])
