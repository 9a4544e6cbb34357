"""All findings that a report can hold, and what derives from them."""

from __future__ import annotations

import re
from pathlib import Path

from stepscope.analysis.findings.rule import RESERVED
from stepscope.reports.ranks.rules import RANK_RULES, all_rules
from stepscope.reports.ranks.rules_page import update

ROOT = Path(__file__).parents[3]


def test_codes_are_unique_and_those_over_ranks_are_reserved() -> None:
    codes = [rule.code for rule in all_rules()]
    assert len(codes) == len(set(codes))
    assert {rule.code for rule in RANK_RULES} == set(RESERVED)


def test_the_table_in_the_documentation() -> None:
    page = (ROOT / "docs" / "report" / "findings.md").read_text("utf-8")
    assert update(page) == page, "python -m stepscope.reports.ranks.rules_page docs/report/findings.md"


def test_every_rule_leads_to_a_page_that_is_there() -> None:
    pages = (ROOT / "src" / "stepscope" / "web" / "shell" / "pages.js").read_text("utf-8")
    names = set(re.findall(r'name: "([a-z]+)"', pages))
    assert {rule.page for rule in all_rules(with_plugins=False)} <= names
