"""The page about the command line keeps up with it, and its examples run."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.cli.inside import succeeds
from tests.cli.run import PROFILE

PAGE = (Path(__file__).parent.parent.parent / "docs" / "cli.md").read_text("utf-8")


@pytest.mark.parametrize(
    "verb", ["info", "query", "export", "diff", "check", "doctor", "run", "capture", "serve", "demo"]
)
def test_every_option_is_documented(verb: str) -> None:
    options = re.findall(r"(?<![\w-])--?[a-z][\w-]*", succeeds(verb, "--help").split("Options:")[1])
    assert [option for option in options if not re.search(rf"`{option}[ `]", PAGE)] == []


@pytest.mark.parametrize("sql", re.findall(r"```sql\n(.+?)```", PAGE, flags=re.DOTALL))
def test_examples_run(sql: str) -> None:
    assert len(succeeds("query", PROFILE, sql).splitlines()) > 2


def test_the_first_example_runs() -> None:
    sql = next(
        text for text in re.findall(r'stepscope query PATH "(.+?)"', PAGE, flags=re.DOTALL) if "…" not in text
    )
    assert "total_ns" in succeeds("query", PROFILE, sql)
