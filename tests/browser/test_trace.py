"""The trace viewer in a real browser: drawn for every format, moved, searched, selected, arranged and linked to."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any
from urllib.parse import quote

import pytest

from tests.browser.conftest import Site, Watched, until
from tests.patience import tries

PROFILES = ("kineto_gpu", "xplane_jax", "xplane_tf", "chrome", "tf1_events", "two_ranks")
COLOURS = """() => {
  const canvas = document.querySelector(".tl-canvas");
  const data = new Uint32Array(canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer);
  return new Set(data).size;
}"""
PAPER = """() => {
  const canvas = document.querySelector(".tl-canvas");
  return [...canvas.getContext("2d").getImageData(canvas.width - 2, canvas.height - 2, 1, 1).data];
}"""
# Links, and the waits that decided when something began, as far as they are no links.
ARROWS = """() => {
  const { links, waits } = stepscopeTimeline.marked;
  return links.length + waits.filter((wait) => wait.decides && links.every((link) => link.id !== wait.id)).length;
}"""
Show = Callable[..., Any]


# Painted, with the rows that come later, and nothing on its way, also no frame that would ask for more.
AT_REST = """(() => {
  const timeline = window.stepscopeTimeline;
  if (!timeline?.firstPaint || timeline.arriving || timeline.scheduled) return false;
  return !timeline.tiles.wishes.length && !timeline.tiles.running;
})()"""


def ready(page: Any) -> Any:
    """At rest: rows that come would move what a test clicks on, and where nothing is painted there is nothing to click on."""
    until(page, AT_REST)
    return page


def with_layers(page: Any) -> Any:
    """Also with the account."""
    ready(page)
    assert page.evaluate("stepscopeTimeline.lines.some((line) => line.key.includes('/account/'))")
    return page


def click_row(page: Any, words: str, share: float) -> None:
    """Click into the first row of the track with this title, at a share of the view's width."""
    place = page.evaluate(
        """([words, share]) => {
          const timeline = stepscopeTimeline;
          const line = timeline.lines.find((each) => each.title.includes(words));
          const box = timeline.elements.overlay.getBoundingClientRect();
          return [box.left + share * timeline.viewport.width, box.top + line.y - timeline.scroll + 9];
        }""",
        [words, share],
    )
    page.mouse.click(*place)


def asked(site: Site, profile: str, route: str) -> Any:
    """JSON about a run, once it is read."""
    for _ in tries():
        found = site.get(f"api/runs/{site.run(profile)}/{route}")
        if found.get("state") != "loading":
            return found
    raise AssertionError(f"{route} never came")


def event_of(site: Site, profile: str, text: str) -> int:
    """The first event whose name matches."""
    return int(asked(site, profile, f"timeline/found?q={quote(text)}&at=0&by=1")["id"])


@pytest.mark.parametrize("profile", PROFILES)
def test_every_format_is_drawn(profile: str, show: Show) -> None:
    page = ready(show("trace", profile))
    until(page, f"({COLOURS})() > 4")
    assert page.locator(".tl-line").count() >= 2
    assert re.match(r"[\d,]+ events", page.locator(".tl-status").inner_text())
    text = page.locator(".tl").inner_text()
    assert not re.search(r"\b(undefined|NaN|null|\[object)\b", text)


def test_steps_phases_account_and_counters_have_rows_of_their_own(show: Show) -> None:
    page = with_layers(show("trace", "kineto_gpu"))
    titles = page.locator(".tl-line .tl-title").all_inner_texts()
    assert titles[:2] == ["Steps", "Steps on GPU 0"]
    assert "Account of GPU 0" in titles
    assert {"busy", "queue depth", "memory allocated"} <= set(titles)


