"""Names are judged once, and the answers are the same as those of Polars."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.trace import judged_texts
from stepscope.trace.judged_texts import Judged, contains


def test_each_row_is_judged_once() -> None:
    asked: list[str] = []

    def judge(rows: list[str]) -> list[int]:
        def fresh(places: list[int]) -> list[int]:
            asked.extend(rows[at] for at in places)
            return [len(rows[at]) for at in places]

        return memo.ask(rows, fresh)

    memo: Judged[int] = Judged()
    assert judge(["a", "bb"]) == [1, 2]
    assert judge(["bb", "ccc", "a"]) == [2, 3, 1]
    assert asked == ["a", "bb", "ccc"]


def test_what_is_kept_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_texts, "MOST_KEPT", 2)
    memo: Judged[int] = Judged()
    for first in range(0, 9, 3):
        rows = [first, first + 1, first + 2]
        assert memo.ask(rows, lambda places, rows=rows: [rows[at] for at in places]) == rows  # type: ignore[misc]


@pytest.mark.parametrize("most", [0, 100])
def test_patterns(most: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judged_texts, "MOST_ASKED", most)
    texts = pl.Series("name", ["aten::mm", "nccl:all_reduce", ""])
    for _ in range(2):
        assert contains(texts, "^nccl").to_list() == [False, True, False]
    assert contains(texts.clear(), "^nccl").to_list() == []
