"""The events behind figures: checked against SQL and plain polars over the same tables, for every kind of handle."""

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


class Evidence:
    """One run, its report and its tables."""

    def __init__(self, asking: Asking, name: str) -> None:
        self.asking = asking
        self.id = next(run["id"] for shown, run in asking.runs().items() if shown.endswith(name))
        self.profile = stepscope.load(PROFILES[name])
        self.events = self.profile.traces[0].events
        self.report = asking.get(f"api/runs/{self.id}/report").get_json()

    def ask(self, of: str, facts: dict[str, Any] | None = None, **query: Any) -> Any:
        """The answer, which must be one."""
        answer = self.answer(of, facts, **query)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return answer.get_json()

    def answer(self, of: str, facts: dict[str, Any] | None = None, **query: Any) -> Any:
        """Whatever comes."""
        asked = {"of": of, **({} if facts is None else {"with": json.dumps(facts)}), **query}
        return self.asking.get(f"api/runs/{self.id}/events", query_string=asked)

    def ids(self, of: str, facts: dict[str, Any] | None = None, **query: Any) -> list[int]:
        """The ids alone, in order."""
        return [event["id"] for event in self.ask(of, facts, **query)["events"]]

    def rows(self, table: str) -> list[dict[str, Any]]:
        """A table as the page has it."""
        page = self.asking.get(f"api/runs/{self.id}/table/{table}?limit=1000").get_json()
        keys = [column["name"] for column in page["columns"]]
        return [dict(zip(keys, row, strict=True)) for row in page["rows"]]

    def sql(self, query: str) -> list[int]:
        """One column of ids."""
        with pl.SQLContext(events=self.events.cast({"name": pl.String, "kind": pl.String})) as tables:
            return tables.execute(query, eager=True).to_series().to_list()


@pytest.fixture(scope="session")
def gpt(asking: Asking) -> Evidence:
    return Evidence(asking, GPT)


def test_a_kernel_row_has_as_many_events_as_calls_the_longest_first(gpt: Evidence) -> None:
    keys = ("op", "grid", "block", "registers", "shared_bytes", "precision", "tensor_cores", "eligible")
    for row in gpt.rows("kernels"):
        found = gpt.ask(f"kernel:{row['name']}", {key: row[key] for key in keys})
        assert found["total"] == len(found["events"]) == row["calls"]
        assert sum(event["weight"] for event in found["events"]) == row["total_ns"]
        lengths = [event["dur_ns"] for event in found["events"]]
        assert lengths == sorted(lengths, reverse=True)


def test_kernels_of_a_name_are_those_that_sql_finds(gpt: Evidence) -> None:
    name = gpt.rows("kernels")[0]["name"]
    quoted = name.replace("'", "''")
    expected = gpt.sql(
        f"SELECT id FROM events WHERE kind = 'kernel' AND name = '{quoted}' ORDER BY dur_ns DESC, id"
    )
    assert gpt.ids(f"kernel:{name}") == expected


def test_an_op_row_has_as_many_events_as_calls(gpt: Evidence) -> None:
    for row in gpt.rows("ops")[:20]:
        found = gpt.ask(f"op:{row['name']}")
        assert found["total"] == row["calls"], row["name"]
        names = {str(gpt.events["name"][event["id"]]) for event in found["events"]}
        assert names == {row["name"]}


def test_ops_by_scope_and_stack_are_told_apart(gpt: Evidence) -> None:
    for by in ("scope", "stack"):
        page = gpt.asking.get(f"api/runs/{gpt.id}/table/ops?by={by}&limit=15").get_json()
        keys = [column["name"] for column in page["columns"]]
        for values in page["rows"]:
            row = dict(zip(keys, values, strict=True))
            assert gpt.ask(f"op:{row['name']}", {by: row[by]})["total"] == row["calls"]


def test_a_part_of_the_account_sums_to_the_same_time(gpt: Evidence) -> None:
    for row in gpt.report["breakdown"]:
        found = gpt.ask(f"account:{row['part']}")
        if found["total"] == len(found["events"]):
            assert sum(event["weight"] for event in found["events"]) == row["ns"]
        for named in row["names"]:
            facts = {"name": named["name"], "thread": named["thread"]}
            mine = gpt.ask(f"account:{row['part']}", facts)
            if mine["total"] == len(mine["events"]):
                assert sum(event["weight"] for event in mine["events"]) == named["ns"]
            assert {str(gpt.events["name"][event["id"]]) for event in mine["events"]} == {named["name"]}


