"""Queries that try to get out: made of what DuckDB lists about itself, so that what a new version can do is tried, too.

Each is a text with {path} for a file, a folder, a pattern or an address.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import cycle
from pathlib import Path

from tests.sample import SOAKS

CANARY = "canary-7f3a91c2"
# How a query passed the guard that stood here before.
THE_ONE = "SELECT * FROM (SELECT *, NOT distinct FROM (SELECT true AS distinct FROM traces) q CROSS JOIN 'read_csv'('{path}') z) w LIMIT 0"
CATALOGUE = "SELECT DISTINCT function_type, function_name FROM duckdb_functions() WHERE function_name SIMILAR TO '[a-z_0-9]+' ORDER BY ALL"
SETTINGS = "SELECT name FROM duckdb_settings() ORDER BY name"

# A table function as it can be hidden.
_CALLS = (
    "SELECT * FROM {name}('{path}')",
    "SELECT * FROM \"{name}\"('{path}')",
    "FROM {name}(['{path}', '{path}'])",
    "WITH t AS (FROM {name}('{path}')) SELECT * FROM t, events",
)
STATEMENTS = (
    THE_ONE,
    "SELECT * FROM (SELECT *, NOT \"distinct\" FROM (SELECT true AS \"distinct\" FROM traces) q CROSS JOIN read_csv('{path}') z) w",
    "SELECT * FROM '{path}'",
    'SELECT * FROM "{path}"',
    "FROM '{path}'",
    "TABLE '{path}'",
    'TABLE "{path}"',
    "DESCRIBE '{path}'",
    "DESCRIBE FROM '{path}'",
    "SUMMARIZE '{path}'",
    "SUMMARIZE FROM read_text('{path}')",
    "SHOW '{path}'",
    "SELECT * FROM events, '{path}'",
    "SELECT * FROM events POSITIONAL JOIN '{path}'",
    "SELECT * FROM events ASOF JOIN '{path}' f ON events.id >= f.id",
    "SELECT * FROM events e, LATERAL (SELECT * FROM read_text('{path}'))",
    "SELECT (SELECT content FROM read_text('{path}'))",
    "SELECT * FROM events WHERE name IN (SELECT content FROM read_text('{path}'))",
    "SELECT * FROM events WHERE EXISTS (FROM read_text('{path}'))",
    "SELECT id FROM events UNION ALL SELECT content FROM read_text('{path}')",
    "SELECT id FROM events ORDER BY (SELECT content FROM read_text('{path}'))",
    "WITH RECURSIVE t AS (SELECT 1 AS a UNION ALL SELECT a + 1 FROM t, read_text('{path}') WHERE a < 3) FROM t",
    "WITH t AS MATERIALIZED (FROM read_blob('{path}')) FROM t",
    "WITH events AS (FROM read_text('{path}')) SELECT * FROM events",
    "FROM query('FROM read_text(''{path}'')')",
    "FROM query('SELECT * FROM ''{path}''')",
    "FROM query('COPY events TO ''{path}''')",
    "FROM query('ATTACH ''{path}''')",
    "FROM query_table('{path}')",
    "FROM query_table(['{path}', 'events'])",
    "FROM query_table(getvariable('a'))",
    "SELECT COLUMNS(*) FROM '{path}'",
    "PIVOT '{path}' ON name",
    "PIVOT '{path}' ON name IN ('a') USING COUNT(*)",
    "UNPIVOT '{path}' ON COLUMNS(*) INTO NAME n VALUE v",
    "PIVOT (FROM read_text('{path}')) ON filename IN ('a') USING COUNT(*)",
    "SELECT * FROM main.\"{path}\"",
    "SELECT * FROM memory.main.\"{path}\"",
    "SELECT * FROM \"{path}\".main.events",
    "SELECT * FROM read_text\N{NO-BREAK SPACE}('{path}')",
    "SELECT * FROM ｒead_text('{path}')",
    "SELECT * FROM read_text\N{ZERO WIDTH SPACE}('{path}')",
    "SELECT * FROM read_text/* */('{path}')",
    "SELECT * FROM read_text -- x\n('{path}')",
    "SELECT * FROM U&\"read\\005Ftext\"('{path}')",
    "SELECT * FROM read_text(E'{path}')",
    "SELECT * FROM read_text($${path}$$)",
    "SELECT * FROM read_text($a${path}$a$)",
    "SELECT * FROM READ_TEXT('{path}')",
    "SELECT * FROM system.main.read_text('{path}')",
    "SELECT * FROM read_text(concat('{path}', ''))",
    "SELECT * FROM read_text((SELECT '{path}'))",
    "SELECT * FROM read_csv('{path}', header = false, columns = {{'a': 'VARCHAR'}})",
    "SELECT * FROM read_csv('{path}', store_rejects = true)",
    "SELECT * FROM read_csv('{path}', files_to_sniff = 1, union_by_name = true, filename = true)",
    "SELECT * FROM read_parquet('{path}', encryption_config = {{footer_key: 'k'}})",
    "SELECT * FROM read_json('{path}', format = 'unstructured')",
    "SELECT * FROM read_csv('file://{path}')",
    "SELECT * FROM read_csv('file:{path}')",
    "SELECT * FROM read_csv('/proc/self/root{path}')",
    "SELECT * FROM read_text('/proc/self/environ')",
    "SELECT * FROM read_text('/proc/self/fd/0')",
    "SELECT * FROM read_text('/dev/stdin')",
    "SELECT * FROM glob('{path}*')",
    "SELECT * FROM '{path}*'",
    "SELECT * FROM 's3://bucket/{path}'",
    "SELECT * FROM 'hf://datasets/a/b/c.parquet'",
    "SELECT * FROM read_csv('https://127.0.0.1:1/{path}')",
    "SELECT * FROM enable_logging(storage = 'file', storage_config = {{'path': '{path}'}})",
    "SELECT * FROM enable_logging('QueryLog', storage := 'file', storage_path := '{path}')",
    "SELECT * FROM duckdb_logs_parsed('{path}')",
    "WITH t AS (INSERT INTO stored.events FROM read_text('{path}') RETURNING *) SELECT * FROM t",
    "WITH t AS (DELETE FROM stored.events RETURNING *) SELECT * FROM t",
    "WITH t AS (COPY events TO '{path}') SELECT * FROM t",
    "COPY events TO '{path}'",
    "COPY (SELECT 1) TO '{path}' (FORMAT csv)",
    "COPY (SELECT 1) TO '{path}' (FORMAT parquet)",
    "COPY stored.events FROM '{path}'",
    "COPY FROM DATABASE memory TO '{path}'",
    "EXPORT DATABASE '{path}'",
    "IMPORT DATABASE '{path}'",
    "ATTACH '{path}'",
    "ATTACH '{path}' AS a (READ_ONLY)",
    "ATTACH 'http:{path}' AS a (TYPE sqlite)",
    "ATTACH ':memory:' AS a",
    "DETACH memory",
    "USE memory",
    "INSTALL httpfs",
    "INSTALL '{path}'",
    "INSTALL h3 FROM community",
    "FORCE INSTALL httpfs FROM '{path}'",
    "LOAD httpfs",
    "LOAD '{path}'",
    "UPDATE EXTENSIONS",
    "CREATE SECRET s (TYPE s3, KEY_ID 'a', SECRET 'b')",
    "CREATE PERSISTENT SECRET s (TYPE http, BEARER_TOKEN 'b')",
    "DROP SECRET s",
    "CREATE TABLE t AS FROM read_text('{path}')",
    "CREATE VIEW v AS FROM read_text('{path}')",
    "CREATE TEMP MACRO m() AS TABLE FROM read_text('{path}')",
    "CREATE FUNCTION f() AS (SELECT content FROM read_text('{path}'))",
    "CREATE TYPE t AS ENUM (SELECT content FROM read_text('{path}'))",
    "CREATE TRIGGER t AFTER INSERT ON stored.events EXECUTE SELECT 1",
    "INSERT INTO stored.events FROM read_text('{path}')",
    "UPDATE stored.events SET name = 'x'",
    "DELETE FROM stored.events",
    "TRUNCATE stored.events",
    "MERGE INTO stored.events USING '{path}' ON true WHEN MATCHED THEN DELETE",
    "DROP VIEW events",
    "DROP TABLE stored.events",
    "ALTER TABLE stored.events RENAME TO e",
    "COMMENT ON TABLE events IS '{path}'",
    "PREPARE p AS FROM read_text('{path}')",
    "EXECUTE p('{path}')",
    "DEALLOCATE p",
    "SET VARIABLE a = (SELECT content FROM read_text('{path}'))",
    "RESET VARIABLE a",
    "EXPLAIN FROM read_text('{path}')",
    "EXPLAIN ANALYZE FROM read_text('{path}')",
    "EXPLAIN ANALYZE COPY events TO '{path}'",
    "VACUUM",
    "ANALYZE",
    "CHECKPOINT",
    "BEGIN TRANSACTION",
    "COMMIT",
    "ROLLBACK",
    "CALL read_text('{path}')",
    "CALL pragma_version()",
    "PRAGMA import_database('{path}')",
    "PRAGMA enable_profiling",
    "PRAGMA profiling_output = '{path}'",
    "SELECT 1; COPY events TO '{path}'",
    "COPY events TO '{path}'; SELECT 1",
    "SELECT 1; SELECT * FROM read_text('{path}')",
    "SELECT 1 /* ; */; ATTACH '{path}'",
    "SELECT getenv('HOME')",
    "SELECT getenv('PATH') || getvariable('x')",
    "SELECT current_setting('home_directory'), current_setting('secret_directory')",
    "FROM duckdb_settings() WHERE value LIKE '%/%'",
    "FROM duckdb_databases()",
    "FROM duckdb_extensions() WHERE installed AND install_path <> '' AND install_path <> '(BUILT-IN)'",
    "FROM duckdb_temporary_files()",
    "FROM '.tmp/{path}'",
    "FROM read_text('.tmp/*')",
    "FROM read_text('*')",
    "COPY (SELECT 1) TO '.tmp/{path}'",
    "SELECT * FROM read_text('../../../../../../../..{path}')",
)  # fmt: skip


def table_functions(rows: list[tuple[str, str]]) -> list[str]:
    """Every table function and pragma, called in several ways."""
    made = []
    for kind, name in rows:
        if kind in ("table", "table_macro"):
            made += [call.replace("{name}", name) for call in _CALLS]
        elif kind == "pragma":
            made += [
                f"PRAGMA {name}",
                f"PRAGMA {name}('{{path}}')",
                f"SELECT * FROM pragma_{name}('{{path}}')",
            ]
    return made


def scalar_functions(rows: list[tuple[str, str]]) -> list[str]:
    """Every function of values, with the path as its argument."""
    names = sorted({name for kind, name in rows if kind in ("scalar", "macro", "aggregate")})
    return [f"SELECT {name}('{{path}}')" for name in names]


def settings(names: list[str]) -> list[str]:
    """Every setting: set, set by a pragma, set back."""
    return [
        form.replace("{name}", name)
        for name in names
        for form in ("SET GLOBAL {name} = '{path}'", "PRAGMA {name} = '{path}'", "RESET {name}")
    ]


class Trap:
    """A file that must not be read, and a server that must not be asked."""

    def __init__(self, folder: Path) -> None:
        self.file = folder / "canary.csv"
        self.address = ""
        self.connections: list[str] = []

    def put(self) -> None:
        """Now the file is there."""
        self.file.write_text(f"name,id\n{CANARY},1\n")

    def take_away(self) -> None:
        """Now it is not."""
        self.file.unlink()

    def targets(self) -> tuple[str, ...]:
        """What to try to read."""
        return (str(self.file), f"{self.file.parent}/*", f"{self.address}/canary.csv")


@contextmanager
def trap(folder: Path) -> Iterator[Trap]:
    """Set while this lasts."""
    made = Trap(folder)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.connections.append(self.path)
            self.send_response(200)
            self.end_headers()
            self.wfile.write(f"name\n{CANARY}\n".encode())

        do_HEAD = do_PUT = do_POST = do_GET

        def log_message(self, *_: object) -> None:
            """Silence."""

    class Server(ThreadingHTTPServer):
        def verify_request(self, request: object, client_address: object) -> bool:
            made.connections.append(str(client_address))
            return True

    with Server(("127.0.0.1", 0), Handler) as server:
        made.address = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        try:
            yield made
        finally:
            server.shutdown()
            thread.join()


def pair_with_targets(attempts: list[str], caught: Trap, in_turn: bool = not SOAKS) -> list[str]:
    """Each attempt with one target after the other; of the four calls of a function each target gets one at least."""
    targets = caught.targets()
    if not in_turn:
        return [each.replace("{path}", target) for each in attempts for target in targets]
    return [each.replace("{path}", target) for each, target in zip(attempts, cycle(targets), strict=False)]


def check(attempts: list[str], caught: Trap, ask: Callable[[str], str], *, all_targets: bool = True) -> int:
    """Try them all with the file, and twice without it; how many answers there were.

    No answer may hold what is in the file, or depend on whether it is there. Those that differ between the two times without the
    file are random numbers, times and the like.
    """
    targets = caught.targets() if all_targets else caught.targets()[:1]
    queries = list(
        dict.fromkeys(
            each.replace("{path}", target).replace("{{", "{").replace("}}", "}")
            for each in attempts
            for target in targets
        )
    )
    caught.put()
    with_file = [ask(sql) for sql in queries]
    files = sorted(path.name for path in caught.file.parent.iterdir())
    content = caught.file.read_text()
    caught.take_away()
    without_file = [ask(sql) for sql in queries]
    assert [sql for sql, answer in zip(queries, with_file, strict=True) if CANARY in answer] == []
    different = [
        sql for sql, one, other in zip(queries, with_file, without_file, strict=True) if one != other
    ]
    told = [sql for sql in different if ask(sql) == ask(sql)]
    assert told == []
    assert (files, content) == ([caught.file.name], f"name,id\n{CANARY},1\n")
    assert list(caught.file.parent.iterdir()) == []
    assert caught.connections == []
    return len(queries)
