"""Search by name, duration, argument and regular expression, checked against the tables of the same profile."""

from __future__ import annotations

from collections.abc import Callable

import polars as pl
import pytest

from stepscope.server.http.request import BadRequest
from stepscope.server.timeline.query import LONGEST_NS, Argument, read_query
from tests.server.timeline.conftest import Viewer

Make = Callable[..., Viewer]


@pytest.mark.parametrize(
    ("text", "pattern", "bounds", "arguments"),
    [
        ("aten::mm", "aten::mm", (0, LONGEST_NS), ()),
        ("Memcpy HtoD", r"Memcpy\ HtoD", (0, LONGEST_NS), ()),
        ("/gemm|conv/", "gemm|conv", (0, LONGEST_NS), ()),
        ("dur>5ms", None, (5_000_001, LONGEST_NS), ()),
        ("dur < 10 us", None, (0, 9_999), ()),
        ("mm dur>=1.5µs dur<=2ms", "mm", (1_500, 2_000_000), ()),
        ("/^aten/ dur=1s", "^aten", (10**9, 10**9), ()),
        ("stream=7", None, (0, LONGEST_NS), (Argument("stream", "7"),)),
        ('copy arg:"a b"', "copy", (0, LONGEST_NS), (Argument(None, "a b"),)),
        ('"Input Dims"=[[8', None, (0, LONGEST_NS), (Argument("Input Dims", "[[8"),)),
        ("duration", "duration", (0, LONGEST_NS), ()),
        ("/dur>5ms/", "dur>5ms", (0, LONGEST_NS), ()),
    ],
)
def test_what_the_box_says(
    text: str, pattern: str | None, bounds: tuple[int, int], arguments: tuple[Argument, ...]
) -> None:
    wanted = read_query(text)
    assert (wanted.pattern, (wanted.least_ns, wanted.most_ns)) == (pattern, bounds)
    assert wanted.arguments == arguments


@pytest.mark.parametrize("text", ["dur>5", "dur>soon", "dur>5min", "dur>" + "9" * 40 + "s", "dur<ms"])
def test_a_duration_that_is_none_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(BadRequest, match="dur needs a number with ns, us, ms or s, as in dur"):
        read_query(text)


def test_by_duration_and_name(viewer: Make) -> None:
    one = viewer()
    events = one.trace.events
    names = events["name"].cast(pl.String).str.to_lowercase()
    wanted = events.filter(names.str.contains("aten::", literal=True) & (events["dur_ns"] > 50_000))
    found = one.get("search", q="aten:: dur>50us")
    assert 0 < found["count"] == len(wanted) < one.get("search", q="aten::")["count"]
    assert one.get("search", q="dur<10us")["count"] == int((events["dur_ns"] < 10_000).sum())
    lit = one.get("names", key=one.key, page=0)
    assert {lit[number] for number in found["names"]} == set(wanted["name"].cast(pl.String))


def test_by_argument_of_a_table_and_of_the_file(viewer: Make) -> None:
    one = viewer()
    kernels = one.trace.cold["kernel"]
    number = int(kernels["correlation"][3])
    rows = [frame for frame in one.trace.cold.values() if "correlation" in frame.columns]
    wanted = sorted(pl.concat([frame.filter(pl.col("correlation") == number)["event"] for frame in rows]))
    found = one.get("hitlist", q=f"correlation={number}")
    assert sorted(hit["id"] for hit in found["hits"]) == wanted
    assert len(wanted) == 2, "the launch and the kernel"
    copies = one.trace.copies.filter(pl.col("direction").cast(pl.String).str.contains("(?i)dtoh"))
    assert one.get("search", q="direction=dtoh")["count"] == len(copies) > 0
    assert one.get("search", q='arg:"no such thing"')["count"] == 0
    assert one.get("hits", q="direction=dtoh")["count"] == len(copies)


def test_by_argument_of_xplane(viewer: Make) -> None:
    one = viewer("jax.xplane.pb.gz")
    texts = one.trace.cold["stats_text"]
    key, value = texts.select(pl.col("key", "value").cast(pl.String)).row(0)
    wanted = texts.filter((pl.col("key").cast(pl.String) == key) & (pl.col("value").cast(pl.String) == value))
    ids = {hit["id"] for hit in one.get("hitlist", q=f'{key}="{value}"')["hits"]}
    assert set(wanted["event"].head(50)) <= ids


def test_the_list_is_in_the_order_of_time_and_counts_all(viewer: Make) -> None:
    one = viewer()
    names = one.trace.events["name"].cast(pl.String).str.to_lowercase()
    wanted = one.trace.events.filter(names.str.contains("aten::", literal=True)).sort("start_ns", "id")
    begin = one.get("layout")["start_ns"]
    first = one.get("hitlist", q="aten::")
    assert first["total"] == len(wanted) > len(first["hits"]) == 200
    shown = wanted.select("id", pl.col("name").cast(pl.String), pl.col("start_ns") - begin, "dur_ns", "step")
    rows = [(hit["id"], hit["name"], hit["after_ns"], hit["dur_ns"], hit["step"]) for hit in first["hits"]]
    assert rows == shown.rows()[:200]
    later = one.get("hitlist", q="aten::", first=len(wanted) - 3)
    assert [hit["id"] for hit in later["hits"]] == wanted["id"].to_list()[-3:]
    assert one.get("hitlist", q="aten::", first=10**6)["hits"] == []


@pytest.mark.parametrize(
    ("text", "reason"), [("/(/", "unclosed group"), ("/[z-a]/", "range"), ("/a{9}{999}{999}/", "size limit")]
)
def test_a_bad_regular_expression_gives_one_sentence(viewer: Make, text: str, reason: str) -> None:
    answer = viewer().answer("search", q=text)
    assert answer.status_code == 400
    what = answer.get_json()["error"]["what"]
    assert what.startswith("The regular expression is not valid: ")
    assert reason in what
    assert what.endswith(".") and "\n" not in what
