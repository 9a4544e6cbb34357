"""Tables: sorted, filtered and paged on the server, exported, and restored by their link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.browser.conftest import Site, Watched, playwright, settle


def names(page: Any, table: str = "") -> list[str]:
    chosen = f"[data-table={table}]" if table else "[data-table]"
    found: list[str] = page.locator(f"{chosen} tbody td:first-child").all_inner_texts()
    return found


def test_sorted_by_the_server(show: Callable[..., Any]) -> None:
    page = show("ops", "kineto_gpu")
    before = names(page)
    page.locator("th button", has_text="host self").click()
    playwright.expect(page.locator("th[aria-sort=descending]")).to_have_text("host self")
    settle(page)
    assert names(page) != before
    page.locator("th button", has_text="host self").click()
    playwright.expect(page.locator("th[aria-sort=ascending]")).to_have_text("host self")
    page.wait_for_url("**sort=host_self_ns**")


def test_filtered_by_words_and_figures(show: Callable[..., Any]) -> None:
    page = show("ops", "kineto_gpu")
    page.locator("[data-table] input[type=search]").fill("name:addmm")
    playwright.expect(page.locator("[data-table] .tools small").first).to_contain_text("match")
    assert all("addmm" in name.lower() for name in names(page))
    page.locator("[data-table] input[type=search]").fill("calls>100")
    page.wait_for_url("**filter=calls*")
    settle(page)
    calls = page.locator("[data-table] tbody tr td:nth-child(2)").all_inner_texts()
    assert calls
    assert all(int(each.replace(",", "")) > 100 for each in calls)
    page.locator("[data-table] input[type=search]").fill("no such op")
    page.get_by_text("No row matches.").wait_for()


def test_paged(show: Callable[..., Any]) -> None:
    page = show("ops", "kineto_gpu")
    first = names(page)
    assert len(first) == 25
    page.get_by_role("button", name="next ›").click()
    playwright.expect(page.locator(".pager span")).to_contain_text("26–50 of 105")
    settle(page)
    assert names(page) != first
    page.get_by_role("button", name="‹ previous").click()
    playwright.expect(page.locator(".pager span")).to_contain_text("1–25 of 105")


def test_grouped_by_shape(show: Callable[..., Any]) -> None:
    page = show("ops", "kineto_gpu")
    page.get_by_role("button", name="shapes").click()
    page.locator("th", has_text="shapes").wait_for()
    playwright.expect(page.locator("[data-table] .tools small").first).to_have_text("317 rows")


def test_link_restores_the_table(show: Callable[..., Any]) -> None:
    page = show("kernels", "kineto_gpu", sort="calls", desc=1, filter="nvjet", offset=0, all=1)
    assert page.locator("[data-table=kernels] input[type=search]").input_value() == "nvjet"
    assert page.locator("[data-table=kernels] th[aria-sort=descending]").inner_text() == "calls"
    assert all("nvjet" in name for name in names(page, "kernels"))
    assert page.locator("[data-table=kernels] th", has_text="registers").count() == 1


def test_csv_has_all_matching_rows(show: Callable[..., Any]) -> None:
    page = show("kernels", "kineto_gpu", filter="nvjet")
    with page.expect_download() as started:
        page.locator("[data-table=kernels] a.csv").click()
    lines = started.value.path().read_text().splitlines()
    assert lines[0].startswith("name,op,calls,total_ns")
    assert len(lines) > 3
    assert all("nvjet" in line for line in lines[1:])


def test_long_names_are_short_and_whole_on_demand(show: Callable[..., Any]) -> None:
    page = show("kernels", "kineto_gpu")
    cell = page.locator("td.name").first
    assert cell.inner_text().startswith("reduce_kernel<128, 4")
    cell.hover()
    tip = page.locator(".tip")
    playwright.expect(tip).to_be_visible()
    assert tip.inner_text().startswith("void at::native::reduce_kernel<128, 4, at::native::ReduceOp")
    cell.locator(".unfold").click()  # elsewhere a click opens the calls in the trace
    playwright.expect(cell).to_contain_text("void at::native::reduce_kernel")


def test_a_wrong_filter_is_explained(show: Callable[..., Any], watched: Any) -> None:
    watched.expected += ["Failed to load resource"]
    page = show("ops", "kineto_gpu", filter="calls>many")
    assert "is not a number" in page.locator("[role=alert]").inner_text()


def test_sql(show: Callable[..., Any], watched: Any) -> None:
    watched.expected += ["Failed to load resource"]
    page = show("sql", "kineto_gpu")
    page.get_by_role("button", name="Time by kind").click()
    page.get_by_text("rows in").wait_for()
    assert "kernel" in page.locator("table").inner_text()
    page.locator("textarea").fill("SELECT * FROM read_csv('/etc/passwd')")
    page.locator("textarea").press("Control+Enter")
    page.locator("[role=alert]").wait_for()
    assert "root:" not in page.locator(".view").inner_text()
    page.locator("textarea").fill("SELECT name FROM events WHERE name = 'nothing'")
    page.get_by_role("button", name="Run", exact=True).click()
    page.get_by_text("No rows, in").wait_for()
    page.wait_for_url("**query=SELECT**")


def test_sql_as_csv_has_no_formulas(show: Callable[..., Any]) -> None:
    """The file is made in the browser, by the same rule as those that the server makes."""
    page = show("sql", "kineto_gpu")
    page.locator("textarea").fill(
        "SELECT '=1+1' AS text, dur_ns - 5 AS figure FROM events WHERE dur_ns = 0 LIMIT 1"
    )
    page.locator("textarea").press("Control+Enter")
    page.get_by_text("row in").wait_for()
    with page.expect_download() as started:
        page.get_by_role("button", name="CSV", exact=True).click()
    assert started.value.path().read_text() == "text,figure\n'=1+1,-5\n"


def test_ops_by_call_stack_as_table_and_flame_graph(show: Callable[..., Any]) -> None:
    page = show("ops", "kineto_gpu")
    table = page.locator("[data-table=ops]")
    page.get_by_role("button", name="call stack").click()
    table.locator("td.name", has_text="←").first.wait_for()
    page.wait_for_url("**by=stack*")
    page.get_by_role("link", name="as a flame graph").click()
    page.wait_for_url("**#/flame?*tree=stack*")
    page.locator(".fg[data-drawn=yes]").wait_for()
    page.reload()
    page.locator(".fg[data-drawn=yes]").wait_for()
    assert page.get_by_role("button", name="call stack").get_attribute("aria-pressed") == "true"


def test_an_order_that_is_impossible_is_told_and_left(page: Any, site: Site, watched: Watched) -> None:
    """The link of another version, or a mistyped one."""
    watched.expected.append("400")
    page.goto("about:blank")
    page.goto(site.link("ops", "kineto_gpu", sort="nix"))
    trouble = page.locator("[role=alert]")
    playwright.expect(trouble).to_contain_text("There is no column 'nix'")
    playwright.expect(trouble).to_contain_text("The columns are name, calls")
    assert page.locator(".pager").is_hidden()
    page.get_by_role("button", name="without order and filter").click()
    page.locator("[data-table=ops] tbody td", has_text="aten::copy_").first.wait_for()
    assert "sort" not in page.url and page.locator("[role=alert]").count() == 0


def test_all_names_behind_a_part(show: Callable[..., Any]) -> None:
    page = show("overview", "kineto_gpu")
    opened = page.locator(".parts details[open]")
    assert opened.locator("tbody tr").count() == 10
    opened.get_by_role("button", name="show all").click()
    playwright.expect(opened.locator("tbody tr").nth(100)).to_be_attached()
