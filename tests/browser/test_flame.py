"""Flame graphs in a browser: by keyboard alone, and from a box to the right events, whatever the graph is of."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import polars as pl
import pytest

import stepscope
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from tests.browser.conftest import Site, playwright, settle, until
from tests.browser.profiles import SAMPLE
from tests.browser.test_accessibility import AXE, violations

expect = playwright.expect
Show = Callable[..., Any]
LISTED = "window.stepscopeEvidence?.found && window.stepscopeTimeline?.marked.chosen"
AT = "stepscopeFlame.graph.at"


@cache
def context() -> RankContext:
    return RankContext(0, stepscope.load(SAMPLE).traces[0], Options())


def opened(show: Show, profile: str = "kineto_gpu", **params: object) -> Any:
    """The page with its graph, which has the focus."""
    page = show("flame", profile, **params)
    ready(page)
    page.locator(".fg").focus()
    return page


def ready(page: Any) -> None:
    settle(page)
    until(page, "document.querySelector('.fg')?.dataset.drawn && stepscopeFlame.graph.boxes.length")


def select(page: Any, name: str, row: int | None = None) -> None:
    """The widest box of a name."""
    more = "" if row is None else f" && box.row === {row}"
    wanted = f"(box) => box.node.name === {json.dumps(name)} && !box.more{more}"
    page.evaluate(
        f"""() => {{
          const found = stepscopeFlame.graph.boxes.filter({wanted}).sort((a, b) => (b.x1 - b.x0) - (a.x1 - a.x0));
          stepscopeFlame.graph.select(found[0]);
        }}"""
    )


def events(page: Any) -> list[int]:
    """Ids of the events that the viewer lists; the worst is selected."""
    page.wait_for_url(re.compile("#/trace\\?"))
    until(page, LISTED)
    ids: list[int] = page.evaluate("stepscopeEvidence.found.events.map((event) => event.id)")
    assert page.evaluate("stepscopeTimeline.marked.chosen.id") == ids[0]
    return ids


def named(name: str, *wanted: pl.Expr) -> list[int]:
    """Ids of events of the sample's host threads inside steps, by polars over the same table."""
    trace = context().trace
    hosts = trace.tracks.filter(pl.col("what") == "host")["id"].implode()
    inside = pl.col("track").is_in(hosts) & pl.col("step").is_not_null()
    found = trace.events.filter(pl.col("name").cast(pl.String) == name, inside, *wanted)
    return found["id"].to_list()


