"""Queries over our tables: what they give, and what is said of those that are wrong."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl
import pytest

from stepscope.errors import QueryRefused, StepscopeError
from stepscope.profiles.sql.client import QueryFailed
from stepscope.trace.schema import TABLES
from tests.builders.traces import HandmadeProfile, trace
from tests.profiles.sql.asking import Asking


@pytest.fixture(scope="module")
def asking() -> Iterator[Asking]:
    made = Asking()
    yield made
    made.close()


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("SELECT COUNT(*) FROM events", [(11,)]),
        ("select count(*) from EVENTS where name like 'gemm%';", [(1,)]),
        ("SELECT kind, COUNT(*) c FROM events GROUP BY kind ORDER BY c DESC, kind LIMIT 2", [("annotation", 2), ("kernel", 2)]),
        ("SELECT e.name FROM links l JOIN events e ON l.\"from\" = e.id ORDER BY l.to LIMIT 1", [("cudaLaunchKernel",)]),
        ("SELECT k.registers FROM kernels k, events e WHERE k.event = e.id AND e.name = 'x'", []),
        ("SELECT name FROM events WHERE id IN (SELECT event FROM collectives)", [("ncclDevKernel_AllReduce",)]),
        ("WITH a AS (SELECT id FROM events), b(x) AS (SELECT MAX(id) FROM a) SELECT x FROM b", [(10,)]),
        ("WITH events AS (SELECT 7 AS n) SELECT n FROM events", [(7,)]),
        ("SELECT \"group\" FROM collectives", [("default",)]),
        ("SELECT bytes -- signed\n /* a comment */ FROM memory", [(-512,)]),
        ("SELECT name || '!' AS t, upper(kind) AS k FROM events WHERE id = 1", [("aten::mm!", "OP")]),
        ("SELECT 'it''s; DROP TABLE read_csv(' AS t", [("it's; DROP TABLE read_csv(",)]),
        ("SELECT id FROM events QUALIFY ROW_NUMBER() OVER (PARTITION BY kind ORDER BY dur_ns DESC) = 1 ORDER BY id LIMIT 1", [(1,)]),
        ("SELECT SUM(dur_ns) FILTER (WHERE kind = 'copy') AS s FROM events", [(500,)]),
        ("SELECT address FROM memory", [(2**63 + 11,)]),
        ("SELECT SUM(address) * 4 AS s FROM memory", [(float(4 * (2**63 + 11)),)]),
        ("SELECT grid[1] AS x, grid FROM kernels WHERE grid IS NOT NULL", [(132, [132, 1, 1])]),
        ("SELECT hlo FROM modules", [(b"\x00\xffhlo",)]),
        ("SELECT a.id, b.id, a.id AS id_1 FROM events a JOIN events b USING (id) WHERE a.id = 3", [(3, 3, 3)]),
        ("FROM counters SELECT value ORDER BY ALL", [(0.1,), (300.25,)]),
        ("SELECT value * 1.5 AS v, 1.5 AS d FROM counters WHERE value > 1", [(450.375, 1.5)]),
        ("SELECT INTERVAL 1 DAY AS i, DATE '2026-01-02' AS d, {'a': 1} AS s, NULL AS n", [("1 day", "2026-01-02", {"a": 1}, None)]),
        ("FROM query_table('copies') SELECT bytes", [(4096,)]),
        ("FROM query('SELECT bytes FROM copies')", [(4096,)]),
        ("VALUES (1, 'a')", [(1, "a")]),
        ("DESCRIBE SELECT id FROM events", [("id", "UINTEGER", "YES", None, None, None)]),
        ("SELECT e.name, o.name FROM events e ASOF JOIN events o ON e.start_ns > o.start_ns AND o.kind = 'runtime' WHERE e.id = 4", [("aten::add", "cudaLaunchKernel")]),
        ("SELECT 1 AS \"a\"\"b\"", [(1,)]),
        ("SELECT 'a' || chr(0) AS z", [("a\0",)]),
        ("SELECT 1::BIGINT WHERE false", []),
    ],
)  # fmt: skip
def test_selects(asking: Asking, sql: str, expected: list[tuple[object, ...]]) -> None:
    assert asking.frame(sql).rows() == expected


@pytest.mark.parametrize(
    ("sql", "says"),
    [
        ("SELECT * FROM evnts", "There is no table evnts. Did you mean events?"),
        ("SELECT dur FROM events", "There is no column dur. Did you mean dur_ns?"),
        ("SELECT e.nme FROM events e", "There is no column nme. Did you mean name?"),
        ("SELECT cuont(*) FROM events", "There is no function cuont. Did you mean count?"),
        ("SELECT name + 1 FROM events", "The query is wrong: No function matches"),
        ("SELECT CAST(name AS INT) FROM events", "The query is wrong: Could not convert string"),
        ("SELECT id id id FROM events", 'The query is wrong: syntax error at or near "id"'),
        ("SELECT REGEXP_MATCHES(name, '(') FROM events", "The query is wrong: missing ): ("),
        ("SELECT error('so')", "The query is wrong: so"),
        ("SELECT * FROM '/etc/passwd'", "Refused: queries read the tables of the profile, and no file"),
        ("SELECT * FROM read_csv('/etc/passwd')", "Refused: queries read the tables of the profile, and no file"),
        ("SELECT * FROM read_xlsx('a')", "There is no function read_xlsx."),
        ("DROP TABLE events", "Refused: a query is a SELECT, not DROP."),
        ("ATTACH ':memory:' AS a", "Refused: a query is a SELECT, not ATTACH."),
        ("SELECT 1; SELECT 2", "Refused: more than one statement."),
        ("", "The query is empty."),
        (" -- nothing", "The query is empty."),
        ("SELECT $1", "The query is wrong: "),
    ],
)  # fmt: skip
def test_wrong_queries_are_explained(asking: Asking, sql: str, says: str) -> None:
    with pytest.raises((QueryFailed, QueryRefused)) as wrong:
        asking.frame(sql)
    assert says in wrong.value.what
    assert "LINE" not in str(wrong.value)
    assert "Exception" not in str(wrong.value)


def test_a_refusal_says_what_may_be_asked(asking: Asking) -> None:
    with pytest.raises(QueryRefused) as refused:
        asking.frame("DROP TABLE events")
    assert "one SELECT over the tables events, links" in str(refused.value.fix)


def test_a_wrong_column_lists_those_that_are_there(asking: Asking) -> None:
    asking.frame("SELECT COUNT(*) FROM events")
    with pytest.raises(QueryFailed) as wrong:
        asking.frame("SELECT nothing FROM counters")
    assert wrong.value.fix == "counters has track, time_ns, value."


def test_every_table_comes_as_it_is(asking: Asking) -> None:
    for table in TABLES:
        found, there = asking.frame(f"SELECT * FROM {table}"), asking.profile.table(table)
        assert found.rows() == there.rows(), table
        assert not [each for each in found.dtypes if isinstance(each, pl.Categorical | pl.Enum)], table


def test_several_ranks_have_a_rank_column() -> None:
    both = Asking(HandmadeProfile([trace(0), trace(1)]))
    try:
        found = both.frame("SELECT rank, COUNT(*) AS n FROM events GROUP BY rank ORDER BY rank")
        assert found.rows() == [(0, 11), (1, 11)]
    finally:
        both.close()


def test_only_the_tables_of_the_query_are_sent() -> None:
    class Noting(HandmadeProfile):
        def table(self, name: str) -> pl.DataFrame:
            sent.append(name)
            return super().table(name)

    sent: list[str] = []
    asked = Asking(Noting())
    try:
        asked.frame("SELECT 1 FROM events JOIN links ON TRUE")
        assert sent == ["events", "links"]
        asked.frame("SELECT COUNT(*) FROM links l, main.tracks")
        assert sent == ["events", "links", "tracks"]
        asked.frame(
            "SELECT 1 FROM events e ASOF JOIN (FROM ops) o ON e.id >= o.event WHERE EXISTS (FROM copies)"
        )
        assert sent == ["events", "links", "tracks", "copies", "ops"]
    finally:
        asked.close()


def test_a_table_that_cannot_be_read_is_told_and_the_next_query_works() -> None:
    class Failing(HandmadeProfile):
        def table(self, name: str) -> pl.DataFrame:
            if name == "links":
                raise StepscopeError("it changed")
            return super().table(name)

    asked = Asking(Failing())
    try:
        with pytest.raises(StepscopeError, match="it changed"):
            asked.frame("FROM links")
        assert asked.frame("SELECT COUNT(*) FROM events").item() == 11
    finally:
        asked.close()


def test_large_tables_and_results_go_in_pieces() -> None:
    class Large(HandmadeProfile):
        def table(self, name: str) -> pl.DataFrame:
            return pl.concat([super().table(name)] * 60_000)

    asked = Asking(Large())
    try:
        assert asked.frame("SELECT COUNT(*), SUM(dur_ns) FROM events").rows() == [(660_000, 60_000 * 47_304)]
        found = asked.frame("SELECT name, dur_ns FROM events")
        assert (len(found), found["dur_ns"].sum()) == (660_000, 60_000 * 47_304)
    finally:
        asked.close()
