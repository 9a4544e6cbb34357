"""A diff on one screen."""

from __future__ import annotations

from stepscope.diffs.data.model import Diff, FindingChange, Line, Row, Run
from stepscope.diffs.render.brief import as_brief, brief_diff_lines

LINES, WIDTH = 25, 100
NASTY = '<script>alert("x")</script>|\x1b[31m@all`' * 5


def a_diff(name: str, count: int) -> Diff:
    """With `count` of everything."""
    row = Row(name=name, a=1e6, b=2e6, difference=1e6, relative=1.0, noise=1e4, significant=True)
    change = FindingChange(code="input-bound", title=name, a_saves_ns=None, b_saves_ns=1000, significant=True)
    return Diff(
        a=Run(path="a.json", name=name),
        b=Run(path="b.json"),
        verdict="The step is slower. " * count,
        significant=True,
        step=row,
        lines=[Line(title=name, kind="op", difference=1e6, detail=name)] * count,
        not_comparable=[name] * count,
        gained=[change] * count,
        parts=[row] * count,
    )


def test_one_screen() -> None:
    for name in ("aten::mm", NASTY):
        for count in (0, 1, 3, 30):
            lines = brief_diff_lines(a_diff(name, count), WIDTH)
            assert len(lines) <= LINES
            assert max(line.cell_len for line in lines) <= WIDTH
            assert "\x1b" not in "".join(line.plain for line in lines)


def test_what_it_has() -> None:
    text = as_brief(a_diff("aten::mm", 1))
    assert text.startswith("A  aten::mm  ")
    order = ["The step is slower.", "! aten::mm", "1.  aten::mm", "finding gained: aten::mm", "parts of a step", "significant", "more  stepscope diff a.json b.json --full"]  # fmt: skip
    assert [text.index(each) for each in order] == sorted(text.index(each) for each in order)
