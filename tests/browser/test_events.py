"""From each kind of row on each page to its events, checked by id against SQL and polars over the same tables; and the way back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import parse_qs, urlsplit

import polars as pl
import pytest

import stepscope
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from stepscope.profiles.profile import Profile
from tests.browser.conftest import Site, settle, until
from tests.browser.profiles import FIXTURES, SAMPLE

Show = Callable[..., Any]
LISTED = "window.stepscopeEvidence?.found && window.stepscopeTimeline?.marked.chosen"


@cache
def sample() -> Profile:
    return stepscope.load(SAMPLE)


@cache
def slices() -> pl.DataFrame:
    """The account of the sample, with the name that each slice is charged to."""
    trace = sample().traces[0]
    found = RankContext(0, trace, Options()).account.slices
    names = trace.events["name"].gather(found["named_by"]).cast(pl.String)
    return found.with_columns(ns=pl.col("end_ns") - pl.col("start_ns"), name=names)


def sql(query: str) -> list[int]:
    """Ids of the sample's events, in order."""
    tables = {name: sample().table(name) for name in ("events", "kernels", "copies", "memory")}
    texts = {
        name: frame.with_columns(pl.col(pl.Categorical, pl.Enum).cast(pl.String))
        for name, frame in tables.items()
    }
    with pl.SQLContext(texts) as context:
        return context.execute(query, eager=True).to_series().to_list()


def charged(*wanted: pl.Expr) -> list[int]:
    """The events that some of the account is charged to, the largest sum first."""
    sums = slices().filter(*wanted).group_by("named_by").agg(pl.col("ns").sum()).drop_nulls("named_by")
    return sums.sort(["ns", "named_by"], descending=[True, False])["named_by"].to_list()


@dataclass
class Listed:
    """What the viewer shows of a handle."""

    ids: list[int]
    total: int
    chosen: int | None
    handle: str
    facts: dict[str, Any]


def listed(page: Any) -> Listed:
    """The list, once its worst event is selected."""
    page.wait_for_url(re.compile("#/trace\\?"))
    until(page, LISTED)

    ids = page.evaluate("stepscopeEvidence.found.events.map((event) => event.id)")
    query = parse_qs(urlsplit(page.url).fragment.partition("?")[2])
    return Listed(
        ids,
        page.evaluate("stepscopeEvidence.found.total"),
        page.evaluate("stepscopeTimeline.marked.chosen.id"),
        query["events"][0],
        json.loads(query.get("facts", ["{}"])[0]),
    )


def check(found: Listed, expected: list[int]) -> None:
    """All of them, the worst first and selected."""
    assert found.ids == expected[:500]
    assert found.total == len(expected)
    assert found.chosen == expected[0]


def row(page: Any, table: str, words: str = "") -> Any:
    """The first row of a table that has the words."""
    return page.locator(f"[data-table={table}] tbody tr[data-to]", has_text=words).first


def quoted(name: str) -> str:
    return name.replace("'", "''")


def test_a_kernel(show: Show) -> None:
    page = show("kernels", "kineto_gpu")
    row(page, "kernels", "nvjet").click()
    found = listed(page)
    grid = ",".join(map(str, found.facts["grid"]))
    same = f"events.kind = 'kernel' AND events.name = '{quoted(found.handle.partition(':')[2])}' AND op.name = '{found.facts['op']}'"
    expected = sql(
        f"SELECT events.id FROM events JOIN kernels ON kernels.event = events.id JOIN events AS op ON op.id = kernels.op WHERE {same} ORDER BY events.dur_ns DESC, events.id"
    )
    grids = dict(sample().table("kernels").select("event", pl.col("grid").arr.to_list()).iter_rows())
    check(found, [each for each in expected if ",".join(map(str, grids[each])) == grid])


def test_an_op(show: Show) -> None:
    page = show("ops", "kineto_gpu", filter="name:aten::_local_scalar_dense")
    row(page, "ops").click()
    found = listed(page)
    assert sorted(found.ids) == sql(
        "SELECT id FROM events WHERE name = 'aten::_local_scalar_dense' AND kind = 'op' AND step IS NOT NULL ORDER BY id"
    )
    assert found.chosen == found.ids[0]


def test_a_finding_a_part_and_a_name_of_the_account(show: Show) -> None:
    page = show("overview", "kineto_gpu")
    page.locator(".finding", has_text="input-bound").get_by_role("link", name="see it in the trace").click()
    found = listed(page)
    worst = charged(pl.col("part") == "input")
    assert found.chosen == worst[0]
    assert set(worst) <= set(found.ids)
    page.go_back()
    settle(page)
    page.locator(".legend a", has_text="synchronisation").click()
    check(listed(page), charged(pl.col("part") == "sync"))
    page.go_back()
    settle(page)
    page.locator(".parts summary", has_text="Python").click()
    page.locator(".parts tr[data-to]", has_text="_init_group").first.click()
    name = "torch/optim/adam.py(139): _init_group"
    check(listed(page), charged(pl.col("part") == "python", pl.col("name") == name))