def test_arrow_keys_enter_and_escape(show: Show) -> None:
    page = opened(show, tree="stack")
    for key in ("ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    until(page, f"{AT}.row === 4")
    expect(page.locator(".fg-about")).to_contain_text("of all")
    name = page.evaluate(f"{AT}.node.name")
    page.keyboard.press("Enter")
    page.wait_for_url("**zoom=*")
    until(page, "stepscopeFlame.zoom !== null")
    assert page.evaluate(f"{AT}.node.name") == name
    assert page.evaluate(f"{AT}.x1 - {AT}.x0") == 1
    page.reload()
    ready(page)
    assert page.evaluate("stepscopeFlame.zoom.name") == name
    page.locator(".fg").focus()
    for _ in range(4):
        page.keyboard.press("Backspace")
    until(page, "stepscopeFlame.zoom === null")
    assert "zoom=" not in page.url


def test_keys_change_the_view(show: Show) -> None:
    page = opened(show, tree="stack")
    total = page.evaluate("stepscopeFlame.options.root.total")
    page.keyboard.press("i")
    page.wait_for_url("**inverted=1*")
    assert page.evaluate("stepscopeFlame.top.total") == pytest.approx(total)
    page.keyboard.press("i")
    until(page, "!location.hash.includes('inverted')")
    select(page, "aten::linear")
    page.keyboard.press("s")
    page.wait_for_url("**sandwich=aten*")
    both = page.evaluate("[stepscopeFlame.around.callers.total, stepscopeFlame.around.callees.total]")
    assert both[0] == both[1] > 0
    page.keyboard.press("Escape")
    until(page, "!location.hash.includes('sandwich')")
    page.keyboard.press("t")
    page.wait_for_url("**order=time*")
    until(page, "stepscopeFlame.inOrder !== null")
    page.keyboard.press("t")
    until(page, "!location.hash.includes('order=')")
    page.keyboard.press("/")
    page.keyboard.type("aten::(mm|addmm)$")
    expect(page.locator(".fg-bar [role=status]")).to_contain_text("2 names in")
    page.keyboard.press("Enter")
    until(page, f"/^aten::(mm|addmm)$/.test({AT}?.node.name)")
    page.keyboard.press("e")
    assert events(page)


def test_a_box_of_a_call_stack_leads_to_its_events(show: Show) -> None:
    page = opened(show, tree="stack")
    select(page, "make_batch")
    page.keyboard.press("e")
    assert sorted(events(page)) == sorted(named("make_batch"))
    page.keyboard.press("Escape")
    page.wait_for_url("**#/flame?*tree=stack*")


def test_a_module_leads_to_its_ops(show: Show) -> None:
    page = opened(show, measure="device")
    select(page, "aten::mm")
    path = page.evaluate(f"{AT}.node.path.map((node) => node.name)")
    page.get_by_role("link", name="its events in the trace").click()
    calls = context().op_calls.filter(pl.col("step").is_not_null(), pl.col("device_self_ns") > 0)
    scope = pl.col("scope").cast(pl.String).fill_null("(no scope)") == "/".join(path[:-1])
    expected = calls.filter(scope, pl.col("name").cast(pl.String) == "aten::mm")["event"].to_list()
    assert sorted(events(page)) == sorted(expected)


def test_inverted_and_around_a_function(show: Show) -> None:
    name = "aten::_local_scalar_dense"
    page = opened(show, tree="stack", inverted=1)
    select(page, name, row=1)
    page.keyboard.press("e")
    assert sorted(events(page)) == named(name)
    page = opened(show, tree="stack", sandwich=name)
    select(page, name)
    page.keyboard.press("e")
    assert sorted(events(page)) == named(name)


def test_in_time_order_a_box_is_one_event(show: Show) -> None:
    page = opened(show, tree="stack", order="time")
    select(page, "make_batch")
    before = page.evaluate("stepscopeFlame.answer.shown")
    page.keyboard.press("Enter")
    until(
        page,
        "stepscopeFlame.answer.shown[0] > 0 || stepscopeFlame.answer.shown[1] < stepscopeFlame.answer.whole",
    )
    page.wait_for_url("**zoom=*")
    page.keyboard.press("Escape")
    until(page, f"stepscopeFlame.answer.shown[1] === {before[1]}")
    select(page, "make_batch")
    event = page.evaluate(f"{AT}.node.like")
    page.keyboard.press("e")
    assert events(page) == [event]
    assert event in named("make_batch")


def test_a_click_zooms_and_the_pointer_says_what_is_below_it(show: Show) -> None:
    page = opened(show, tree="stack")
    page.locator(".fg").hover(position={"x": 60, "y": 70})
    expect(page.locator(".tip")).to_contain_text("of all")
    page.locator(".fg").click(position={"x": 60, "y": 135})
    page.wait_for_url("**zoom=*")
    expect(page.locator(".fg-about b")).not_to_be_empty()
    page.get_by_role("button", name="zoom out").click()


def test_of_a_step_and_of_a_range(show: Show) -> None:
    window = context().steps.windows.row(1, named=True)
    page = opened(show, tree="stack", step=window["step"])
    whole = page.evaluate("stepscopeFlame.options.root.total")
    select(page, "make_batch")
    page.keyboard.press("e")
    assert events(page) == named("make_batch", pl.col("step") == window["step"])
    page = opened(show, tree="stack", **{"from": window["start_ns"], "to": window["end_ns"]})
    expect(page.get_by_role("button", name=re.compile("^range of"))).to_be_visible()
    assert abs(page.evaluate("stepscopeFlame.options.root.total") - whole) < whole * 0.2
    select(page, "make_batch")
    page.keyboard.press("e")
    assert events(page) == named("make_batch", pl.col("step") == window["step"])
    page = opened(show, tree="stack", **{"from": window["start_ns"], "to": window["end_ns"]})
    page.get_by_role("button", name=re.compile("^range of")).click()
    until(page, "!location.hash.includes('from=')")


def test_widths_and_colours(show: Show) -> None:
    page = opened(show)
    expect(page.locator(".fg-legend")).to_contain_text("modules and scopes")
    page.get_by_role("button", name="module", exact=True).click()
    page.wait_for_url("**colour=module*")
    expect(page.locator(".fg-legend")).to_contain_text("MultiheadAttention")
    page.get_by_role("button", name="allocated bytes").click()
    page.wait_for_url("**measure=memory*")
    ready(page)
    page.locator(".fg").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".fg-about")).to_contain_text("iB")


