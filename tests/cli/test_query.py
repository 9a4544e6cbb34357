"""`stepscope query`: formats, files, limits and refusals."""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
from pathlib import Path

import polars as pl
import pytest

from tests.builders.files import kineto, put
from tests.builders.hostile import NAMES, write_hostile
from tests.cli.inside import stepscope, succeeds
from tests.cli.run import FIXTURES, PROFILE, in_terminal
from tests.profiles.sql.attempts import THE_ONE, check, trap

KINDS = "SELECT kind, COUNT(*) AS n FROM events GROUP BY kind ORDER BY n DESC, kind LIMIT 2"


def test_a_table_by_default() -> None:
    assert succeeds("query", PROFILE, KINDS) == "kind      n\n───────  ──\nruntime  19\nop       12\n"


@pytest.mark.usefixtures("asked_once")
def test_csv() -> None:
    assert succeeds("query", PROFILE, KINDS, "--format", "csv") == "kind,n\nruntime,19\nop,12\n"


@pytest.mark.usefixtures("asked_once")
def test_json() -> None:
    found = json.loads(succeeds("query", PROFILE, KINDS, "--format", "json"))
    assert found == [{"kind": "runtime", "n": 19}, {"kind": "op", "n": 12}]


@pytest.mark.usefixtures("asked_once")
def test_no_rows() -> None:
    nothing = "SELECT id, name FROM events WHERE id < 0"
    assert succeeds("query", PROFILE, nothing) == "id  name\n──  ────\n"
    assert succeeds("query", PROFILE, nothing, "--format", "csv") == "id,name\n"
    assert json.loads(succeeds("query", PROFILE, nothing, "--format", "json")) == []


def test_parquet_through_a_pipe() -> None:
    command = [sys.executable, "-m", "stepscope", "query", str(PROFILE), KINDS, "--format", "parquet"]
    data = subprocess.run(command, capture_output=True, check=True).stdout
    assert pl.read_parquet(io.BytesIO(data)).rows() == [("runtime", 19), ("op", 12)]


@pytest.mark.usefixtures("asked_once")
@pytest.mark.parametrize("ending", ["csv", "json", "parquet"])
def test_the_name_of_the_file_tells_the_format(ending: str, tmp_path: Path) -> None:
    target = tmp_path / f"out.{ending}"
    assert succeeds("query", PROFILE, KINDS, "-o", target) == ""
    found: pl.DataFrame = getattr(pl, f"read_{ending}")(target)
    assert found.rows() == [("runtime", 19), ("op", 12)]
    assert [path.name for path in tmp_path.iterdir()] == [target.name]


@pytest.mark.usefixtures("asked_once")
def test_nothing_is_overwritten_unasked(tmp_path: Path) -> None:
    target = tmp_path / "out.csv"
    target.write_text("mine")
    ended = stepscope("query", PROFILE, KINDS, "-o", target)
    assert ended.returncode == 1
    assert "already exists" in ended.stderr
    assert "--force" in ended.stderr
    assert target.read_text() == "mine"
    succeeds("query", PROFILE, KINDS, "-o", target, "--force")
    assert target.read_text().startswith("kind,n")


@pytest.mark.usefixtures("asked_once")
def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    ended = stepscope("query", PROFILE, KINDS, "-o", tmp_path / "absent" / "out.csv")
    assert ended.returncode == 1
    assert "Cannot write" in ended.stderr


def test_a_folder_is_no_file(tmp_path: Path) -> None:
    assert "is a folder" in stepscope("query", PROFILE, KINDS, "-o", tmp_path).stderr


@pytest.mark.usefixtures("asked_once")
def test_nested_and_binary_values_as_text() -> None:
    (row,) = csv.DictReader(
        io.StringIO(succeeds("query", PROFILE, "SELECT grid FROM kernels LIMIT 1", "--format", "csv"))
    )
    assert len(json.loads(row["grid"])) == 3
    found = json.loads(succeeds("query", PROFILE, "SELECT grid FROM kernels LIMIT 1", "--format", "json"))
    assert found[0]["grid"] == json.loads(row["grid"])


@pytest.mark.usefixtures("asked_once")
def test_limits_are_told(tmp_path: Path) -> None:
    put(tmp_path, "many.pt.trace.json", content=kineto(events=300))
    ended = stepscope("query", tmp_path, "SELECT id FROM events")
    assert len(ended.stdout.splitlines()) == 102
    assert ended.stderr == "Showing 100 of 301 rows. All of them: --limit 0\n"
    assert len(succeeds("query", tmp_path, "SELECT id FROM events", "--limit", "0").splitlines()) == 303
    assert len(succeeds("query", tmp_path, "SELECT id FROM events", "--format", "csv").splitlines()) == 302
    some = stepscope("query", tmp_path, "SELECT id FROM events", "--format", "csv", "-n", "3")
    assert some.stdout == "id\n0\n1\n2\n"
    assert "Showing 3 of 301 rows" in some.stderr