def test_a_step_a_bar_and_a_phase(show: Show) -> None:
    page = show("steps", "kineto_gpu")
    row(page, "steps").click()
    found = listed(page)
    step = int(found.handle.partition(":")[2])
    assert sorted(found.ids[:200]) == sorted(set(found.ids[:200]) & set(charged(pl.col("step") == step)))
    assert found.total == len(charged(pl.col("step") == step))
    assert page.evaluate("stepscopeEvidence.found.events[0].name") == "make_batch"  # slow in this step alone
    page.go_back()
    settle(page)
    row(page, "phases", "Optimizer.step").click()
    check(
        listed(page),
        sql(
            "SELECT id FROM events WHERE name LIKE 'Optimizer.step%' AND source_category = 'user_annotation' ORDER BY dur_ns DESC"
        ),
    )
    page.go_back()
    settle(page)
    page.locator(".figure", has_text="Every step and its account").locator(".plot").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    page.wait_for_url("**events=step*")
    assert listed(page).handle.startswith("step:")


def test_a_stage_a_copy_and_where_compute_goes(show: Show) -> None:
    page = show("input", "kineto_gpu")
    row(page, "input", "make_batch").click()
    found = listed(page)
    assert sorted(found.ids) == sql("SELECT id FROM events WHERE name = 'make_batch' AND source_category = 'user_annotation' AND step IS NOT NULL ORDER BY id")  # fmt: skip
    page = show("device", "kineto_gpu")
    row(page, "copies", "HtoD").click()
    check(
        listed(page),
        sql("SELECT id FROM events WHERE name = 'Memcpy HtoD (Pinned -> Device)' ORDER BY dur_ns DESC, id"),
    )
    page = show("kernels", "kineto_gpu")
    row(page, "compute", "small kernels").click()
    kernels = set(sql("SELECT id FROM events WHERE kind = 'kernel' AND step IS NOT NULL ORDER BY id"))
    assert set(listed(page).ids) <= kernels
    page.go_back()
    settle(page)
    row(page, "roofline", "attention").click()
    assert set(listed(page).ids) <= kernels


def test_why_a_device_was_idle(show: Show) -> None:
    page = show("device", "kineto_gpu")
    page.locator(".figure", has_text="How busy").locator(".plot").focus()
    for key in ("Home", "Enter"):
        page.keyboard.press(key)
    found = listed(page)
    assert found.handle == "idle:0"
    low, high = found.facts["start"], found.facts["end"]
    inside = (pl.col("start_ns") < high) & (pl.col("end_ns") > low)
    check(found, charged(inside, ~pl.col("part").is_in(["compute", "collective", "copy", "host_compute"])))


def test_what_is_live_in_memory(show: Show) -> None:
    page = show("memory", "kineto_gpu")
    page.locator("tr[data-to]", has_text="aten::empty").first.click()
    found = listed(page)
    sizes = dict(
        zip(
            sql("SELECT event FROM memory ORDER BY event"),
            sql("SELECT bytes FROM memory ORDER BY event"),
            strict=True,
        )
    )
    lengths = [sizes[each] for each in found.ids]
    assert lengths == sorted(lengths, reverse=True)
    assert all(each > 0 for each in lengths)
    assert page.locator(".tl-events b").first.inner_text().endswith("KiB")


def test_a_row_of_sql(show: Show) -> None:
    page = show("sql", "kineto_gpu")
    page.get_by_role("button", name="Longest events").click()
    page.get_by_text("rows in").wait_for()
    page.locator("tbody tr[data-to]").nth(2).click()
    expected = sql("SELECT id FROM events ORDER BY dur_ns DESC LIMIT 3")
    assert listed(page).chosen == expected[2]
    page.go_back()
    settle(page)
    page.get_by_role("button", name="Tracks", exact=True).click()
    page.locator("th", has_text="process").wait_for()
    assert page.locator("tbody tr[data-to]").count() == 0  # the id of a track is none of an event


def test_collectives_and_a_cell_of_the_heat_map(show: Show) -> None:
    profile = stepscope.load(FIXTURES / "capture_gpu/torch_ddp")
    page = show("collectives", "two_ranks")
    row(page, "collectives", "all_reduce").click()
    found = listed(page)
    pairs = page.evaluate("stepscopeEvidence.found.events.map((event) => [event.rank, event.id])")
    calls = profile.table("events").filter(pl.col("role").cast(pl.String) == "collective")
    known = set(calls.select("rank", "id").iter_rows())
    assert {tuple(pair) for pair in pairs} <= known
    assert {rank for rank, _ in pairs} == {0, 1}
    assert found.total == page.evaluate("stepscopeEvidence.found.events.length")
    page.go_back()
    settle(page)
    page.locator(".figure", has_text="Every rank, every step").locator(".plot").focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    found = listed(page)
    assert found.handle.startswith("step:")
    assert set(page.evaluate("stepscopeEvidence.found.events.map((event) => event.rank)")) == {0}