def test_keys_move_and_the_link_follows(show: Show) -> None:
    page = ready(show("trace", "kineto_gpu"))
    whole = page.evaluate("stepscopeTimeline.viewport.span")
    page.locator(".tl-overlay").hover(position={"x": 500, "y": 200})
    page.keyboard.down("w")
    until(page, f"stepscopeTimeline.viewport.span < {whole} / 3")
    page.keyboard.up("w")
    page.wait_for_url(re.compile(r"start=-?\d+&end=-?\d+"))
    before = page.evaluate("stepscopeTimeline.viewport.start")
    page.keyboard.down("d")
    until(page, f"stepscopeTimeline.viewport.start > {before}")
    page.keyboard.up("d")
    page.keyboard.press("0")
    until(page, f"stepscopeTimeline.viewport.span >= {whole}")


def test_the_wheel_scrolls_zooms_and_pans(show: Show) -> None:
    page = ready(show("trace", "kineto_gpu"))
    page.locator(".tl-overlay").hover(position={"x": 400, "y": 300})
    page.mouse.wheel(0, 120)
    until(page, "stepscopeTimeline.scroll > 50")
    whole = page.evaluate("stepscopeTimeline.viewport.span")
    page.keyboard.down("Control")
    page.mouse.wheel(0, -600)
    page.keyboard.up("Control")
    until(page, f"stepscopeTimeline.viewport.span < {whole}")


def test_a_slice_tells_its_arguments_stack_links_op_and_step(show: Show, site: Site) -> None:
    kernel = event_of(site, "kineto_gpu", "/^void at::/")
    page = ready(show("trace", "kineto_gpu", event=kernel))
    drawer = page.locator(".tl-drawer")
    drawer.get_by_text("launched by").wait_for()
    drawer.get_by_text("grid").wait_for()
    drawer.get_by_text("launched from, outermost first").wait_for()
    drawer.get_by_text("correlation").wait_for()
    assert drawer.get_by_text(re.compile(r"^step \d+$")).count() == 1
    links = page.evaluate("stepscopeTimeline.marked.links.map((link) => [link.why, link.direction])")
    assert ["launch", "from"] in links
    page.locator(".tl-overlay").focus()
    page.keyboard.press("[")
    drawer.get_by_text("launches").wait_for()
    page.keyboard.press("]")
    until(page, f"stepscopeTimeline.marked.chosen?.id === {kernel}")


def test_the_critical_path_is_followed_with_a_key(show: Show, site: Site) -> None:
    kernel = event_of(site, "kineto_gpu", "/^void at::/")
    page = ready(show("trace", "kineto_gpu", event=kernel))
    assert page.evaluate("stepscopeTimeline.lines.some((line) => line.title === 'Critical path')")
    begin = page.evaluate("stepscopeTimeline.marked.chosen.start")
    page.keyboard.press("c")
    until(page, "stepscopeTimeline.marked.chosen?.layer === 'path'")
    first = page.evaluate("stepscopeTimeline.marked.chosen")
    assert first["start"] <= begin < first["start"] + first["dur"]
    page.keyboard.press("c")
    after = first["start"] + first["dur"]
    until(page, f"Math.abs(stepscopeTimeline.marked.chosen?.start - {after}) < 1")
    page.keyboard.press("Shift+C")
    until(page, f"stepscopeTimeline.marked.chosen?.id === {first['id']}")
    page.locator(".tl-drawer").get_by_text("because of").wait_for()


def test_arrows_are_drawn_between_launch_and_kernel(show: Show, site: Site) -> None:
    kernel = event_of(site, "kineto_gpu", "/^void at::/")
    page = ready(show("trace", "kineto_gpu", event=kernel))
    page.locator(".tl-drawer").get_by_text("launched by").wait_for()
    page.locator(".tl-drawer .tl-waits").first.wait_for()
    page.keyboard.press("q")
    until(page, "document.querySelector('.tl-drawer').hidden")
    strokes = page.evaluate(
        """async () => {
          const timeline = stepscopeTimeline;
          const { ctx } = timeline.painter;
          const real = ctx.stroke;
          let paths = 0;
          ctx.stroke = function (path) { if (path instanceof Path2D) paths += 1; return real.apply(this, arguments); };
          timeline.frame();
          delete ctx.stroke;
          return paths;
        }"""
    )
    assert strokes == 2 * page.evaluate(ARROWS)
    page.keyboard.press("q")


