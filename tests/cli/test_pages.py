"""The generated references are those of this code."""

from __future__ import annotations

from pathlib import Path

import stepscope
from stepscope.cli.pages import api, commands

REFERENCE = Path(__file__).parent.parent.parent / "docs" / "reference"


def test_the_commands_are_up_to_date() -> None:
    written = (REFERENCE / "cli.md").read_text("utf-8")
    assert written == commands.page(), "run: python -m stepscope.cli.pages.commands docs/reference/cli.md"


def test_the_api_is_up_to_date() -> None:
    written = (REFERENCE / "api.md").read_text("utf-8")
    assert written == api.page(), "run: python -m stepscope.cli.pages.api docs/reference/api.md"


def test_everything_public_is_documented() -> None:
    page = api.page()
    assert [name for name in stepscope.__all__ if name != "__version__" and f"### {name}\n" not in page] == []
    assert [name for name in stepscope.__all__ if not getattr(stepscope, name).__doc__] == []


def test_a_command_has_its_usage_and_options() -> None:
    section = commands.page().split("## report\n")[1].split("\n## ")[0]
    assert "stepscope report [OPTIONS]" in section
    assert "| `-o, --output FILE` |" in section