def test_keys_go_through_the_list_and_the_link_keeps_the_place(show: Show) -> None:
    page = show("kernels", "kineto_gpu")
    row(page, "kernels", "nvjet").click()
    ids = listed(page).ids
    for key, expected in (("n", 1), ("n", 2), ("p", 1)):
        page.keyboard.press(key)
        until(page, f"stepscopeTimeline.marked.chosen.id === {ids[expected]}")
    until(page, f"location.hash.includes('event={ids[1]}')")
    assert page.locator(".tl-events [aria-current]").count() == 1
    page.reload()
    assert listed(page).chosen == ids[1]
    assert page.locator(".tl-place").inner_text().startswith("2 of ")
    page.locator(".tl-events button").nth(3).click()
    until(page, f"stepscopeTimeline.marked.chosen.id === {ids[3]}")
    page.get_by_role("button", name="Show all events again").click()
    until(page, "document.querySelector('.tl-strip').hidden && !location.hash.includes('events=')")
    assert page.evaluate("stepscopeTimeline.marked.bands.length") == 0


@pytest.mark.parametrize("way", ["Escape", "link", "browser"])
def test_the_way_back_keeps_the_place(show: Show, way: str) -> None:
    """By keyboard alone: Tab has led to the row, Enter opens it."""
    page = show("ops", "kineto_gpu", filter="aten")
    target = page.locator("[data-table=ops] tbody tr[data-to]").nth(20)
    target.focus()
    address = target.get_attribute("data-to")
    page.evaluate("document.querySelector('.main').scrollTo({ top: 300, behavior: 'instant' })")
    before = page.evaluate("document.querySelector('.main').scrollTop")
    assert before > 0
    page.keyboard.press("Enter")
    listed(page)
    if way == "Escape":
        page.keyboard.press("Escape")
    elif way == "link":
        page.locator(".tl-strip a").click()
    else:
        page.go_back()
    page.wait_for_url("**/#/ops?*filter=aten*")
    until(page, f"Math.abs(document.querySelector('.main').scrollTop - {before}) < 3", "scrolled elsewhere")
    until(page, f"document.activeElement.dataset.to === {json.dumps(address)}", "the focus is elsewhere")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.to") != address


def test_the_way_back_leaves_the_focus_that_was_put_elsewhere(show: Show) -> None:
    """As screen readers do without any key, while rows are still on their way."""
    page = show("ops", "kineto_gpu", filter="aten")
    target = page.locator("[data-table=ops] tbody tr[data-to]").nth(20)
    target.focus()
    page.keyboard.press("Enter")
    listed(page)
    held: list[Any] = []
    page.route("**/api/runs/*/table/ops*", lambda route: held.append(route))
    page.go_back()
    search = page.locator(".main input[type=search]").first
    search.focus()
    until(page, "document.activeElement.type === 'search'")
    page.wait_for_timeout(200)
    for route in held:
        route.continue_()
    settle(page)
    assert held
    page.wait_for_timeout(200)
    assert page.evaluate("document.activeElement.type") == "search"


def test_escape_first_clears_what_was_selected_meanwhile(show: Show) -> None:
    page = show("kernels", "kineto_gpu")
    row(page, "kernels", "nvjet").click()
    chosen = listed(page).chosen
    page.keyboard.press(".")
    until(page, f"stepscopeTimeline.marked.chosen.id !== {chosen}")
    page.keyboard.press("Escape")
    until(page, "stepscopeTimeline.marked.chosen === null")
    page.keyboard.press("Escape")
    page.wait_for_url("**/#/kernels?*")


def test_findings_are_bands_on_the_time_line(show: Show, site: Site) -> None:
    page = show("trace", "kineto_gpu")
    until(page, "window.stepscopeTimeline?.firstPaint > 0 && stepscopeTimeline.arriving === 0")
    titles = [
        finding["title"] for finding in site.get(f"api/runs/{site.run('kineto_gpu')}/report")["findings"]
    ]
    rows = page.evaluate(
        "stepscopeTimeline.lines.filter((line) => line.source?.layer === 'findings').map((line) => line.title)"
    )
    assert rows == titles


def test_a_handle_that_means_nothing_is_explained(page: Any, site: Site, watched: Any) -> None:
    watched.expected += ["Failed to load resource"]
    page.goto(site.link("trace", "kineto_gpu", events="finding:none"))
    until(page, "document.querySelector('.tl-place')?.textContent === 'There is no such finding.'")
