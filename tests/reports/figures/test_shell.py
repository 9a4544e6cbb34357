"""A report in an interactive Python is one line, not a page of fields."""

from __future__ import annotations

import pytest

from stepscope.reports.build import report
from tests.reports.test_promises import SAMPLE


def test_one_line_in_python_and_rich() -> None:
    found = report(SAMPLE, sections=["findings"])
    assert len(repr(found)) < 250 and "\n" not in repr(found)
    assert "launch-bound" in repr(found) and "NVIDIA H200" in repr(found)
    from rich.pretty import pretty_repr

    assert len(pretty_repr(found)) < 250


def test_one_line_in_ipython() -> None:
    pretty = pytest.importorskip("IPython.lib.pretty")
    assert "print(report)" in pretty.pretty(report(SAMPLE, sections=["steps"]))
