"""A gate's verdict as JUnit XML, which CI servers show as tests: one test case per limit."""

from __future__ import annotations

from xml.etree import ElementTree as Xml

from stepscope.gate.check import Check, Gate
from stepscope.gate.text import format_cells
from stepscope.gate.wording import NOISY, OVER, UNKNOWN
from stepscope.safe import safe as visible

_NOT_IN_XML = {0xFFFE: "\\ufffe", 0xFFFF: "\\uffff"}
_TAGS = {OVER: "failure", UNKNOWN: "error", NOISY: "skipped"}


def as_junit(gate: Gate) -> str:
    """Exceeded limits are failures, unknown ones errors, inconclusive ones skipped, or failures where that was asked for."""
    suite = Xml.Element("testsuite", {"name": "stepscope", "tests": str(len(gate.checks)), **_count(gate)})
    for check in gate.checks:
        suite.append(_make_case(check, gate))
    if gate.remarks:
        Xml.SubElement(suite, "system-out").text = "\n".join(map(_escape, gate.remarks))
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{Xml.tostring(root, encoding="unicode")}\n'


def _count(gate: Gate) -> dict[str, str]:
    tags = [_tag_of(check, gate) for check in gate.checks]
    return {
        f"{tag}s" if tag != "skipped" else tag: str(tags.count(tag))
        for tag in ("failure", "error", "skipped")
    }


def _tag_of(check: Check, gate: Gate) -> str | None:
    if check.verdict == NOISY and gate.strict:
        return "failure"
    return _TAGS.get(check.verdict)


def _escape(text: str) -> str:
    """Without characters that XML cannot hold."""
    return visible(text).translate(_NOT_IN_XML)


def _make_case(check: Check, gate: Gate) -> Xml.Element:
    name, most, value, noise, verdict, message = map(_escape, format_cells(check))
    case = Xml.Element("testcase", classname=f"stepscope.{_escape(gate.path)}", name=name)
    tag = _tag_of(check, gate)
    figures = f"measured {value}, at most {most or 'nothing'}" + (f", noise ± {noise}" if noise else "")
    if tag is None:
        Xml.SubElement(case, "system-out").text = figures
    else:
        words = ": ".join(filter(None, (verdict, message)))
        Xml.SubElement(case, tag, message=words, type=verdict).text = figures
    return case
