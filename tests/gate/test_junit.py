"""The verdict as JUnit XML: what a CI server counts."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

import pytest

from stepscope.gate.check import Check, Gate
from stepscope.gate.junit import as_junit


def make_gate(*verdicts: str, strict: bool = False, message: str = "") -> Gate:
    checks = [
        Check(name=f"limit {n}", limit=1e6, value=2e6, unit="ns", verdict=verdict, message=message)
        for n, verdict in enumerate(verdicts)
    ]
    return Gate(path="runs/new", passed=False, strict=strict, checks=checks, remarks=["Ranks are missing."])


@pytest.mark.parametrize(("strict", "failures", "skipped"), [(False, "1", "1"), (True, "2", "0")])
def test_each_verdict_has_its_element(strict: bool, failures: str, skipped: str) -> None:
    root = Xml.fromstring(as_junit(make_gate("ok", "over", "noisy", "unknown", strict=strict)))
    suite = root.find("testsuite")
    assert suite is not None
    counts = [suite.get(name) for name in ("tests", "failures", "errors", "skipped")]
    assert counts == ["4", failures, "1", skipped]
    met, over, noisy, unknown = ([child.tag for child in case] for case in suite.iter("testcase"))
    assert (met, over, unknown) == (["system-out"], ["failure"], ["error"])
    assert noisy == (["failure"] if strict else ["skipped"])
    assert suite.findtext("system-out") == "Ranks are missing."


def test_any_message_is_valid_xml() -> None:
    hostile = 'a\x00b\x1b[31m<&>"\ud800\ufffe]]>'
    (failure,) = Xml.fromstring(as_junit(make_gate("over", message=hostile))).iter("failure")
    assert "\\x00" in str(failure.get("message"))
    assert '<&>"' in str(failure.get("message"))
