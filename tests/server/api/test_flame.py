"""Flame graphs: their sums are those of the tables, whatever part of the profile they are of; and boxes have their events."""

from __future__ import annotations

import json
from typing import Any

import polars as pl
import pytest

import stepscope
from stepscope.analysis.context import RankContext
from stepscope.analysis.options import Options
from tests.server.conftest import PROFILES, Asking

GPT = "gpt.pt.trace.json.gz"


class Flames:
    """The flame graphs of one run."""

    def __init__(self, asking: Asking, name: str) -> None:
        self.asking = asking
        self.id = next(run["id"] for shown, run in asking.runs().items() if shown.endswith(name))

    def tree(self, **query: Any) -> pl.DataFrame:
        """The nodes, with their names and paths."""
        found = self.ask("flame", **query)
        nodes = pl.DataFrame(found["nodes"], schema=found["columns"], orient="row", infer_schema_length=None)
        words = nodes["name"].map_elements(found["names"].__getitem__, pl.String)
        paths: list[str] = []
        for parent, word in zip(nodes["parent"], words, strict=True):
            paths.append(word if parent < 0 else f"{paths[parent]}/{word}")
        return nodes.with_columns(word=words, path=pl.Series(paths, dtype=pl.String))

    def top(self, **query: Any) -> int:
        """What everything costs."""
        return int(self.tree(**query).filter(pl.col("parent") == -1)["total"].sum())

    def order(self, **query: Any) -> Any:
        return self.ask("flame/order", **query)

    def events(self, of: str, facts: dict[str, Any]) -> Any:
        return self.ask("events", **{"of": of, "with": json.dumps(facts)})

    def ask(self, path: str, **query: Any) -> Any:
        answer = self.asking.get(f"api/runs/{self.id}/{path}", query_string=query)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return answer.get_json()

    def refused(self, path: str) -> int:
        return self.asking.get(f"api/runs/{self.id}/{path}").status_code


@pytest.fixture(scope="session")
def gpt(asking: Asking) -> Flames:
    return Flames(asking, GPT)


@pytest.fixture(scope="session")
def context() -> RankContext:
    return RankContext(0, stepscope.load(PROFILES[GPT]).traces[0], Options())


@pytest.mark.parametrize("measure", ["host", "device"])
def test_by_scope_it_is_the_table_of_ops(gpt: Flames, measure: str) -> None:
    page = gpt.ask("table/ops", limit=1000)
    keys = [column["name"] for column in page["columns"]]
    rows = [dict(zip(keys, row, strict=True)) for row in page["rows"]]
    assert gpt.top(by="scope", measure=measure) == sum(row[f"{measure}_self_ns"] for row in rows) > 0


def test_steps_sum_to_all_of_them(gpt: Flames, context: RankContext) -> None:
    steps = context.steps.windows["step"].unique().to_list()
    for way in ("scope", "stack"):
        for measure in ("host", "device", "memory"):
            each = [gpt.top(by=way, measure=measure, step=step) for step in steps]
            assert sum(each) == gpt.top(by=way, measure=measure) > 0
            assert all(each)


def test_a_range_has_the_device_time_of_the_kernels_in_it(gpt: Flames, context: RankContext) -> None:
    window = context.steps.windows.row(1, named=True)
    low, high = window["start_ns"], window["end_ns"]
    work = context.whole_trace.events.filter(pl.col("kind").is_in(["kernel", "copy", "memset"]))
    begin, end = pl.col("start_ns").clip(low, high), (pl.col("start_ns") + pl.col("dur_ns")).clip(low, high)
    expected = work.select((end - begin).sum()).item()
    for way in ("scope", "stack"):
        assert gpt.top(by=way, measure="device", **{"from": low, "to": high}) == expected > 0


def test_in_time_order_of_a_range(gpt: Flames, context: RankContext) -> None:
    window = context.steps.windows.row(1, named=True)
    whole = gpt.order(**{"from": window["start_ns"], "to": window["end_ns"]}, pixels=1000)
    assert whole["whole"] == window["end_ns"] - window["start_ns"]
    at = {name: place for place, name in enumerate(whole["columns"])}
    assert all(0 <= box[at["x0"]] <= box[at["x1"]] <= whole["whole"] for box in whole["boxes"])
    part = gpt.order(
        **{"from": window["start_ns"], "to": window["end_ns"]}, pixels=1000, low=1000, high=90_000
    )
    assert part["shown"] == [1000, 90_000]
    assert all(1000 <= box[at["x0"]] <= box[at["x1"]] <= 90_000 for box in part["boxes"])


@pytest.mark.parametrize("measure", ["host", "device", "memory"])
def test_the_events_of_a_box_sum_to_it(gpt: Flames, measure: str) -> None:
    nodes = gpt.tree(by="stack", measure=measure).drop_nulls("like").sort("total", descending=True)
    for node in nodes.head(40).iter_rows(named=True):
        found = gpt.events(f"frame:{node['word']}", {"like": node["like"], "measure": measure})
        assert found["unit"] == ("bytes" if measure == "memory" else "ns")
        if found["total"] == len(found["events"]):
            assert sum(event["weight"] for event in found["events"]) == node["total"]


def test_the_ops_of_a_module_sum_to_it(gpt: Flames) -> None:
    for node in gpt.tree(by="scope", measure="device").iter_rows(named=True):
        found = gpt.events(f"scope:{node['path']}", {"measure": "device"})
        if found["total"] == len(found["events"]):
            assert sum(event["weight"] for event in found["events"]) == node["total"], node["path"]


def test_events_of_a_step_and_of_a_range_are_in_it(gpt: Flames, context: RankContext) -> None:
    window = context.steps.windows.row(1, named=True)
    ops = gpt.tree(by="stack", step=window["step"]).filter(pl.col("kind") == "op")
    node = ops.sort("total")[-1].row(0, named=True)
    found = gpt.events(f"frame:{node['word']}", {"like": node["like"], "step": window["step"]})
    assert {event["step"] for event in found["events"]} == {window["step"]}
    span = {"from": str(window["start_ns"]), "to": str(window["end_ns"])}
    ranged = gpt.events(f"frame:{node['word']}", {"like": node["like"], **span})
    assert sum(event["weight"] for event in ranged["events"]) <= window["end_ns"] - window["start_ns"]


@pytest.mark.parametrize(
    "path",
    [
        "flame?measure=nix", "flame?from=5", "flame?from=9&to=3", "flame?step=x", "flame/order?pixels=0",
        "flame/order?low=5&high=1", "flame?rank=77", "events?of=frame:a", "events?of=scope:a&with={\"anchored\":3}",
        "events?of=frame:a&with={\"like\":99999999}", "events?of=frame:a&with={\"like\":1,\"measure\":\"x\"}",
    ],
)  # fmt: skip
def test_a_wrong_wish_is_refused(gpt: Flames, path: str) -> None:
    assert gpt.refused(path) in (400, 404)


@pytest.mark.parametrize("name", PROFILES)
def test_every_format(asking: Asking, name: str) -> None:
    flames = Flames(asking, name)
    for measure in ("host", "device", "memory"):
        for way in ("scope", "stack"):
            flames.tree(by=way, measure=measure)
        flames.order(measure=measure)
