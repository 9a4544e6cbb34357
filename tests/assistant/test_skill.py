"""The skill is where assistants look, and names commands that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stepscope.assistant.skill import PLACES, install_skill, skill_text
from stepscope.cli.app import app
from stepscope.errors import StepscopeError


def test_it_is_written_into_every_place_and_again(tmp_path: Path) -> None:
    for _ in range(2):
        written = install_skill(tmp_path)
        assert [path.relative_to(tmp_path).as_posix() for path in written] == [
            f"{place}/stepscope/SKILL.md" for place in PLACES
        ]
        assert {path.read_text("utf-8") for path in written} == {skill_text()}


def test_its_head_is_what_the_format_wants() -> None:
    head = re.match(r"---\nname: stepscope\ndescription: (.+)\n---\n", skill_text())
    assert head is not None
    assert len(head[1]) <= 1_024


def test_its_commands_exist() -> None:
    verbs = {each.name or each.callback.__name__ for each in app.registered_commands if each.callback}
    used = set(re.findall(r"^    stepscope (\w+)", skill_text(), re.MULTILINE))
    assert used and used <= verbs


def test_a_place_that_cannot_be_written_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / ".agents").write_text("a file")
    with pytest.raises(StepscopeError, match="Cannot write"):
        install_skill(tmp_path)