def test_forward_and_backward_are_linked(show: Show, site: Site) -> None:
    found = asked(site, "kineto_gpu", "table/links?filter=forward-backward&limit=1")
    names = [column["name"] for column in found["columns"]]
    first = found["rows"][0][names.index("from")]
    page = ready(show("trace", "kineto_gpu", event=first))
    page.locator(".tl-drawer").get_by_text("backward", exact=False).first.wait_for()
    assert "forward-backward" in page.evaluate("stepscopeTimeline.marked.links.map((link) => link.why)")


def test_clicks_select_and_keys_go_on_from_there(show: Show) -> None:
    page = with_layers(show("trace", "kineto_gpu"))
    click_row(page, "Steps on GPU 0", 0.5)
    drawer = page.locator(".tl-drawer")
    drawer.locator("h2").get_by_text(re.compile("^step")).wait_for()
    first = page.evaluate("stepscopeTimeline.marked.chosen.id")
    page.keyboard.press(".")
    until(page, f"stepscopeTimeline.marked.chosen?.id === {first + 1}")
    page.keyboard.press(",")
    until(page, f"stepscopeTimeline.marked.chosen?.id === {first}")
    page.keyboard.press("f")
    page.keyboard.press("f")
    until(page, "stepscopeTimeline.viewport.span < 1.5 * stepscopeTimeline.marked.chosen.dur")
    page.keyboard.press("Shift+M")
    until(page, "stepscopeTimeline.marked.marks.length === 1")
    page.keyboard.press("r")
    drawer.get_by_text("selected on").wait_for()
    page.keyboard.press("Escape")
    until(page, "document.querySelector('.tl-drawer').hidden && !stepscopeTimeline.marked.range")


def test_the_account_names_its_cause(show: Show) -> None:
    page = with_layers(show("trace", "kineto_gpu"))
    click_row(page, "Account of GPU 0", 0.5)
    page.locator(".tl-drawer").get_by_text("because of").wait_for()
    page.locator(".tl-drawer dd .tl-link").first.click()
    until(page, "stepscopeTimeline.marked.chosen?.layer === 'events'")


def test_dragging_selects_a_range_and_adds_it_up(show: Show) -> None:
    page = with_layers(show("trace", "kineto_gpu"))
    box = page.locator(".tl-overlay").bounding_box()
    page.mouse.move(box["x"] + 200, box["y"] + 60)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 300, steps=3)
    page.mouse.move(box["x"] + 500, box["y"] + 420, steps=3)
    page.mouse.up()
    drawer = page.locator(".tl-drawer")
    drawer.locator("td").first.wait_for()
    assert "GPU 0" in drawer.locator("h2").inner_text()
    assert "busy" in drawer.locator("h2").inner_text()
    drawer.get_by_role("button", name="count", exact=True).click()
    counts = [
        int(text.replace(",", "")) for text in drawer.locator("tbody td:nth-child(2)").all_inner_texts()
    ]
    assert counts == sorted(counts, reverse=True)
    drawer.get_by_role("button", name="by track").click()
    drawer.get_by_text("stream 7").first.wait_for()
    drawer.get_by_role("button", name="by part").click()
    drawer.get_by_text("Kernels run on the device.").wait_for()
    page.wait_for_url(re.compile(r"from=\d+&to=\d+&tracks="))
    page.reload()
    ready(page)
    page.locator(".tl-drawer").get_by_text("selected on").wait_for()


