"""What an event stands for, in both builds, against the rules written out one event at a time."""

from __future__ import annotations

from array import array
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.native.host import lineage as names
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
        native, [(None, names.COMPILE, False), (0, names.HOST_COLLECTIVE, False), (1, names.OP, False)]
    )
    assert [(code, named) for code, named, *_ in found] == [(names.COMPILE, 0)] * 3
    assert found[2][2] == 2  # the op inside says more


def test_a_loaders_annotation_names_it(native: Any) -> None:
    found = _run(native, [(None, names.INPUT, False), (0, names.INPUT, True), (1, names.USER, False)])
    assert found[2][:3] == (names.INPUT, 1, 2)


def test_a_library_is_what_called_it(native: Any) -> None:
    rows = [
        (None, names.USER, False),
        (0, names.LIBRARY, False),
        (0, names.FRAMEWORK, False),
        (2, names.LIBRARY, False),
    ]
    found = _run(native, rows)
    assert [code for code, *_ in found] == [names.USER, names.LIBRARY, names.FRAMEWORK, names.FRAMEWORK]
    assert found[1][1:3] == (0, 1)


def test_what_is_plain_inside_a_wait_is_the_wait(native: Any) -> None:
    found = _run(native, [(None, names.WAIT_DEVICE, False), (0, names.CALL, False), (0, names.USER, False)])
    assert [code for code, *_ in found] == [names.WAIT_DEVICE, names.WAIT_DEVICE, names.USER]


def test_an_annotation_acts_only_where_there_are_frames(native: Any) -> None:
    found = _run(native, [(None, names.CONTEXT, True), (None, names.USER, False), (1, names.CONTEXT, True)])
    assert [flags & names.ACTS for *_, flags in found] == [0, names.ACTS, names.ACTS]


@st.composite
def _forests(draw: st.DrawFn) -> list[tuple[int | None, int, bool]]:
    size = draw(st.integers(0, 12))
    return [
        (
            draw(st.none() | st.integers(0, row - 1)) if row else None,
            draw(st.integers(names.SILENT, names.GARBAGE)),
            draw(st.booleans()),
        )
        for row in range(size)
    ]


@given(rows=_forests())
def test_rules(native: Any, rows: list[tuple[int | None, int, bool]]) -> None:
    found = _run(native, rows)
    for row, (code, named, detail, api, _) in enumerate(found):
        line = _line(rows, row)
        strong = [up for up in line if rows[up][1] >= names.INPUT]
        annotated = [up for up in line if rows[up][1] == names.INPUT and rows[up][2]]
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