def test_the_worst_event_of_a_part_is_the_one_that_polars_finds(gpt: Evidence) -> None:
    context = RankContext(0, gpt.profile.traces[0], Options())
    for part in ("input", "sync", "dispatch"):
        slices = context.account.slices.filter(pl.col("part") == part)
        sums = slices.group_by("named_by").agg((pl.col("end_ns") - pl.col("start_ns")).sum().alias("ns"))
        worst = sums.sort(["ns", "named_by"], descending=[True, False])["named_by"].to_list()
        assert gpt.ids(f"account:{part}") == worst[:500]


def test_phases_and_stages_and_copies_have_their_calls(gpt: Evidence) -> None:
    for row in gpt.report["phases"]:
        assert gpt.ask(f"phase:{row['name']}")["total"] == row["calls"]
    for row in gpt.report["input"]["stages"]:
        assert gpt.ask(f"stage:{row['name']}")["total"] == row["calls"]
    for row in gpt.rows("copies"):
        facts = {key: row[key] for key in ("source", "target")}
        found = gpt.ask(f"copy:{row['direction']}", facts)
        assert found["total"] == row["calls"]
        assert sum(event["weight"] for event in found["events"]) == row["total_ns"]


def test_rows_of_compute_have_their_kernels(gpt: Evidence) -> None:
    for row in gpt.rows("roofline"):
        found = gpt.ask(f"roofline:{row['class']}", {"op": row["op"]} if row["op"] else None)
        assert found["total"] == row["kernels"]
    for row in gpt.rows("compute"):
        found = gpt.ask(f"compute:{row['reason']}")
        assert sum(event["weight"] for event in found["events"]) == pytest.approx(
            row["ns"], rel=0.01, abs=1000
        )


def test_a_step_begins_with_what_takes_longer_in_it_than_in_the_others(gpt: Evidence) -> None:
    steps = gpt.report["steps"]["rows"]
    slow = max(steps, key=lambda row: row["duration_ns"])
    found = gpt.ask(f"step:{slow['step']}", rank=slow["rank"])
    assert found["span"]["dur_ns"] == slow["duration_ns"]
    assert found["events"][0]["name"] == "make_batch"
    only = gpt.ask(f"step:{slow['step']}", {"part": "input"}, rank=slow["rank"])
    assert [event["name"] for event in only["events"]] == ["make_batch"]


def test_every_finding_leads_to_the_events_of_the_time_that_it_owns(gpt: Evidence) -> None:
    for at, finding in enumerate(gpt.report["findings"]):
        found = gpt.ask(f"finding:{finding['code']}")
        assert found["total"] > 0
        assert found["title"] == finding["title"]
        assert found["events"] == gpt.ask(f"finding:{at + 1}")["events"]
        names = finding["evidence"]["names"]
        if names:
            assert names[0]["name"] in {event["name"] for event in found["events"]}


def test_memory_rows_lead_to_the_allocations(gpt: Evidence) -> None:
    for device in gpt.report["memory"]["devices"]:
        key = "cpu" if device["device_kind"] == "cpu" else f"{device['device_kind']}:{device['device']}"
        for row in device["at_peak"]:
            facts = {"op": row["op"], "scope": row["scope"], "device": key}
            found = gpt.ask(f"memory:{row['kind']}", facts)
            assert found["unit"] == "bytes"
            if row["kind"] != "unknown":
                assert sum(event["weight"] for event in found["events"]) == row["bytes"]
    assert gpt.ask("memory:unknown", {"op": None, "scope": None, "device": "gpu:0"})["total"] == 0


def test_idle_time_of_a_device_is_that_of_the_stretch(gpt: Evidence) -> None:
    context = RankContext(0, gpt.profile.traces[0], Options())
    window = context.steps.windows.row(0, named=True)
    found = gpt.ask("idle:0", {"start": window["start_ns"], "end": window["end_ns"]})
    assert found["events"][0]["name"] == "make_batch"
    assert found["span"]["dur_ns"] == window["end_ns"] - window["start_ns"]
    assert {event["step"] for event in found["events"][:3]} == {window["step"]}


def test_one_event_has_its_place(gpt: Evidence) -> None:
    found = gpt.ask("event:17")["events"]
    details = gpt.asking.get(f"api/runs/{gpt.id}/timeline/event?id=17").get_json()
    assert [(each["id"], each["row"], each["after_ns"], each["dur_ns"]) for each in found] == [
        (17, details["row"], details["after_ns"], details["dur_ns"])
    ]


