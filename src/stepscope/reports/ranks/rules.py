"""The rules over ranks, and with those over one rank all findings that a report can hold."""

from __future__ import annotations

from typing import Any

from stepscope.analysis.findings.registry import built_in_rules, find_rules
from stepscope.analysis.findings.rule import Rule
from stepscope.reports.ranks import straggler_finding
from stepscope.reports.ranks.job_findings import JOB_RULES

RANK_RULES: tuple[Rule[Any], ...] = (straggler_finding.RULE, *JOB_RULES)


def all_rules(with_plugins: bool = True) -> list[Rule[Any]]:
    """All rules in their turn."""
    rules: list[Rule[Any]] = [*(find_rules() if with_plugins else built_in_rules()), *RANK_RULES]
    return sorted(rules, key=lambda rule: (rule.turn, rule.code))
