"""Rows of the trace viewer: headings that stay in view, and folded devices that show all their streams."""

from __future__ import annotations

from typing import Any

from tests.browser.conftest import Site, until
from tests.browser.test_trace import Show, asked, ready

TOPS = """() => [...document.querySelectorAll(".tl-line .tl-title")].map((title) => {
  const side = document.querySelector(".tl-side").getBoundingClientRect();
  const box = title.getBoundingClientRect();
  return [title.textContent, Math.round(box.top - side.top), Math.round(box.bottom - side.top)];
})"""


def scrolled_into(page: Any, kind: str, by: float) -> dict[str, Any]:
    """Scroll so far into what lies below the tallest track of a kind, and give its line."""
    line: dict[str, Any] = page.evaluate(
        """([kind, by]) => {
          const timeline = stepscopeTimeline;
          const [line] = timeline.lines.filter((each) => each.kind === kind).sort((a, b) => b.height - a.height);
          timeline.scrollTo(line.y + by * line.height);
          return { ...line, source: null };
        }""",
        [kind, by],
    )
    until(page, "!stepscopeTimeline.scheduled")
    return line


def test_headings_stay_readable_while_tracks_are_scrolled_through(show: Show) -> None:
    page = ready(show("trace", "two_ranks"))
    track = scrolled_into(page, "track", 0.5)
    places = {title: (top, bottom) for title, top, bottom in page.evaluate(TOPS)}
    height = page.evaluate("stepscopeTimeline.height")
    assert 0 <= places[track["title"]][0] < places[track["title"]][1] <= height
    stuck = page.locator(".tl-line.stuck .tl-title").all_inner_texts()
    assert stuck[-1] == "Rank 0" and len(stuck) == 2
    assert places["Rank 0"][0] >= 0 and places[stuck[0]][0] >= places["Rank 0"][1] - 4
    assert places[track["title"]][0] >= places[stuck[0]][1]
    before = page.evaluate(TOPS)
    page.locator(".tl-overlay").focus()
    page.keyboard.down("d")
    until(page, "stepscopeTimeline.viewport.start > 0 || stepscopeTimeline.isMoving")
    page.keyboard.up("d")
    assert page.evaluate(TOPS) == before, "panning moves no heading"


def test_a_heading_that_sticks_can_be_folded_and_hides_no_hit(show: Show) -> None:
    page = ready(show("trace", "two_ranks"))
    scrolled_into(page, "track", 0.5)
    assert page.evaluate("stepscopeTimeline.hit(300, 10)") is None, "the heading lies over slices"
    page.locator(".tl-line.group.stuck .tl-fold").click()
    until(page, "stepscopeTimeline.lines.some((line) => line.kind === 'group' && line.folded)")


def test_a_folded_device_shows_every_stream(show: Show, site: Site) -> None:
    """Of a stream that is not the first, a slice is drawn, found under the pointer and selected, by its number."""
    layout = asked(site, "two_ranks", "timeline/layout")
    device = next(group for group in layout["groups"] if group["device"] is not None)
    stream = [track for track in device["tracks"] if track["what"] == "device"][-1]
    found = asked(site, "two_ranks", f"table/events?filter=track={stream['id']}&limit=1")
    names = [column["name"] for column in found["columns"]]
    event = dict(zip(names, found["rows"][0], strict=True))
    start, end = event["start_ns"] - 2_000, event["start_ns"] + event["dur_ns"] + 2_000
    page = ready(
        show("trace", "two_ranks", start=start, end=end, folded=f"r0/g/{device['id']}".replace(" ", "%20"))
    )
    hit = page.evaluate(
        """() => {
          const timeline = stepscopeTimeline;
          const line = timeline.lines.find((each) => each.kind === "group" && each.folded);
          const found = timeline.hit(timeline.viewport.width / 2, line.y - timeline.scroll + 12);
          return found && { id: found.id, layer: found.source.layer, y: line.y - timeline.scroll + 12 };
        }"""
    )
    assert hit and (hit["id"], hit["layer"]) == (event["id"], "events")
    page.locator(".tl-overlay").click(
        position={"x": page.evaluate("stepscopeTimeline.viewport.width / 2"), "y": hit["y"]}
    )
    until(page, f"stepscopeTimeline.marked.chosen?.track === {stream['id']}")
    assert page.evaluate("stepscopeTimeline.marked.chosen.id") == event["id"]