def test_names_light_up_what_is_listed(gpt: Evidence) -> None:
    found = gpt.ask("op:aten::mm")
    names = gpt.asking.get(f"api/runs/{gpt.id}/timeline/names?key={_key(gpt)}&rank=0&page=0").get_json()
    assert [names[at] for at in found["names"]["0"] if at < len(names)] == ["aten::mm"]


def _key(gpt: Evidence) -> str:
    return str(gpt.asking.get(f"api/runs/{gpt.id}/timeline/layout").get_json()["key"])


@pytest.mark.parametrize(
    ("of", "facts"),
    [
        ("nothing", None),
        ("no-kind:1", None),
        ("step:x", None),
        ("event:4294967295", None),
        ("event:-1", None),
        ("event:" + "9" * 30, None),
        ("op:x", {"no_column": 1}),
        ("idle:0", None),
        ("idle:0", {"start": "x", "end": 5}),
        ("memory:input", {"at": 10**30}),
        ("op:x", {str(at): at for at in range(40)}),
    ],
)
def test_what_makes_no_sense_is_refused(gpt: Evidence, of: str, facts: dict[str, Any] | None) -> None:
    assert gpt.answer(of, facts).status_code == 400


@pytest.mark.parametrize("text", ["[]", "{", '"x"', "{" * 3000, '{"a": NaN}'])
def test_facts_that_are_no_object_are_refused(gpt: Evidence, text: str) -> None:
    answer = gpt.asking.get(f"api/runs/{gpt.id}/events", query_string={"of": "op:x", "with": text})
    assert answer.status_code == 400


@pytest.mark.parametrize(
    "facts",
    [{"op": 5}, {"op": [1]}, {"grid": "x"}, {"grid": [1, 2]}, {"grid": [1, 2, "3"]}, {"registers": "5"}, {"registers": True}, {"tensor_cores": 1}, {"registers": 1.5}, {"op": {"a": 1}}, {"registers": 10**25}],
)  # fmt: skip
def test_facts_of_another_type_match_nothing(gpt: Evidence, facts: dict[str, Any]) -> None:
    assert gpt.ask("kernel:", facts)["total"] == 0


def test_an_unknown_finding_or_rank_is_not_found(gpt: Evidence) -> None:
    assert gpt.answer("finding:no-such").status_code == 404
    assert gpt.answer("op:aten::mm", rank=7).status_code == 404


@pytest.mark.parametrize("name", [name for name in PROFILES if name != GPT])
def test_all_rows_of_other_formats_lead_somewhere(asking: Asking, name: str) -> None:
    one = Evidence(asking, name)
    for row in one.rows("ops")[:10]:
        assert one.ask(f"op:{row['name']}")["total"] == row["calls"]
    for row in one.report["breakdown"]:
        assert one.ask(f"account:{row['part']}")["total"] > 0
    for finding in one.report["findings"]:
        assert one.ask(f"finding:{finding['code']}")["total"] > 0
    for row in one.report["steps"]["rows"][:3]:
        assert one.ask(f"step:{row['step']}", rank=row["rank"])["total"] > 0


def test_problems_of_the_doctor_lead_to_their_events(asking: Asking, gpt: Evidence) -> None:
    python = gpt.sql("SELECT id FROM events WHERE kind = 'python' ORDER BY dur_ns DESC, id")
    assert gpt.ids("problem:mostly-python") == python[:500]
    launched = stepscope.load(PROFILES[GPT]).links.filter(pl.col("why") == "launch")["to"]
    work = gpt.sql(
        "SELECT id FROM events WHERE kind IN ('kernel', 'copy', 'memset') ORDER BY dur_ns DESC, id"
    )
    assert gpt.ids("problem:work-without-launch") == [each for each in work if each not in set(launched)]
    assert Evidence(asking, "graph.pt.trace.json.gz").ids("problem:graphs-hide-ops")
    assert gpt.ids("problem:unnamed-events") == []
    assert gpt.answer("problem:truncated").status_code == 400


def test_the_doctor_says_which_of_its_problems_have_events(asking: Asking) -> None:
    for run in asking.runs().values():
        found = asking.get(f"api/runs/{run['id']}/doctor").get_json()
        assert set(found["with_events"]) <= {result["code"] for result in found["results"]}
        for code in found["with_events"]:
            answer = asking.get(f"api/runs/{run['id']}/events?of=problem:{code}")
            assert answer.status_code == 200
            assert answer.get_json()["total"] > 0, (run["name"], code)
