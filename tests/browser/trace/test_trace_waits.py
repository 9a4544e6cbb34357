"""What a selected event waited for, what waited for it, and one collective on several ranks, checked by event id."""

from __future__ import annotations

import re
from typing import Any

from tests.browser.conftest import Site, until
from tests.browser.test_trace import Show, asked, event_of, ready

STROKES = """() => {
  const timeline = stepscopeTimeline;
  const { ctx } = timeline.painter;
  const real = ctx.stroke;
  let paths = 0;
  ctx.stroke = function (path) { if (path instanceof Path2D) paths += 1; return real.apply(this, arguments); };
  timeline.frame();
  delete ctx.stroke;
  return paths;
}"""


def waited(page: Any) -> list[int]:
    page.locator(".tl-drawer .tl-waits").first.wait_for()
    return [int(each.get_attribute("data-wait")) for each in page.locator("[data-wait]").all()]


def test_a_kernel_shows_what_it_waited_for_and_what_waited_for_it(show: Show, site: Site) -> None:
    kernel = event_of(site, "kineto_gpu", "/^void at::/")
    found = asked(site, "kineto_gpu", f"timeline/waits?id={kernel}")
    page = ready(show("trace", "kineto_gpu", event=kernel))
    assert waited(page) == [wait["id"] for wait in [*found["before"], *found["after"]]]
    decides = next(wait["id"] for wait in found["before"] if wait["decides"])
    page.locator(".tl-overlay").focus()
    page.keyboard.press("{")
    until(page, f"stepscopeTimeline.marked.chosen?.id === {decides}")
    theirs = asked(site, "kineto_gpu", f"timeline/waits?id={decides}")["after"]
    onward = next((wait["id"] for wait in theirs if wait["decides"]), theirs[0]["id"])
    page.keyboard.press("}")
    until(page, f"stepscopeTimeline.marked.chosen?.id === {onward}")


def test_a_host_wait_leads_to_the_work_that_it_waited_for(show: Show, site: Site) -> None:
    wait = event_of(site, "kineto_gpu", "cudaStreamSynchronize")
    work = asked(site, "kineto_gpu", f"timeline/waits?id={wait}")["before"][0]["id"]
    page = ready(show("trace", "kineto_gpu", event=wait))
    page.locator(f"[data-wait='{work}'] button").click()
    until(page, f"stepscopeTimeline.marked.chosen?.id === {work}")
    page.locator(".tl-drawer").get_by_text("the host waits for it in").wait_for()


def test_one_collective_on_two_ranks_is_joined_by_arrows(show: Show, site: Site) -> None:
    first = event_of(site, "two_ranks", "gloo:all_reduce")
    calls = asked(site, "two_ranks", f"timeline/meeting?rank=0&beside=0&ranks=0,1&id={first}")["calls"]
    assert [call["rank"] for call in calls] == [0, 1]
    page = ready(show("trace", "two_ranks", event=first, open="1"))
    rows = page.locator("[data-rank]")
    rows.first.wait_for()
    assert sorted(rows.evaluate_all("(all) => all.map((row) => Number(row.dataset.rank))")) == [0, 1]
    page.locator(".tl-drawer").get_by_text(re.compile("comes last")).wait_for()
    until(page, "stepscopeTimeline.marked.meeting.length === 2")
    page.locator(".tl-drawer .tl-close").focus()
    page.keyboard.press("q")
    until(page, "document.querySelector('.tl-drawer').hidden")
    with_meeting = page.evaluate(STROKES)
    without = page.evaluate(f"() => {{ stepscopeTimeline.marked.meeting = []; return ({STROKES})(); }}")
    assert with_meeting == without + 2, "one arrow, with its halo"
    page.keyboard.press("q")
    page.locator("[data-rank='1'] button").click()
    until(
        page,
        f"stepscopeTimeline.marked.chosen?.rank === 1 && stepscopeTimeline.marked.chosen.id === {calls[1]['id']}",
    )
