"""Queries: one SELECT over our tables works, and nothing else passes."""

from __future__ import annotations

from pathlib import Path

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.errors import QueryRefused, StepscopeError
from stepscope.profiles.sql.engine import QueryFailed, query
from stepscope.profiles.sql_guard import check
from stepscope.profiles.sql_tokens import tokens
from stepscope.profiles.sql_words import FUNCTIONS, OPENERS
from stepscope.trace.schema import TABLES
from tests.builders.traces import HandmadeProfile, trace

PROFILE = HandmadeProfile()
SECRET = "the secret"


def rows(sql: str) -> list[tuple[object, ...]]:
    """The query's rows."""
    return query(PROFILE, sql).rows()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(*) FROM events", [(11,)]),
        ("select count(*) from EVENTS where name like 'gemm%';", [(1,)]),
        ("SELECT kind, COUNT(*) c FROM events GROUP BY kind ORDER BY c DESC, kind LIMIT 2", [("kernel", 2), ("annotation", 2)]),
        ("SELECT e.name FROM links l JOIN events e ON l.\"from\" = e.id ORDER BY l.to LIMIT 1", [("cudaLaunchKernel",)]),
        ("SELECT k.registers FROM kernels k, events e WHERE k.event = e.id AND e.name = 'x'", []),
        ("SELECT name FROM events WHERE id IN (SELECT event FROM collectives)", [("ncclDevKernel_AllReduce",)]),
        ("WITH a AS (SELECT id FROM events), b(x) AS (SELECT MAX(id) FROM a) SELECT x FROM b", [(10,)]),
        ("WITH events AS (SELECT 7 AS n) SELECT n FROM events", [(7,)]),
        ("SELECT n FROM (SELECT MAX(dur_ns) AS n FROM (events)) AS t", [(20_000,)]),
        ("SELECT 1 AS a FROM traces UNION ALL SELECT 2 FROM traces", [(1,), (2,)]),
        ("SELECT \"group\" FROM collectives", [("default",)]),
        ("SELECT bytes -- signed\n /* a /* nested */ comment */ FROM memory", [(-512,)]),
        ("SELECT EXTRACT(year FROM DATE '2026-01-02') AS y, 1 IS NOT DISTINCT FROM 1 AS s FROM traces", [(2026, True)]),
        ("SELECT SUBSTRING(direction FROM 1 FOR 1) AS d, TRIM(BOTH 'H' FROM direction) AS t FROM copies", [("H", "toD")]),
        ("SELECT CAST(id AS VARCHAR) || '!' AS t FROM events WHERE id = 3", [("3!",)]),
        ("SELECT 'it''s; DROP TABLE read_csv(' AS t FROM traces", [("it's; DROP TABLE read_csv(",)]),
        ("SELECT id FROM events QUALIFY ROW_NUMBER() OVER (PARTITION BY kind ORDER BY dur_ns DESC) = 1 ORDER BY id LIMIT 1", [(1,)]),
        ("SELECT SUM(dur_ns) FILTER (WHERE kind = 'copy') AS s FROM events", [(500,)]),
        ("SELECT bytes FROM `copies`", [(4096,)]),
        ("SELECT address FROM memory", [(2**63 + 11,)]),
        ("SELECT grid[1] AS x FROM kernels WHERE grid IS NOT NULL", [(132,)]),
    ],
)  # fmt: skip
def test_selects(sql: str, expected: list[tuple[object, ...]]) -> None:
    assert sorted(rows(sql), key=str) == sorted(expected, key=str)