def test_the_graph_of_a_diff(page: Any, site: Site) -> None:
    page.goto(site.link("compare", None, a=site.run("before"), b=site.run("after")))
    ready(page)
    expect(page.locator(".fg-legend")).to_contain_text("less")
    page.locator(".fg").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowDown"):
        page.keyboard.press(key)
    expect(page.locator(".fg-about")).to_contain_text("a step (")
    name = page.evaluate(f"{AT}.node.name")
    page.keyboard.press("i")
    until(page, "stepscopeFlame.state.inverted")
    select(page, name)
    page.keyboard.press("e")
    ids = events(page)
    query = parse_qs(urlsplit(page.url).fragment.partition("?")[2])
    assert query["run"] == [site.run("after")]
    profile = stepscope.load(site.folder / "after")
    assert {str(profile.traces[0].events["name"][each]) for each in ids} == {name}


def test_old_links_of_the_ops_page_lead_here(show: Show) -> None:
    page = show("ops", "kineto_gpu", view="flame", tree="stack")
    page.wait_for_url("**#/flame?*tree=stack*")
    ready(page)


def test_nothing_to_draw_says_why(show: Show) -> None:
    page = show("flame", "chrome", measure="memory")
    expect(page.locator(".empty")).to_contain_text("profile_memory=True")


@pytest.fixture
def narrow(page: Any) -> Iterator[Any]:
    page.set_viewport_size({"width": 390, "height": 844})
    yield page
    page.set_viewport_size({"width": 1280, "height": 800})


def test_on_a_phone(narrow: Any, show: Show) -> None:
    page = opened(show, tree="stack")
    assert page.evaluate("document.documentElement.scrollWidth") == 390
    assert (
        page.evaluate(
            "document.querySelector('.main').scrollWidth - document.querySelector('.main').clientWidth"
        )
        == 0
    )
    page.locator(".fg").click(position={"x": 40, "y": 115})
    page.wait_for_url("**zoom=*")


@pytest.mark.skipif(not AXE.is_file(), reason="axe-core is not installed: npm install")
@pytest.mark.parametrize("theme", ["light", "dark"])
def test_no_serious_violation_with_a_box_selected(show: Show, page: Any, theme: str) -> None:
    page.emulate_media(color_scheme=theme)
    try:
        opened(show, tree="stack", sandwich="aten::linear", find="mm")
        page.keyboard.press("ArrowDown")
        assert violations(page) == []
        if os.environ.get("STEPSCOPE_SHOTS"):
            page.screenshot(path=f"{os.environ['STEPSCOPE_SHOTS']}/flame-{theme}.png")
    finally:
        page.emulate_media(color_scheme="light")
