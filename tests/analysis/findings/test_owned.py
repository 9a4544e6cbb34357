"""Which slices each finding owns: those that its rule claimed, and for slow steps what they do beside computing."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.owned import owned_slices
from tests.builders.cases import case_of_text, gemm, steps


def waiting_for_data() -> list[str]:
    return steps("main  0  700  DataLoader  annotation  -", *gemm(700, 285))


def test_a_finding_owns_the_slices_that_its_rule_claimed() -> None:
    found = owned_slices(case_of_text(waiting_for_data()))
    assert found.keys() == {finding.code for finding in apply_rules(case_of_text(waiting_for_data()))}
    for slices in found.values():
        assert len(slices)
    owned = pl.concat(found.values())["slice"]
    assert owned.n_unique() == len(owned)  # no time belongs to two findings


def test_a_run_without_findings_owns_nothing() -> None:
    assert owned_slices(case_of_text(steps(*gemm(0, 990)))) == {}