REFUSED = [
    ("SELECT * FROM read_csv('{path}')", "read_csv(…)"),
    ("SELECT * FROM READ_CSV ('{path}')", "READ_CSV(…)"),
    ("SELECT * FROM read_csv/* */\n('{path}')", "read_csv(…)"),
    ("SELECT * FROM read_csv -- x\n('{path}')", "read_csv(…)"),
    ("SELECT * FROM \"read_csv\"('{path}')", '"read_csv"(…)'),
    ("SELECT * FROM `read_csv`('{path}')", '"read_csv"(…)'),
    ("SELECT * FROM events, read_csv('{path}')", "read_csv(…)"),
    ("SELECT * FROM events JOIN read_csv('{path}') ON 1 = 1", "read_csv(…)"),
    ("SELECT * FROM events JOIN (read_csv('{path}')) ON 1 = 1", "read_csv(…)"),
    ("SELECT * FROM (events CROSS JOIN read_csv('{path}'))", "read_csv(…)"),
    ("SELECT * FROM (((read_csv('{path}'))))", "read_csv(…)"),
    ("SELECT * FROM events e LEFT JOIN LATERAL read_csv('{path}') ON true", "LATERAL"),
    ("SELECT * FROM events WHERE id IN (SELECT id FROM read_csv('{path}'))", "read_csv(…)"),
    ("SELECT (SELECT MAX(a) FROM read_csv('{path}')) FROM events", "read_csv(…)"),
    ("SELECT id FROM events UNION SELECT a FROM read_csv('{path}')", "read_csv(…)"),
    ("WITH t AS (SELECT * FROM read_csv('{path}')) SELECT * FROM t", "read_csv(…)"),
    ("WITH read_csv(x) AS (SELECT 1) SELECT * FROM read_csv('{path}')", "read_csv(…)"),
    (
        "WITH t AS (WITH u AS (SELECT * FROM read_csv('{path}')) SELECT * FROM u) SELECT * FROM t",
        "read_csv(…)",
    ),
    ("SELECT read_csv('{path}')", "read_csv(…)"),
    ("SELECT abs(read_csv('{path}')) FROM events", "read_csv(…)"),
    ("SELECT * FROM read_parquet('{path}')", "read_parquet(…)"),
    ("SELECT * FROM read_ipc('{path}')", "read_ipc(…)"),
    ("SELECT * FROM read_json('{path}')", "read_json(…)"),
    ("SELECT * FROM read_ndjson('{path}')", "read_ndjson(…)"),
    ("SELECT * FROM scan_csv('{path}')", "scan_csv(…)"),
    ("SELECT * FROM generate_series(1, 1000000000)", "generate_series(…)"),
    ("SELECT * FROM unnest([1, 2]) AS t(x)", "unnest(…)"),
    ("SELECT * FROM abs(1)", "abs(…)"),
    ("SELECT * FROM TABLE(read_csv('{path}'))", "TABLE"),
    ("SELECT * FROM (VALUES (1)) AS t", "VALUES"),
    ("SELECT * FROM '{path}'", "cannot read files"),
    ("SELECT * FROM events JOIN '{path}' ON true", "cannot read files"),
    ('SELECT * FROM "{path}"', "no table"),
    ("SELECT * FROM `{path}`", "no table"),
    ("SELECT * FROM main.events", "main."),
    ("SELECT * FROM @stage", "'@'"),
    ("SELECT * FROM events TABLESAMPLE (1)", "TABLESAMPLE"),
    ("SELECT * INTO copy FROM events", "INTO"),
    ("SELECT * FROM events; DROP TABLE events", "more than one statement"),
    ("SELECT 1;SELECT 2", "more than one statement"),
    ("DROP TABLE events", "not with DROP"),
    ("TRUNCATE TABLE events", "not with TRUNCATE"),
    ("DELETE FROM events", "not with DELETE"),
    ("INSERT INTO events VALUES (1)", "not with INSERT"),
    ("UPDATE events SET id = 1", "not with UPDATE"),
    ("CREATE TABLE t AS SELECT * FROM events", "not with CREATE"),
    ("EXPLAIN SELECT * FROM events", "not with EXPLAIN"),
    ("SHOW TABLES", "not with SHOW"),
    ("DESCRIBE events", "not with DESCRIBE"),
    ("VALUES (1)", "not with VALUES"),
    ("FROM events", "not with FROM"),
    ("FROM read_csv('{path}') SELECT *", "not with FROM"),
    ("(SELECT * FROM events)", "not with ("),
    ("WITH t AS (DELETE FROM events) SELECT 1", "wants AS (SELECT"),
    ("WITH t AS (DROP TABLE events) SELECT 1", "wants AS (SELECT"),
    ("WITH t AS (SELECT 1) DELETE FROM events", "not with DELETE"),
    ("WITH RECURSIVE t AS (SELECT 1) SELECT * FROM t", "RECURSIVE"),
    ("WITH SELECT 1", "wants AS (SELECT"),
    ("SELECT 1 FROM events UNION TABLE events", "TABLE"),
    ("SELECT 1 FROM events UNION VALUES (1)", "VALUES"),
    ("SELECT $$x$$", "Dollar quotes"),
    ("SELECT $1", "Dollar quotes"),
    ("SELECT E'\\'' FROM events", "prefix"),
    ("SELECT 'a\\' OR name = ' FROM events", "backslash"),
    ("SELECT N'x'", "prefix"),
    ("SELECT 'open FROM events", "never closed"),
    ('SELECT "open FROM events', "never closed"),
    ("SELECT 1 /* open", "never closed"),
    ("SELECT (1 FROM events", "FROM stands inside"),
    ("SELECT (1", "never closed"),
    ("SELECT 1) FROM events", "no partner"),
    ("SELECT * FROM", "table is expected"),
    ("SELECT * FROM events,", "table is expected"),
    ("SELECT * FROM 5", "table is expected"),
    ("SELECT\N{NO-BREAK SPACE}1", "not allowed outside quotes"),
    ("SELECT * FROM ｒead_csv('{path}')", "not allowed outside quotes"),
    ("SELECT * FROM read_csv\N{ZERO WIDTH SPACE}('{path}')", "not allowed outside quotes"),
    ("SELECT {{}}", "'{{'"),
    ("SELECT 1 # x", "'#'"),
    ("SELECT \x00", "'\\x00'"),
    ("", "empty"),
    (" -- nothing", "empty"),
    (";", "empty"),
    ("SELECT " + "(" * 50 + "1" + ")" * 50, "nests more than"),
    ("SELECT " + "1 + " * 3000 + "1", "too long"),
    (" UNION ALL ".join(["SELECT 1"] * 200), "more than 100"),
    ("SELECT '" + "x" * 200_000 + "'", "characters"),
]


