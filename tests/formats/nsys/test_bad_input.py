"""Damaged, foreign and locked databases: one clear message, or everything that can be read."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from stepscope.errors import UnreadableFile
from stepscope.formats import read
from stepscope.formats.source import Source
from tests.builders.nsys import PROCESSES, kernel, usual_tables, write_export
from tests.cli.inside import stepscope


def _cut(path: Path) -> None:
    path.write_bytes(write_export(path).read_bytes()[:9000])


def _empty(path: Path) -> None:
    path.write_bytes(b"")


def _foreign(path: Path) -> None:
    write_export(path, {"users": [{"id": 1}]})


def _no_events(path: Path) -> None:
    write_export(path, {"CUPTI_ACTIVITY_KIND_KERNEL": []})


def _report(path: Path) -> None:
    path.write_bytes(b"\x01binary\0report")


@pytest.mark.parametrize(
    ("make", "name", "words"),
    [
        (_cut, "a.sqlite", "is cut or damaged"),
        (_empty, "a.sqlite", "it is empty"),
        (_foreign, "a.sqlite", "without the tables of Nsight Systems; it has users"),
        (_no_events, "a.sqlite", "holds no events"),
        (_report, "my run.nsys-rep", "nsys export --type sqlite --output '"),
    ],
)
def test_one_message(tmp_path: Path, make: Callable[[Path], None], name: str, words: str) -> None:
    make(tmp_path / name)
    ended = stepscope("info", tmp_path / name)
    assert ended.returncode == 1
    assert words in ended.stderr
    assert len(ended.stderr.splitlines()) <= 2


def test_a_locked_database(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stepscope.formats.nsys.database._WAIT_S", 0.01)
    path = write_export(tmp_path / "a.sqlite")
    with closing(sqlite3.connect(path, isolation_level=None)) as writer:
        writer.execute("BEGIN EXCLUSIVE")
        with pytest.raises(UnreadableFile, match="is locked"):
            read(Source(str(path)))


@pytest.mark.parametrize("table", [name for name in usual_tables() if name != "CUPTI_ACTIVITY_KIND_KERNEL"])
def test_any_table_may_be_missing(tmp_path: Path, table: str) -> None:
    tables = {name: rows for name, rows in usual_tables().items() if name != table}
    trace = read(Source(str(write_export(tmp_path / "a.sqlite", tables))))
    assert trace.events.filter(kind="kernel").height == 3


def test_columns_may_be_missing(tmp_path: Path) -> None:
    bare: dict[str, Any] = {
        "CUPTI_ACTIVITY_KIND_KERNEL": [{"start": 1, "end": 5}],
        "NVTX_EVENTS": [{"start": 0, "end": 9}],
    }
    trace = read(Source(str(write_export(tmp_path / "a.sqlite", bare))))
    assert trace.events["name"].cast(str).to_list() == ["(range without a name)", "(kernel without a name)"]


def test_absurd_values_cost_their_row(tmp_path: Path) -> None:
    odd: list[Any] = ["text", None, -5, 2**63 - 1, 1.5, b"blob"]
    tables: dict[str, Any] = usual_tables()
    rows = [*tables["CUPTI_ACTIVITY_KIND_KERNEL"], *({**kernel(5, 9), "start": value} for value in odd)]
    rows += [{**kernel(3_000, 3_001), "streamId": "x", "deviceId": 2**40, "gridX": -1, "demangledName": b"x"}]
    trace = read(
        Source(str(write_export(tmp_path / "a.sqlite", {**tables, "CUPTI_ACTIVITY_KIND_KERNEL": rows})))
    )
    assert trace.events.filter(kind="kernel").height == 4
    (lost,) = (row for row in trace.problems.to_dicts() if row["code"] == "time-out-of-range")
    assert lost["count"] == len(odd)


def test_views_and_broken_text_run_nothing(tmp_path: Path) -> None:
    """A view named as a table could compute for ever; text need not be UTF-8."""
    path = write_export(tmp_path / "a.sqlite")
    with closing(sqlite3.connect(path)) as database:
        database.execute("DROP TABLE OSRT_API")
        database.execute(
            "CREATE VIEW OSRT_API AS WITH RECURSIVE n(start) AS (SELECT 1 UNION ALL SELECT start + 1 FROM n) SELECT start, start AS end FROM n"
        )
        database.execute("UPDATE StringIds SET value = CAST(x'ff41' AS TEXT) WHERE id = 1")
        database.commit()
    trace = read(Source(str(path)))
    assert "\ufffdA" in trace.events["name"].cast(str).to_list()
    assert trace.events.filter(kind="span").is_empty()


def test_a_damaged_page_costs_its_rows(tmp_path: Path) -> None:
    tables = {"CUPTI_ACTIVITY_KIND_KERNEL": [kernel(at, at + 1) for at in range(1, 2_000)], "StringIds": []}
    tables["StringIds"] = [{"id": 1, "value": "gemm"}]
    path = write_export(tmp_path / "a.sqlite", tables)
    data = bytearray(path.read_bytes())
    data[40_960:45_056] = bytes(4_096)
    path.write_bytes(data)
    trace = read(Source(str(path)))
    assert 0 < trace.events.height < 2_000
    assert "damaged" in trace.problems["code"].to_list()


def test_messages_of_the_profiler_and_whole_graphs_are_problems(tmp_path: Path) -> None:
    device = {"deviceId": 0, "contextId": 1, "streamId": 7, "correlationId": 1, "graphId": 4}
    tables = {
        **usual_tables(),
        "DIAGNOSTIC_EVENT": [
            {"severity": 2, "text": "CUPTI buffers were dropped.\nMore"},
            {"severity": 3, "text": "\x1b[31mInsufficient privileges"},
            {"severity": 1, "text": "All is well."},
        ],
        "CUPTI_ACTIVITY_KIND_GRAPH_TRACE": [
            {"start": 2_100, "end": 2_200, "globalPid": PROCESSES[0], **device}
        ],
    }
    trace = read(Source(str(write_export(tmp_path / "a.sqlite", tables))))
    found = {row["code"]: row["detail"] for row in trace.problems.to_dicts()}
    assert found["capture-warning"] == "Nsight Systems: CUPTI buffers were dropped."
    assert found["capture-error"].startswith("Nsight Systems: \\x1b[31mInsufficient")
    assert found["graphs-hide-ops"].startswith("1 CUDA graphs")
    assert "CUDA graph 4" in trace.events["name"].cast(str).to_list()
