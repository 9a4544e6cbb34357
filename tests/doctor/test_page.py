"""The page about troubles is what the doctor says, and every check says enough."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from stepscope.doctor.check import Check
from stepscope.doctor.diagnose import all_checks
from stepscope.doctor.page import page

PAGE = Path(__file__).parent.parent.parent / "docs" / "troubleshooting.md"
CHECKS = all_checks()


def test_the_page_is_up_to_date() -> None:
    assert PAGE.read_text("utf-8") == page(), "run: python -m stepscope.doctor.page docs/troubleshooting.md"


def test_there_are_enough_checks() -> None:
    counts = Counter(check.group for check in CHECKS)
    assert sum(counts.values()) >= 40
    assert min(counts.values()) >= 20


def test_codes_are_unique_within_a_group() -> None:
    assert [
        each for each, times in Counter((check.group, check.code) for check in CHECKS).items() if times > 1
    ] == []


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: f"{check.group}-{check.code}")
def test_every_check_has_an_entry_and_says_what_it_looks_for(check: Check[object]) -> None:
    assert check.entry.code == check.code
    assert check.look.__doc__ or check.group == "profile"