@pytest.mark.parametrize(("sql", "says"), REFUSED, ids=range(len(REFUSED)))
def test_refuses(sql: str, says: str, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text(f"a\n{SECRET}\n")
    with pytest.raises(QueryRefused) as refused:
        query(PROFILE, sql.replace("{path}", str(secret)).replace("{{", "{").replace("}}", "}"))
    assert says.replace("{{", "{") in refused.value.what
    assert "one SELECT over the tables events, links" in str(refused.value.fix)


def test_no_function_or_opener_reads() -> None:
    names = FUNCTIONS | OPENERS
    assert not [name for name in names if name.startswith(("read", "scan", "write", "sink", "generate"))]


@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_no_allowed_function_is_a_table_function(name: str, tmp_path: Path) -> None:
    # Even where the guard is passed by, the engine knows none of them as a source of rows, but for unnest.
    if name == "unnest":
        return
    with pytest.raises(pl.exceptions.PolarsError):
        pl.SQLContext(eager=True).execute(f"SELECT * FROM {name}('{tmp_path}')")


WORDS = st.sampled_from(
    [
        "SELECT", "FROM", "events", "links", "WITH", "t", "AS", "(", ")", ",", "JOIN", "ON", "read_csv", '"read_csv"',
        "'{path}'", "*", "1", "=", ";", "UNION", "ALL", "--", "/*", "*/", "'", '"', "`", "\n", " ", "LATERAL", "TABLE",
        "WHERE", "IN", "EXISTS", ".", "[", "]", "\\", "''", "$$", "E'", "id", "::", "int",
    ]
)  # fmt: skip


@given(words=st.lists(WORDS, max_size=25), spaced=st.booleans())
def test_random_queries_read_no_file(
    words: list[str], spaced: bool, tmp_path_factory: pytest.TempPathFactory
) -> None:
    secret = tmp_path_factory.getbasetemp() / "secret.csv"
    if not secret.exists():
        secret.write_text(f"a\n{SECRET}\n")
    sql = (" " if spaced else "").join(["SELECT * FROM", *words]).replace("{path}", str(secret))
    try:
        found = query(PROFILE, sql)
    except StepscopeError:
        return
    assert SECRET not in [value for row in found.iter_rows() for value in row if value != str(secret)]


@given(st.text(alphabet="'\"`a1 -/*\n;.,()", max_size=30))
def test_tokens_written_anew_are_the_same_tokens(sql: str) -> None:
    try:
        found = tokens(sql)
    except QueryRefused:
        return
    assert tokens(" ".join(token.source for token in found)) == found


def test_a_plan_that_reads_a_file_is_refused_behind_the_guard(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text("a\n1\n")
    monkeypatch.setattr("stepscope.profiles.sql_guard.FUNCTIONS", FUNCTIONS | {"read_csv"})
    monkeypatch.setattr("stepscope.profiles.sql_guard._table", lambda guard, bracket: _pass(guard, bracket))
    with pytest.raises(QueryRefused, match="would read a file"):
        query(PROFILE, f"SELECT * FROM read_csv('{secret}')")


def _pass(guard: object, bracket: object) -> None:
    bracket.wants_table = False  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT * FROM evnts", "There is no table evnts. Did you mean events?"),
        ("SELECT dur FROM events", "There is no column dur. Did you mean dur_ns?"),
        ("SELECT ID FROM events", "There is no column ID. Did you mean id?"),
        ("SELECT e.nme FROM events e", "There is no column nme. Did you mean name?"),
        (
            "SELECT cuont(*) FROM events",
            "cuont(…) is not a function that queries may call. Did you mean count?",
        ),
        ("SELECT name + 1 FROM events", "The query is wrong: arithmetic on dtypes"),
        ("SELECT CAST(name AS INT) FROM events", "The query is wrong: conversion from `str` to `i32` failed"),
        ("SELECT FROM WHERE", "There is no table WHERE"),
        ("SELECT id id id FROM events", "The query is wrong: sql parser error"),
        ("SELECT REGEXP_LIKE(name, '(') FROM events", "The query is wrong: regex error"),
    ],
)
def test_wrong_queries_are_explained(sql: str, says: str) -> None:
    with pytest.raises(StepscopeError) as wrong:
        query(PROFILE, sql)
    assert says in wrong.value.what
    assert "Resolved plan" not in str(wrong.value)


def test_a_wrong_column_lists_those_that_are_there() -> None:
    with pytest.raises(QueryFailed) as wrong:
        query(PROFILE, "SELECT nothing FROM counters")
    assert wrong.value.fix == "counters has track, time_ns, value."


def test_names_are_texts_in_every_table() -> None:
    for table in TABLES:
        types = query(PROFILE, f"SELECT * FROM {table}").schema.dtypes()
        assert not [each for each in types if isinstance(each, pl.Categorical | pl.Enum)], table


def test_several_ranks_have_a_rank_column() -> None:
    both = HandmadeProfile([trace(0), trace(1)])
    found = query(both, "SELECT rank, COUNT(*) AS n FROM events GROUP BY rank ORDER BY rank")
    assert found.rows() == [(0, 11), (1, 11)]


def test_only_the_tables_of_the_query_are_opened() -> None:
    assert check("SELECT 1 FROM events JOIN links ON TRUE", TABLES).tables == {"events", "links"}
