"""Aligned lines: what does not fit is clipped, at its end or in the middle. Bars and sparklines fit their width."""

from __future__ import annotations

import pytest
from rich.text import Text

from stepscope.reports.render.text_grid import bar, lines, sparkline

ROWS = [[Text("1."), Text("gap on the device before nvjet_128x64_forward"), Text("+1 ms")],
        [Text("2."), Text("gap on the device before nvjet_128x64_backward"), Text("+2 ms")]]  # fmt: skip


def _drawn(keep_ends: int | None = None) -> list[str]:
    return [
        line.plain for line in lines(ROWS, [True, False, True], [False, True, False], 36, keep_ends=keep_ends)
    ]


def test_names_that_begin_alike_keep_their_ends() -> None:
    one, two = _drawn(1)
    assert one.startswith("  1.  gap on the …")
    assert one.endswith("_forward  +1 ms")
    assert two.endswith("_backward  +2 ms")
    assert len(one) == len(two) == 36


def test_texts_are_clipped_at_their_ends() -> None:
    assert _drawn() == ["  1.  gap on the device befo…  +1 ms", "  2.  gap on the device befo…  +2 ms"]


def test_remarks_give_way_before_names() -> None:
    rows = [[Text("n" * 40), Text("12 ms"), Text("r" * 60)]]
    told = [True, False, True]
    (plain,) = lines(rows, [False, True, False], told, 80)
    (kept,) = lines(rows, [False, True, False], told, 80, remark=2)
    assert "n" * 40 not in plain.plain
    assert "n" * 40 in kept.plain and "r" * 20 in kept.plain
    (narrow,) = lines(rows, [False, True, False], told, 50, remark=2)
    assert narrow.cell_len <= 50 and "12 ms" in narrow.plain


@pytest.mark.parametrize(
    ("share", "drawn"),
    [(0.0, "    "), (1.0, "████"), (0.5, "██  "), (0.0001, "▏   "), (7.0, "████"), (0.3, "█▎  ")],
)
def test_bars(share: float, drawn: str) -> None:
    assert bar(share, 4) == drawn


@pytest.mark.parametrize(
    ("values", "drawn"),
    [([], ""), ([0, 0], "▁▁"), ([1, 2, 4, 8], "▂▃▅█"), ([1] * 19 + [8], "▂▂▂▂▂▂▂▂▂█")],
)
def test_sparklines(values: list[float], drawn: str) -> None:
    assert sparkline(values, 10) == drawn
