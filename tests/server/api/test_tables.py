"""Tables: sorted, filtered and paged on the server, and the same as CSV."""

from __future__ import annotations

import csv
import io
from typing import Any

import polars as pl
import pytest

from stepscope.server.api.table_filters import keeps
from stepscope.server.api.table_view import View, of_trace
from stepscope.server.http.request import BadRequest
from stepscope.trace.schema import Text
from tests.server.conftest import Asking

FRAME = pl.DataFrame(
    {
        "name": pl.Series(["gemm_a", "Gemm_b", "copy", None], dtype=Text),
        "label": ["x y", "y", None, "z"],
        "dur_ns": [1_000, 2_000_000, 5, 70],
        "share": [0.5, 0.1, None, 0.2],
        "ok": [True, False, None, True],
        "grid": [[1, 2, 3], [4, 5, 6], None, [7, 8, 9]],
        "address": pl.Series([2**60, 1, 2, 3], dtype=pl.UInt64),
    },
    schema_overrides={"grid": pl.Array(pl.UInt32, 3)},
)
VIEW = of_trace(FRAME)


@pytest.mark.parametrize(
    ("text", "rows"),
    [
        ("", [0, 1, 2, 3]),
        ("gemm", [0, 1]),
        ("GEMM", [0, 1]),
        ("gemm y", [0, 1]),
        ('"x y"', [0]),
        ("name:gem label:x", [0]),
        ("name=copy", [2]),
        ("name!=copy", [0, 1, 3]),
        ("label=y", [1]),
        ("dur_ns>1us", [1]),
        ("dur_ns>=1us", [0, 1]),
        ("dur_ns<=70", [2, 3]),
        ("dur_ns=5", [2]),
        ("dur_ns!=5", [0, 1, 3]),
        ("dur_ns>1.5ms", [1]),
        ("share>15%", [0, 3]),
        ("ok=true", [0, 3]),
        ("ok:no", [1]),
        ("address=1152921504606846976", [0]),
        ("nothing_of_the_kind", []),
        ("nix>3", []),
        (".*", []),
    ],
)
def test_filters(text: str, rows: list[int]) -> None:
    mask = keeps(FRAME, text)
    assert ([0, 1, 2, 3] if mask is None else mask.arg_true().to_list()) == rows


@pytest.mark.parametrize(
    "text", ["dur_ns>x", "dur_ns>1parsec", "name>a", "grid>1", "dur_ns>", "dur_ns>1e999", "a " * 30]
)
def test_wrong_filters(text: str) -> None:
    with pytest.raises(BadRequest):
        keeps(FRAME, text)


@pytest.mark.parametrize(
    ("sort", "descending", "rows"),
    [
        ("dur_ns", False, [2, 3, 0, 1]),
        ("dur_ns", True, [1, 0, 3, 2]),
        ("name", False, [1, 2, 0, 3]),
        ("share", True, [0, 3, 1, 2]),
        ("label", False, [0, 1, 3, 2]),
    ],
)
def test_sorting_puts_what_is_not_known_last(sort: str, descending: bool, rows: list[int]) -> None:
    order = VIEW.order("", sort, descending)
    assert order is not None
    assert order.to_list() == rows


def test_a_filter_and_an_order() -> None:
    order = VIEW.order("dur_ns<1ms", "dur_ns", True)
    assert order is not None
    assert [row[2] for row in VIEW.page(order, 0, 2)] == [1_000, 70]
    assert [row[2] for row in VIEW.page(order, 2, 2)] == [5]


@pytest.mark.parametrize("sort", ["nix", "grid"])
def test_wrong_orders(sort: str) -> None:
    with pytest.raises(BadRequest):
        VIEW.order("", sort, False)


def test_values_that_json_or_javascript_cannot_hold() -> None:
    (row,) = VIEW.page(None, 0, 1)
    assert row[0] == "gemm_a"
    assert row[5] == [1, 2, 3]
    assert row[6] == str(2**60)
    odd = View(pl.DataFrame({"b": [b"\xff\x00"], "f": [float("nan")]}), ())
    assert odd.page(None, 0, 9)[0][0] == "2 bytes"


def test_csv_is_the_whole_table() -> None:
    text = b"".join(VIEW.csv(VIEW.order("", "dur_ns", False))).decode()
    rows = list(csv.reader(io.StringIO(text)))
    assert rows[0] == FRAME.columns
    assert [row[2] for row in rows[1:]] == ["5", "70", "1000", "2000000"]
    assert rows[3][5] == "[1,2,3]"


def test_csv_has_no_formulas() -> None:
    view = View(pl.DataFrame({"name": ["=1+1", "@x", "mm"], "n": [-1, -2, -3]}), ())
    assert b"".join(view.csv(None)).decode() == "name,n\n'=1+1,-1\n'@x,-2\nmm,-3\n"
    assert b"".join(view.csv(None, raw=True)).decode() == "name,n\n=1+1,-1\n@x,-2\nmm,-3\n"


