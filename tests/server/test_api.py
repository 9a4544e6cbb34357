"""The routes about runs: what they say is what the command line says."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import msgspec
import polars as pl
import pytest

from stepscope.diffs.build import diff
from stepscope.doctor.diagnose import diagnose
from stepscope.profiles.load import load
from stepscope.reports.build import report
from stepscope.server.api.compare import each_step
from stepscope.server.http.documentation import document
from stepscope.server.runs.listed import listed
from tests.server.conftest import PROFILES, SAMPLE, Asking


def test_the_report_is_that_of_the_command_line(asking: Asking, logs: Path) -> None:
    shown = asking.get(f"api/runs/{asking.id_of()}/report").get_json()
    said = msgspec.to_builtins(report(str(logs / "gpt.pt.trace.json.gz")))
    for name in ("steps", "breakdown", "findings", "ops", "kernels", "memory", "coverage"):
        assert shown[name] == json.loads(msgspec.json.encode(said[name])), name


@pytest.mark.parametrize("name", PROFILES)
def test_every_format_has_a_report(asking: Asking, name: str) -> None:
    run = next(run for full, run in asking.runs().items() if full.endswith(name))
    answer = asking.get(f"api/runs/{run['id']}/report")
    assert answer.status_code == 200
    assert answer.get_json()["profile"]["events"] > 0


def test_some_steps_and_one_rank(asking: Asking) -> None:
    run = asking.id_of()
    whole = asking.get(f"api/runs/{run}/report").get_json()["steps"]
    first = whole["rows"][0]["step"]
    some = asking.get(f"api/runs/{run}/report?step={first}&rank=0").get_json()["steps"]
    assert {row["step"] for row in some["rows"]} == {first}


@pytest.mark.parametrize("query", ["rank=99", "rank=x", "step=9:1", "step=::", "rank=" + "9" * 30])
def test_a_wrong_wish_is_a_400(asking: Asking, query: str) -> None:
    answer = asking.get(f"api/runs/{asking.id_of()}/report?{query}")
    assert answer.status_code == 400
    assert answer.get_json()["error"]["what"]


def test_a_step_that_is_not_there(asking: Asking) -> None:
    answer = asking.get(f"api/runs/{asking.id_of()}/report?step=1000000")
    assert answer.status_code in (200, 400)


def test_flame(asking: Asking) -> None:
    for way in ("scope", "module", "stack"):
        for measure in ("host", "device"):
            found = asking.get(f"api/runs/{asking.id_of()}/flame?by={way}&measure={measure}").get_json()
            assert found["nodes"]
            assert all(0 <= name < len(found["names"]) for _, name, *_ in found["nodes"])
    assert asking.get(f"api/runs/{asking.id_of()}/flame?by=nix").status_code == 400


def test_memory_of_a_stretch_and_at_a_moment(asking: Asking) -> None:
    run = asking.id_of()
    whole = asking.get(f"api/runs/{run}/memory?points=4000").get_json()
    device = next(
        row
        for row in asking.get(f"api/runs/{run}/report").get_json()["memory"]["devices"]
        if row["device_kind"] == "gpu"
    )
    assert whole["device"] == "gpu:0"
    assert max(row[1] for row in whole["timeline"]) == device["peak_bytes"]
    peak = asking.get(f"api/runs/{run}/memory?at={device['peak_at_ns']}").get_json()["at"]
    assert sum(row["bytes"] for row in peak["rows"]) == peak["bytes"]
    assert sum(row[1] for row in peak["kinds"]) == peak["bytes"]
    start, end = whole["timeline"][10][0], whole["timeline"][20][0]
    part = asking.get(f"api/runs/{run}/memory?start={start}&end={end}&points=4000").get_json()["timeline"]
    assert part[1:] == whole["timeline"][10:21]
    assert part[0] == whole["timeline"][9]
    assert asking.get(f"api/runs/{run}/memory?device=cpu").get_json()["device"] == "cpu"
    for wrong in ("device=gpu:7", f"start={end}&end={start}", "at=x", "points=1", "points=99999"):
        assert asking.get(f"api/runs/{run}/memory?{wrong}").status_code == 400


def test_memory_where_none_was_recorded(asking: Asking) -> None:
    found = asking.get(f"api/runs/{asking.id_of('jax.xplane.pb.gz')}/memory").get_json()
    assert found["timeline"] == [] or found["device"]


def test_steps_of_several_ranks_are_one_line() -> None:
    cells = pl.DataFrame(
        {"recording": [0] * 4, "rank": [0, 0, 1, 1], "step": [6, 7, 6, 7], "ns": [10, 40, 30, 20]}
    )
    assert each_step(cells) == [
        {"ns": 20.0, "slowest_ns": 30, "slowest": 1, "ranks": 2},
        {"ns": 30.0, "slowest_ns": 40, "slowest": 0, "ranks": 2},
    ]


def test_compare(asking: Asking) -> None:
    a, b = asking.id_of(), asking.id_of("graph.pt.trace.json.gz")
    found = asking.get(f"api/compare?a={a}&b={b}").get_json()
    assert found["a"]["name"] == "gpt.pt.trace.json.gz"
    assert found["parts"]
    back = asking.get(f"api/compare?a={b}&b={a}").get_json()
    assert [-row["difference"] for row in back["parts"]] == [row["difference"] for row in found["parts"]]
    for wrong in (f"a={a}", f"a={a}&b=nix", "", f"a={a}&b={'x' * 50}"):
        assert asking.get(f"api/compare?{wrong}").status_code in (400, 404)


def test_the_diff_is_that_of_the_command_line(asking: Asking, logs: Path) -> None:
    names = ("gpt.pt.trace.json.gz", "graph.pt.trace.json.gz")
    a, b = map(asking.id_of, names)
    shown = asking.get(f"api/diff?a={a}&b={b}").get_json()
    said = json.loads(msgspec.json.encode(diff(*(str(logs / name) for name in names))))
    for name in ("schema", "verdict", "parts", "ops", "kernels", "lines", "memory"):
        assert shown[name] == said[name], name
    assert asking.get(f"api/diff?a={a}&b=nix").status_code == 404


def test_the_doctor_says_what_the_command_line_says(asking: Asking, logs: Path) -> None:
    shown = asking.get(f"api/runs/{asking.id_of()}/doctor").get_json()
    said = diagnose(str(logs / "gpt.pt.trace.json.gz"))
    assert [row["code"] for row in shown["results"]] == [row.code for row in said.results]


def test_the_machine_has_a_diagnosis_too(asking: Asking) -> None:
    assert asking.get("api/doctor").get_json()["subject"] == "environment"


def test_the_chrome_file_opens_again(asking: Asking, tmp_path: Path) -> None:
    answer = asking.get(f"api/runs/{asking.id_of()}/chrome")
    name = answer.headers["Content-Disposition"].split('"')[1]
    assert name == "gpt.chrome.json.gz"
    (tmp_path / name).write_bytes(answer.data)
    assert json.loads(gzip.decompress(answer.data))["traceEvents"]
    assert len(load(tmp_path / name).events) == len(load(SAMPLE).events)
    assert asking.get(f"api/runs/{asking.id_of()}/chrome?rank=5").status_code == 400


def test_documentation(asking: Asking) -> None:
    answer = asking.get("api/docs/report/account")
    assert answer.headers["Content-Type"].startswith("text/markdown")
    assert answer.get_data(as_text=True) == document("report/account.md")
    for wrong in (
        "nix",
        "../README",
        "report/../../README",
        "report/",
        "/etc/passwd",
        "a/b/c",
        "report%2Faccount%00",
    ):
        assert asking.get(f"api/docs/{wrong}").status_code == 404


def test_a_run_on_another_disk_or_machine_has_the_same_id_every_time(logs: Path) -> None:
    from stepscope.profiles.find.catalog import scan

    (run,) = scan(logs / "gpt.pt.trace.json.gz").runs
    assert listed(run, "x").id == listed(run, "y").id
