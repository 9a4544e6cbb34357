"""A selected range of the trace viewer: its pivot, its file, and its query, checked against the server's tables."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import stepscope
from tests.browser.conftest import Site, settle, until
from tests.browser.test_trace import Show, asked, ready


def selected(show: Show, site: Site, profile: str) -> tuple[Any, dict[str, Any]]:
    """The page with the middle of the recording selected on all tracks of the shown rank, and what the server says of it."""
    layout = asked(site, profile, "timeline/layout")
    long = layout["end_ns"] - layout["start_ns"]
    start, end = layout["start_ns"] + long // 3, layout["start_ns"] + long // 2
    tracks = [track["id"] for group in layout["groups"] for track in group["tracks"]]
    names = ",".join(f"{layout['rank']}.{track}" for track in tracks)
    page = ready(show("trace", profile, **{"from": start, "to": end, "tracks": names}))
    page.locator(".tl-range td").first.wait_for()
    return page, {"start": start, "end": end, "tracks": ",".join(map(str, tracks))}


def query_of(asked_for: dict[str, Any]) -> str:
    return "&".join(f"{name}={value}" for name, value in asked_for.items())


def test_the_pivot_has_names_categories_and_modules(show: Show, site: Site) -> None:
    page, range_ = selected(show, site, "kineto_gpu")
    heads = page.locator(".tl-range th").all_inner_texts()
    assert {"count", "total", "self", "per step", "of the tracks' time"} <= set(heads)
    for by in ("category", "module"):
        wanted = asked(site, "kineto_gpu", f"timeline/pivot?by={by}&{query_of(range_)}")["names"]
        page.get_by_role("button", name=f"by {by}").click()
        page.locator(".tl-range th").get_by_text(by, exact=True).wait_for()
        rows = page.locator(".tl-range tbody tr")
        assert rows.count() == len(wanted)
        shown = sorted(
            int(text.replace(",", "")) for text in rows.locator("td:nth-child(2)").all_inner_texts()
        )
        assert shown == sorted(row["count"] for row in wanted)


def test_a_module_leads_to_its_ops(show: Show, site: Site) -> None:
    page, _ = selected(show, site, "kineto_gpu")
    page.get_by_role("button", name="by module").click()
    module = page.locator(".tl-range tbody button", has_text="MultiheadAttention_0").first
    module.click()
    page.locator(".tl-hits button[data-id]").first.wait_for()
    assert page.locator(".tl-search").input_value().startswith('scope="')


def test_the_file_of_a_range_opens_again(show: Show, site: Site, tmp_path: Path) -> None:
    page, range_ = selected(show, site, "kineto_gpu")
    with page.expect_download() as waiting:
        page.get_by_role("link", name="Chrome JSON").click()
    file = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(file)
    again = stepscope.load(str(file)).traces[0]
    events = asked(site, "kineto_gpu", f"timeline/range?{query_of(range_)}")["events"]
    assert len(again.events) == events > 100


def test_the_query_of_a_range_gives_its_events(show: Show, site: Site) -> None:
    page, range_ = selected(show, site, "two_ranks")
    page.get_by_role("button", name="Copy as SQL").click()
    link = page.get_by_role("link", name="Open in SQL")
    link.wait_for()
    query = link.get_attribute("data-query")
    assert query.startswith("SELECT *") and "rank = 0" in query
    link.click()
    settle(page)
    page.locator("textarea").wait_for()
    assert page.locator("textarea").input_value() == query
    page.get_by_role("button", name="Run").click()
    events = asked(site, "two_ranks", f"timeline/range?{query_of(range_)}")["events"]
    page.get_by_text(f"{events:,} rows").or_(page.get_by_text(f"of {events:,}")).first.wait_for()
    until(page, "!document.querySelector('.wait')")