TABLES = (
    "steps", "breakdown", "breakdown_names", "phases", "findings", "problems", "input", "ops", "kernels", "precision", "compute", "roofline", "peaks", "copies", "memory",
    "memory_at_peak", "collectives", "collectives_ranks", "coverage", "coverage_gaps", "events", "links", "tracks", "counters", "modules",
    "traces", "trace.ops", "trace.kernels", "trace.memory",
)  # fmt: skip


@pytest.mark.parametrize("name", TABLES)
def test_every_table(asking: Asking, name: str) -> None:
    table = asking.get(f"api/runs/{asking.id_of()}/table/{name}?limit=3").get_json()
    assert len(table["rows"]) == min(3, table["total"])
    assert all(len(row) == len(table["columns"]) for row in table["rows"])
    assert table["matching"] == table["total"]


def test_ops_are_those_of_the_report(asking: Asking) -> None:
    run = asking.id_of()
    report = asking.get(f"api/runs/{run}/report").get_json()
    table = asking.get(f"api/runs/{run}/table/ops?limit=1000").get_json()
    assert table["total"] == report["ops"]["total"]
    names = [column["name"] for column in table["columns"]]
    rows = [dict(zip(names, row, strict=True)) for row in table["rows"]]
    assert [(row["name"], row["device_self_ns"]) for row in rows[:50]] == [
        (row["name"], row["device_self_ns"]) for row in report["ops"]["rows"][:50]
    ]
    assert next(column for column in table["columns"] if column["name"] == "host_self_ns")["unit"] == "ns"


def test_split_by_shapes(asking: Asking) -> None:
    run = asking.id_of()
    plain = asking.get(f"api/runs/{run}/table/ops").get_json()
    split = asking.get(f"api/runs/{run}/table/ops?by=shapes,scope").get_json()
    assert split["total"] > plain["total"]


def test_split_by_stack(asking: Asking) -> None:
    run = asking.id_of()
    whole = asking.get(f"api/runs/{run}/table/ops?limit=1000").get_json()
    split = asking.get(f"api/runs/{run}/table/ops?by=stack&limit=1000&filter=name:aten::copy_").get_json()
    names = [column["name"] for column in split["columns"]]
    assert "stack" not in [column["name"] for column in whole["columns"]]
    assert split["total"] > whole["total"]
    calls, stack = names.index("calls"), names.index("stack")
    (copies,) = (row for row in whole["rows"] if row[0] == "aten::copy_")
    at = [column["name"] for column in whole["columns"]].index("calls")
    assert sum(row[calls] for row in split["rows"]) == copies[at]
    assert any(" ← " in row[stack] for row in split["rows"])


def test_paging_sorting_filtering_over_http(asking: Asking) -> None:
    path = f"api/runs/{asking.id_of()}/table/events?sort=dur_ns&desc=1&filter=kind:kernel"
    first: dict[str, Any] = asking.get(f"{path}&limit=5").get_json()
    rest = asking.get(f"{path}&limit=5&offset=5").get_json()
    place = [column["name"] for column in first["columns"]].index("dur_ns")
    durations = [row[place] for row in first["rows"] + rest["rows"]]
    assert durations == sorted(durations, reverse=True)
    assert first["matching"] == 435 < first["total"]


def test_csv_over_http(asking: Asking) -> None:
    answer = asking.get(f"api/runs/{asking.id_of()}/table/kernels?as=csv&sort=calls")
    assert answer.headers["Content-Disposition"].startswith("attachment; filename=")
    lines = answer.get_data(as_text=True).splitlines()
    total = asking.get(f"api/runs/{asking.id_of()}/table/kernels").get_json()["total"]
    assert len(lines) == total + 1
    raw = asking.get(f"api/runs/{asking.id_of()}/table/kernels?as=csv&sort=calls&raw=1")
    assert raw.get_data(as_text=True).splitlines() == lines  # none of these names is a formula


@pytest.mark.parametrize(
    "query",
    ["limit=1001", "limit=-1", "limit=x", "offset=-1", "offset=99999999999999999999", "sort=nix", "as=exe", "rank=-1", "rank=7", "step=x",
     "desc=maybe", "filter=calls>x", "filter=" + "a" * 600, "by=nix", "step_name=" + "x" * 600],
)  # fmt: skip
def test_absurd_wishes(asking: Asking, query: str) -> None:
    answer = asking.get(f"api/runs/{asking.id_of()}/table/ops?{query}")
    assert answer.status_code == 400, answer.get_data()
    assert answer.get_json()["error"]["what"]