def test_several_ranks(tmp_path: Path) -> None:
    put(tmp_path, "rank0.pt.trace.json", content=kineto(rank=0, world_size=2))
    put(tmp_path, "rank1.pt.trace.json", content=kineto(events=5, rank=1, world_size=2))
    counted = "SELECT rank, COUNT(*) AS n FROM events GROUP BY rank ORDER BY rank"
    assert succeeds("query", tmp_path, counted, "--format", "csv") == "rank,n\n0,4\n1,6\n"
    one = succeeds("query", tmp_path, "SELECT COUNT(*) AS n FROM events", "--rank", "1", "--format", "csv")
    assert one == "n\n6\n"
    assert "No rank 7" in stepscope("query", tmp_path, "SELECT 1 FROM events", "--rank", "7").stderr


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        (
            "SELECT * FROM read_csv('/etc/passwd')",
            "Refused: queries read the tables of the profile, and no file",
        ),
        ("DROP TABLE events", "Refused: a query is a SELECT, not DROP."),
        ("SELECT 1; SELECT 2", "Refused: more than one statement."),
        ("SELECT dur FROM events", "There is no column dur. Did you mean dur_ns?"),
    ],
)
def test_refusals(sql: str, says: str) -> None:
    ended = stepscope("query", PROFILE, sql)
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert says in ended.stderr


def test_a_refusal_needs_no_profile() -> None:
    assert "Refused" in stepscope("query", "/nowhere/at/all", "DROP TABLE events").stderr


def test_nothing_else_is_read(tmp_path: Path) -> None:
    """A sample: the engine is the one of tests/profiles/sql, where all attempts are made."""

    def told(sql: str) -> str:
        ended = stepscope("query", PROFILE, sql, "--format", "csv")
        return ended.stdout + ended.stderr

    with trap(tmp_path) as caught:
        attempts = [
            THE_ONE,
            "SELECT * FROM read_text('{path}')",
            "COPY events TO '{path}'",
            f"FROM '{caught.address}/a.csv'",
        ]
        assert check(attempts, caught, told, all_targets=False) == 4


def test_a_query_ends_at_its_time_limit() -> None:
    endless = (
        "SELECT COUNT(*) FROM range(1000000000) a, range(1000000000) b WHERE hash(a.range + b.range) = 7"
    )
    ended = stepscope("query", PROFILE, endless, "--timeout", "0.5")
    assert ended.returncode == 1
    assert "took longer than 0.5 seconds and was ended" in ended.stderr


def test_protections_are_listed() -> None:
    ended = stepscope("query", PROFILE, "SELECT 1 AS a", "-v")
    assert "protected by DuckDB: no external access" in ended.stderr
    if os.name != "nt":
        assert "protected by process limits" in ended.stderr
    assert "protected by" not in stepscope("query", PROFILE, "SELECT 1 AS a").stderr


@pytest.mark.skipif(os.name == "nt", reason="a terminal of Unix")
def test_parquet_never_goes_to_a_terminal() -> None:
    assert "would garble the terminal" in in_terminal("query", PROFILE, KINDS, "--format", "parquet")


@pytest.mark.skipif(os.name == "nt", reason="a terminal of Unix")
def test_a_terminal_is_not_overflown() -> None:
    seen = in_terminal("query", PROFILE, "SELECT name, name AS again, start_ns FROM events", columns=60)
    assert max(map(len, seen.splitlines())) <= 60
    assert "…" in seen


def test_a_run_is_chosen_by_name(tmp_path: Path) -> None:
    put(tmp_path, "a.pt.trace.json", content=kineto(events=1))
    put(tmp_path, "b.pt.trace.json", content=kineto(events=2))
    counted = ("SELECT COUNT(*) AS n FROM events", "--format", "csv")
    assert succeeds("query", tmp_path, *counted, "--run", "a.pt.trace.json") == "n\n2\n"
    assert succeeds("query", tmp_path, *counted, "--run", "b.pt.trace.json") == "n\n3\n"
    assert "There are: " in stepscope("query", tmp_path, *counted, "--run", "c").stderr


@pytest.mark.parametrize("path", sorted(FIXTURES.rglob("*.xplane.pb")), ids=lambda path: path.name)
def test_other_formats_answer_the_same_questions(path: Path) -> None:
    assert "kind" in succeeds("query", path, KINDS)


@pytest.mark.usefixtures("asked_once")
def test_csv_of_hostile_names(tmp_path: Path) -> None:
    """No cell that a spreadsheet would run, unless asked for; numbers keep their signs."""
    path = write_hostile(tmp_path)
    sql = 'SELECT name, -dur_ns AS "=negative" FROM events ORDER BY start_ns'
    safe, raw = (
        list(csv.reader(io.StringIO(succeeds("query", path, sql, "--format", "csv", *more), newline="")))
        for more in ((), ("--raw",))
    )
    assert [row[0] for row in raw[1:]] == NAMES
    assert (safe[0], raw[0]) == (["name", "'=negative"], ["name", "=negative"])
    assert [row[0] for row in safe[1:]] == [f"'{name}" if name[0] in "=+-@" else name for name in NAMES]
    assert [row[1] for row in safe[1:]] == [row[1] for row in raw[1:]] == ["-5000"] * len(NAMES)
