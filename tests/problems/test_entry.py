"""An entry knows whether its code alone determines its words."""

from __future__ import annotations

import pytest

from stepscope.problems.entry import Case, Entry


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        (Entry("a", "info", "Title", "Cause.", "Fix"), False),
        (Entry("a", "info", "Title {what}", "Cause.", "Fix"), True),
        (Entry("a", "info", "Title", "Cause.", "f'{{rank}}'"), False),
        (Entry("a", "info", "Title", "Cause.", "Fix", {"few": Case(severity="info")}), True),
    ],
)
def test_dependence_on_facts(entry: Entry, expected: bool) -> None:
    assert entry.depends_on_facts is expected


def test_examples_cover_every_case() -> None:
    entry = Entry(
        "a", "error", "{what}", "Cause.", "Fix", {"few": Case(severity="info")}, {"what": "A thing"}
    )
    assert [(each.title, each.severity) for each in entry.examples()] == [
        ("A thing", "error"),
        ("A thing", "info"),
    ]
