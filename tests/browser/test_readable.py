"""What screenshots showed and no other test saw: bars over their numbers, columns out of sight, words and units that mislead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.browser.conftest import Site, settle

# Numbers that the bar of their own cell covers.
COVERED = """() => [...document.querySelectorAll("td.share")].flatMap((cell) => {
  const words = document.createRange();
  words.selectNodeContents(cell.lastChild);
  const bar = cell.querySelector("i").getBoundingClientRect();
  return bar.right > words.getBoundingClientRect().left ? [cell.textContent] : [];
})"""
Show = Callable[..., Any]


@pytest.fixture(params=[390, 1024])
def sized(request: pytest.FixtureRequest, page: Any) -> Iterator[Any]:
    page.set_viewport_size({"width": request.param, "height": 844})
    yield page
    page.set_viewport_size({"width": 1280, "height": 800})


@pytest.mark.parametrize("name, more", [("ops", {"view": "tree"}), ("kernels", {})], ids=["tree", "kernels"])
def test_bars_leave_room_for_their_numbers(sized: Any, show: Show, name: str, more: dict[str, str]) -> None:
    show(name, "kineto_gpu", **more)
    assert sized.locator("td.share").count() > 0
    assert sized.evaluate(COVERED) == []


@pytest.mark.parametrize("measure", ["host", "device"])
def test_the_tree_shows_what_it_is_sorted_by_on_a_phone(page: Any, show: Show, measure: str) -> None:
    page.set_viewport_size({"width": 390, "height": 844})
    show("ops", "kineto_gpu", view="tree", measure=measure)
    heads = page.locator(".optree th")
    assert heads.nth(1).inner_text() == f"{measure} per step"
    box = heads.nth(1).bounding_box()
    page.set_viewport_size({"width": 1280, "height": 800})
    assert box is not None and box["x"] + box["width"] <= 390


def test_no_time_has_no_share(page: Any, show: Show) -> None:
    show("ops", "kineto_gpu", view="tree", measure="device")
    rows = page.locator(".optree tbody tr").evaluate_all(
        "rows => rows.map(row => [...row.cells].slice(1, 3).map(each => each.textContent))"
    )
    assert ["–", "–"] in rows
    assert [row for row in rows if (row[0] == "–") != (row[1] == "–")] == []


def test_shares_differ_by_points(page: Any, show: Show, site: Site) -> None:
    show("compare", a=site.run("before"), b=site.run("after"))
    settle(page)
    rows = page.locator("tr", has_text="device busy").first.locator("td").all_inner_texts()
    assert rows[3].endswith(" points")
    assert page.get_by_text("+<").count() == 0


def test_percentiles_have_the_names_of_the_field(page: Any, show: Show) -> None:
    for name in ("steps", "device"):
        show(name, "kineto_gpu")
        text = page.locator("#view").inner_text()
        assert "p90" in text
        assert "percentile" not in text and "9 of 10" not in text


def test_the_roofline_has_prefixes_up_to_the_peak_and_names_of_bounds(page: Any, show: Show) -> None:
    show("kernels", "kineto_gpu")
    figure = page.locator(".figure", has_text="Roofline").first
    ticks = figure.locator(".ytick text").all_text_contents()
    assert "1P" in ticks and "1T" in ticks
    assert page.get_by_role("cell", name="l2", exact=True).count() == 0
    assert page.get_by_role("cell", name="L2 bandwidth", exact=True).count() > 0
