"""What an event stands for, in both builds, against the rules written out one event at a time."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.native.host import lineage
from tests.native.both import builds

NONE = 0xFFFFFFFF


@pytest.fixture(params=builds("host.lineage"), scope="module")
def native(request: pytest.FixtureRequest) -> Any:
    return request.param


def _run(native: Any, rows: list[tuple[int | None, int, bool]]) -> list[tuple[int, int, int, int, int]]:
    """code, named, detail, api and flags of events given as (parent, code, is an annotation)."""
    parent = array("I", [NONE if up is None else up for up, _, _ in rows])
    code = bytes(code for _, code, _ in rows)
    annotation = bytes(is_annotation for _, _, is_annotation in rows)
    return list(zip(*native.lineage(parent, code, annotation), strict=True))


def test_the_outermost_that_explains_wins(native: Any) -> None:
    found = _run(
        native, [(None, lineage.COMPILE, False), (0, lineage.HOST_COLLECTIVE, False), (1, lineage.OP, False)]
    )
    assert [(code, named) for code, named, *_ in found] == [(lineage.COMPILE, 0)] * 3
    assert found[2][2] == 2  # the op inside says more


def test_a_loaders_annotation_names_it(native: Any) -> None:
    found = _run(native, [(None, lineage.INPUT, False), (0, lineage.INPUT, True), (1, lineage.USER, False)])
    assert found[2][:3] == (lineage.INPUT, 1, 2)


def test_a_library_is_what_called_it(native: Any) -> None:
    rows = [
        (None, lineage.USER, False),
        (0, lineage.LIBRARY, False),
        (0, lineage.FRAMEWORK, False),
        (2, lineage.LIBRARY, False),
    ]
    found = _run(native, rows)
    assert [code for code, *_ in found] == [
        lineage.USER,
        lineage.LIBRARY,
        lineage.FRAMEWORK,
        lineage.FRAMEWORK,
    ]
    assert found[1][1:3] == (0, 1)


def test_what_is_plain_inside_a_wait_is_the_wait(native: Any) -> None:
    found = _run(
        native, [(None, lineage.WAIT_DEVICE, False), (0, lineage.CALL, False), (0, lineage.USER, False)]
    )
    assert [code for code, *_ in found] == [lineage.WAIT_DEVICE, lineage.WAIT_DEVICE, lineage.USER]


def test_an_annotation_acts_only_where_there_are_frames(native: Any) -> None:
    found = _run(
        native, [(None, lineage.CONTEXT, True), (None, lineage.USER, False), (1, lineage.CONTEXT, True)]
    )
    assert [flags & lineage.ACTS for *_, flags in found] == [0, lineage.ACTS, lineage.ACTS]


@st.composite
def _forests(draw: st.DrawFn) -> list[tuple[int | None, int, bool]]:
    size = draw(st.integers(0, 12))
    return [
        (
            draw(st.none() | st.integers(0, row - 1)) if row else None,
            draw(st.integers(lineage.SILENT, lineage.ALLOCATOR)),
            draw(st.booleans()),
        )
        for row in range(size)
    ]


@given(rows=_forests())
def test_rules(native: Any, rows: list[tuple[int | None, int, bool]]) -> None:
    found = _run(native, rows)
    for row, (code, named, detail, api, _) in enumerate(found):
        line = _line(rows, row)
        strong = [up for up in line if rows[up][1] >= lineage.INPUT]
        annotated = [up for up in line if rows[up][1] == lineage.INPUT and rows[up][2]]
        if strong:
            by = (annotated or strong)[-1]
            assert (code, named) == (rows[by][1], by)
        assert named in line
        assert detail == NONE or (detail in line and detail != named)
        assert api == NONE or api in line


def _line(rows: list[tuple[int | None, int, bool]], row: int) -> list[int]:
    """The event and its ancestors, the outermost last."""
    found = [row]
    while (up := rows[found[-1]][0]) is not None:
        found.append(up)
    return found