def test_shift_and_drag_pans(show: Show) -> None:
    page = ready(show("trace", "kineto_gpu"))
    page.evaluate("stepscopeTimeline.viewport.zoom(0.2, 400)")
    before = page.evaluate("stepscopeTimeline.viewport.start")
    box = page.locator(".tl-overlay").bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + 400, box["y"] + 100)
    page.mouse.down()
    page.mouse.move(box["x"] + 300, box["y"] + 100, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    until(page, f"stepscopeTimeline.viewport.start > {before}")
    assert page.evaluate("stepscopeTimeline.marked.range") is None


def test_search_finds_what_is_not_on_screen(show: Show, site: Site) -> None:
    page = ready(show("trace", "kineto_gpu"))
    low, high = page.evaluate("[stepscopeTimeline.viewport.low, stepscopeTimeline.viewport.high]")
    page.evaluate(f"stepscopeTimeline.viewport.show({low}, {low + (high - low) / 1000})")
    total = asked(site, "kineto_gpu", "timeline/search?q=aten::mm")["count"]
    page.keyboard.press("/")
    page.keyboard.type("aten::mm")
    page.keyboard.press("Enter")
    found = page.locator(".tl-found")
    found.get_by_text(f"1 of {total}").wait_for()
    first = page.evaluate("stepscopeTimeline.marked.chosen?.id")
    page.keyboard.press("Enter")
    found.get_by_text(f"2 of {total}").wait_for()
    page.keyboard.press("Shift+Enter")
    found.get_by_text(f"1 of {total}").wait_for()
    until(page, f"stepscopeTimeline.marked.chosen?.id === {first}")
    assert page.evaluate("stepscopeTimeline.minimap.hits.some((count) => count > 0)")
    page.keyboard.press("Escape")
    until(page, "stepscopeTimeline.minimap.hits === null")


def test_search_that_finds_nothing_says_so(show: Show) -> None:
    page = ready(show("trace", "kineto_gpu"))
    page.locator(".tl-search").fill("no such thing")
    page.locator(".tl-found").get_by_text("nothing found").wait_for()


def test_tracks_are_pinned_folded_filtered_and_the_link_keeps_it(show: Show) -> None:
    page = with_layers(show("trace", "kineto_gpu"))
    stream = page.locator(".tl-line", has_text="stream 7").first
    stream.hover()
    stream.get_by_role("button", name=re.compile("^Pin")).click()
    until(page, "stepscopeTimeline.lines[0].pinned")
    page.get_by_role("button", name="Fold main thread").click()
    page.locator(".tl-filter").fill("main")
    until(page, "stepscopeTimeline.lines.length === 3")
    page.wait_for_url(re.compile(r"pinned=.*folded=.*filter=main"))
    page.reload()
    ready(page)
    assert page.evaluate("stepscopeTimeline.lines.map((line) => [line.kind, line.pinned, line.folded])") == [
        ["track", True, False],
        ["group", False, False],
        ["track", False, True],
    ]


COUNTERS = "stepscopeTimeline.lines.filter((line) => line.kind === 'counter').map((line) => line.title)"


def queue_depth_moved_up(page: Any) -> list[str]:
    """With the keyboard; returns the order of the counters before."""
    before: list[str] = page.evaluate(COUNTERS)
    page.get_by_role("button", name="Fold queue depth").focus()
    page.keyboard.press("Alt+ArrowUp")
    until(page, f"{COUNTERS}.indexOf('queue depth') === {before.index('queue depth') - 1}")
    return before


def test_tracks_are_moved_with_the_keyboard(show: Show) -> None:
    queue_depth_moved_up(with_layers(show("trace", "kineto_gpu")))


def test_the_minimap_chooses_what_is_shown(show: Show) -> None:
    page = ready(show("trace", "kineto_gpu"))
    whole = page.evaluate("stepscopeTimeline.viewport.span")
    box = page.locator(".tl-minimap").bounding_box()
    page.mouse.move(box["x"] + 300, box["y"] + 20)
    page.mouse.down()
    page.mouse.move(box["x"] + 400, box["y"] + 20, steps=4)
    page.mouse.up()
    until(page, f"stepscopeTimeline.viewport.span < {whole} / 3")


ENDS = """async () => {
  const { ask, ranks } = stepscopeTimeline;
  const found = [];
  for (const { rank, source } of ranks) {
    const hit = await ask.found(rank, "gloo:all_reduce", -1e15, null, 1);
    const event = await ask.event(rank, "events", hit.id);
    found.push(event.start_ns + event.dur_ns + source.shift);
  }
  return found;
}"""


def test_another_rank_opens_on_the_same_clock(show: Show) -> None:
    """Matching collectives end together on the screen, within what is said to be left."""
    page = ready(show("trace", "two_ranks"))
    page.keyboard.press("End")
    page.get_by_role("button", name="Unfold Rank 1").click()
    until(page, "stepscopeTimeline.ranks[1].layout !== null && stepscopeTimeline.ranks[1].layers.length > 0")
    ready(page)
    page.locator(".tl-status").get_by_text(
        re.compile(r"Rank 1 aligned to ±.+ \(\d+ collectives\)")
    ).wait_for()
    clock = page.evaluate("stepscopeTimeline.ranks[1].layout.clock")
    one, two = page.evaluate(ENDS)
    assert clock["collectives"] > 2
    assert abs(one - two) <= 10 * clock["residual_ns"] + 1_000


def test_search_goes_on_in_the_next_rank(show: Show) -> None:
    """Hits of a rank that nobody opened are counted, and found: the rank opens for them."""
    page = ready(show("trace", "two_ranks"))
    page.locator(".tl-search").fill("gloo:all_reduce")
    page.locator(".tl-found").get_by_text(re.compile(r"\d+ found in 2 ranks")).wait_for()
    titles = page.evaluate(
        "stepscopeTimeline.lines.filter((line) => line.kind === 'rank').map((line) => line.title)"
    )
    counts = [int(re.findall(r"· (\d+) found", title)[0]) for title in titles]
    assert min(counts) > 0
    page.keyboard.press("Shift+Enter")  # from the end of what is shown: the last hit of rank 0
    page.locator(".tl-found").get_by_text(f"{counts[0]} of {sum(counts)} · rank 0").wait_for()
    page.keyboard.press("Enter")
    page.locator(".tl-found").get_by_text(f"{counts[0] + 1} of {sum(counts)} · rank 1").wait_for()
    assert page.evaluate("stepscopeTimeline.marked.chosen.rank") == 1
    until(page, "stepscopeTimeline.lit.size === 2", "the hits of the other rank are not lit")


def test_dark_mode_repaints(page: Any, show: Show) -> None:
    ready(show("trace", "kineto_gpu"))
    light = page.evaluate(PAPER)
    page.get_by_role("button", name="Dark").click()
    assert min(light[:3]) > 200
    until(page, f"Math.max(...({PAPER})().slice(0, 3)) < 60")
    page.get_by_role("button", name="Light").click()


def test_the_help_shows_the_keys(show: Show) -> None:
    page = ready(show("trace", "kineto_gpu"))
    page.keyboard.press("?")
    page.locator("dialog").get_by_text("zoom in and out at the pointer").wait_for()
    page.keyboard.press("Escape")
    page.locator("dialog").wait_for(state="detached")


def test_names_from_the_file_are_text(show: Show) -> None:
    page = ready(show("trace", "hostile", event=3))
    page.locator(".tl-drawer h2").wait_for()
    page.locator(".tl-search").fill("<img")
    page.locator(".tl-found").get_by_text(re.compile(r"\d+ found")).wait_for()
    page.keyboard.press("Enter")
    page.locator(".tl-drawer h2").get_by_text("<img src=x").wait_for()
    assert page.evaluate("window.hacked") is None
    assert page.locator(".tl img, .tl script, .tl b:has(*)").count() == 0


def test_a_server_that_stumbles_is_told_and_asked_again(page: Any, show: Show, watched: Watched) -> None:
    watched.expected += ["Failed to load resource", "net::ERR"]
    ready(show("trace", "kineto_gpu"))
    page.route("**/timeline/tiles?*", lambda route: route.abort())
    page.evaluate("stepscopeTimeline.viewport.zoom(0.01, 300); stepscopeTimeline.invalidate()")
    page.locator(".tl-status.error").wait_for()
    with page.expect_response("**/timeline/tiles?*"):
        page.unroute("**/timeline/tiles?*")
    ready(page)


def test_the_download_for_perfetto_is_offered(show: Show, site: Site) -> None:
    page = ready(show("trace", "kineto_gpu"))
    link = page.get_by_text("Open in Perfetto").get_attribute("href")
    assert link == f"api/runs/{site.run('kineto_gpu')}/chrome"


def test_fold_all_brings_the_ranks_together_and_back(show: Show) -> None:
    page = with_layers(show("trace", "two_ranks"))
    height = page.evaluate("stepscopeTimeline.linesHeight")
    page.get_by_role("button", name="Fold all groups").click()
    assert page.evaluate("stepscopeTimeline.linesHeight") < height / 2
    page.get_by_role("button", name="Unfold Rank 1").wait_for()
    page.get_by_role("button", name="Fold all groups").click()
    assert page.evaluate("stepscopeTimeline.linesHeight") == height


def test_all_ranks_come_below_one_another(show: Show, site: Site) -> None:
    """One click reads the others, folded; a range is then added up over all of them, and the link keeps it."""
    page = ready(show("trace", "two_ranks"))
    page.get_by_role("button", name="All ranks").click()
    until(page, "stepscopeTimeline.ranks.every((rank) => rank.layout)")
    ready(page)
    assert page.get_by_role("button", name="All ranks").is_hidden()
    kinds = page.evaluate(
        "stepscopeTimeline.lines.filter((line) => line.kind === 'group').map((line) => line.folded)"
    )
    assert len(kinds) >= 2 and all(kinds)
    page.wait_for_url(re.compile(r"open=1&.*folded=all|folded=all&.*open=1"))
    page.locator(".tl-overlay").focus()
    page.keyboard.press("Control+a")
    page.locator(".tl-drawer h2").get_by_text(re.compile(r"of 2 ranks, [\d,]+ events")).wait_for()
    events = page.locator(".tl-drawer h2").inner_text()
    page.wait_for_url(re.compile(r"from=-?\d+&to=-?\d+&tracks="))  # the address follows a little later
    page.reload()
    until(page, "window.stepscopeTimeline?.ranks.every((rank) => rank.layout)")
    page.locator(".tl-drawer h2").get_by_text(events).wait_for()
    page.get_by_text("Unfold all").click()
    assert not page.evaluate("stepscopeTimeline.lines.some((line) => line.folded)")


def test_a_key_that_goes_up_as_another_letter_is_let_go(show: Show) -> None:
    """Shift goes up before the key: the browser then tells = where it told + before."""
    page = ready(show("trace", "kineto_gpu"))
    page.evaluate(
        """() => {
          const tell = (type, key) => document.dispatchEvent(new KeyboardEvent(type, { key, code: "Equal", bubbles: true }));
          tell("keydown", "+");
          tell("keyup", "=");
        }"""
    )
    before = page.evaluate("stepscopeTimeline.viewport.span")
    page.wait_for_timeout(150)
    assert page.evaluate("stepscopeTimeline.viewport.span") == before


def test_a_filter_that_nothing_matches_says_so(show: Show) -> None:
    page = with_layers(show("trace", "two_ranks"))
    page.get_by_label("Show only tracks whose names hold this").fill("no such track")
    page.get_by_text("No track matches “no such track” in the unfolded ranks.").wait_for()
    assert page.evaluate("stepscopeTimeline.lines.map((line) => line.title)") == ["Rank 0", "Rank 1"]
    page.get_by_label("Show only tracks whose names hold this").fill("step")
    page.get_by_text("No track matches").wait_for(state="hidden")
