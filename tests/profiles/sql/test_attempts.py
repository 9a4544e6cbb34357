"""No query reads a file, an address, the environment or a setting, whatever DuckDB can do by itself."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from stepscope.errors import StepscopeError
from tests.profiles.sql.asking import Asking
from tests.profiles.sql.attempts import (
    CANARY,
    CATALOGUE,
    SETTINGS,
    STATEMENTS,
    check,
    pair_with_targets,
    scalar_functions,
    settings,
    table_functions,
    trap,
)
from tests.sample import SOAKS

pytestmark = pytest.mark.thorough

SECONDS = 20.0


@pytest.fixture(scope="module")
def asking() -> Iterator[Asking]:
    made = Asking()
    yield made
    made.close()


def told(asking: Asking, sql: str) -> str:
    """The answer in words, whatever it is."""
    try:
        return str(asking.answer(sql, SECONDS).frame.rows())
    except StepscopeError as error:
        return f"{error.what} {error.fix}"


def catalogue(asking: Asking) -> list[tuple[str, str]]:
    """What DuckDB can do: kinds and names of functions."""
    return [(str(kind), str(name)) for kind, name in asking.frame(CATALOGUE).rows()]


def test_statements(asking: Asking, tmp_path: Path) -> None:
    """None reads a file, and what one of them does is not seen by the next query."""
    with trap(tmp_path) as caught:
        assert check(list(STATEMENTS), caught, lambda sql: told(asking, sql)) > 200
    assert asking.frame("SELECT COUNT(*), MIN(name) FROM events").rows() == [
        (11, "Memcpy HtoD (Pageable -> Device)")
    ]


def test_every_table_function_and_pragma(asking: Asking, tmp_path: Path) -> None:
    rows = catalogue(asking)
    assert {"read_csv", "read_text", "read_blob", "glob", "sniff_csv", "read_parquet"} <= {
        name for _, name in rows
    }
    attempts = table_functions(rows)
    assert len(attempts) > 400
    with trap(tmp_path) as caught:
        check(pair_with_targets(attempts, caught), caught, lambda sql: told(asking, sql))


def test_every_function_of_values(asking: Asking, tmp_path: Path) -> None:
    attempts = scalar_functions(catalogue(asking))
    with trap(tmp_path) as caught:
        assert check(attempts, caught, lambda sql: told(asking, sql), all_targets=False) > 500


def test_every_setting(asking: Asking, tmp_path: Path) -> None:
    names = [str(name) for (name,) in asking.frame(SETTINGS).rows()]
    assert {"temp_directory", "enable_external_access", "lock_configuration"} <= set(names)
    before = asking.frame(f"{SETTINGS.replace('name', 'name, value', 1)}").rows()
    with trap(tmp_path) as caught:
        assert check(settings(names), caught, lambda sql: told(asking, sql)) > 400
    assert asking.frame(f"{SETTINGS.replace('name', 'name, value', 1)}").rows() == before


def test_settings_are_as_they_must_be(asking: Asking) -> None:
    found = dict(asking.frame("SELECT name, value FROM duckdb_settings()").rows())
    assert found["temp_directory"] == ""
    assert found["lock_configuration"] == "true"
    for name in (
        "enable_external_access",
        "python_enable_replacements",
        "autoload_known_extensions",
        "autoinstall_known_extensions",
        "allow_community_extensions",
        "allow_persistent_secrets",
    ):
        assert found[name] == "false", name


def test_nothing_of_the_environment_gets_in(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / CANARY))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", CANARY)
    other = Asking()
    try:
        for sql in (
            "FROM duckdb_settings()",
            "FROM duckdb_variables()",
            "FROM duckdb_secrets()",
            "FROM duckdb_extensions()",
        ):
            assert CANARY not in told(other, sql)
    finally:
        other.close()


# Each may end a process that another query has to start again.
RANDOM = 5_000 if SOAKS else 4
WORDS = st.sampled_from(
    [
        "SELECT", "FROM", "events", "links", "WITH", "t", "AS", "(", ")", ",", "JOIN", "ON", "read_text", '"read_text"',
        "'{path}'", "*", "1", "=", ";", "UNION", "ALL", "--", "/*", "*/", "'", '"', "$$", "\n", " ", "LATERAL", "TABLE",
        "WHERE", "IN", "EXISTS", ".", "[", "]", "\\", "''", "COPY", "TO", "E'", "id", "::", "int", "query(", "DESCRIBE",
    ]
)  # fmt: skip


@hypothesis_settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=RANDOM
)
@given(words=st.lists(WORDS, max_size=25), spaced=st.booleans())
def test_random_queries_read_no_file(asking: Asking, words: list[str], spaced: bool, tmp_path: Path) -> None:
    secret = tmp_path / "secret.csv"
    secret.write_text(f"a\n{CANARY}\n")
    sql = (" " if spaced else "").join(["SELECT * FROM", *words]).replace("{path}", str(secret))
    assert CANARY not in told(asking, sql)
