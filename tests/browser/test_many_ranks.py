"""Thousands of ranks on the page of ranks: grouped, with a bounded number of cells."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

RANKS, SLOW = 2048, 777
CELLS = """Object.assign({}, ...[...document.querySelectorAll(".figure")].map((each) => {
  const plot = each.querySelector(".js-plotly-plot");
  return { [each.innerText.split("\\n")[0]]: (plot?.data ?? []).map((one) => (one.z ?? []).flat().length) };
}))"""


def multiply(route: Any) -> None:
    """The report of two ranks as one of many; each step of one of them takes half as long again."""
    answer = route.fetch()
    report = answer.json()
    if "steps" not in report:  # it is still being made
        route.fulfill(response=answer)
        return
    first = [row for row in report["steps"]["rows"] if row["rank"] == 0]
    report["profile"]["ranks"] = list(range(RANKS))
    report["steps"]["critical_devices"] = dict.fromkeys(
        map(str, range(RANKS)), report["steps"]["critical_devices"]["0"]
    )
    report["steps"]["rows"] = [
        {**row, "rank": rank, "duration_ns": row["duration_ns"] * (3 if rank == SLOW else 2) // 2}
        for rank in range(RANKS)
        for row in first
    ]
    route.fulfill(response=answer, body=json.dumps(report))


def test_thousands_of_ranks(page: Any, show: Callable[..., Any]) -> None:
    page.route("**/api/runs/*/report*", multiply)
    page.goto("about:blank")  # the page keeps the reports that it has seen
    show("collectives", "two_ranks")
    text = page.locator(".view").inner_text()
    assert "Ranks against their peers" in text
    assert "Every rank, every step" not in text
    cells = page.evaluate(CELLS)
    assert cells
    assert 0 < max(count for counts in cells.values() for count in counts) <= 64 * 120, cells
    page.unroute_all()
    page.goto("about:blank")
