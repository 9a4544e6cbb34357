"""A profile's tables, and how it shows itself."""

from __future__ import annotations

import subprocess
import sys

import polars as pl
import pytest

from stepscope.errors import StepscopeError
from stepscope.profiles import profile as profiles
from stepscope.profiles.profile import Profile
from stepscope.trace.problems import Problem, Problems
from stepscope.trace.schema import TABLES
from tests.builders import traces


def one() -> Profile:
    return Profile("logs", [traces.trace(34)], [34])


def two() -> Profile:
    problems = Problems()
    problems.add(Problem("of-all", "Of the profile", "It is <b>bad</b>."))
    return Profile("logs", [traces.trace(0), traces.trace(None)], [0, 7], problems=problems)


@pytest.mark.parametrize("name", [name for name in TABLES if name != "problems"])
def test_one_rank_has_exactly_the_tables(name: str) -> None:
    assert one().table(name).equals(traces.trace(34).tables[name])
    assert one().table(name).schema == pl.Schema(TABLES[name])


@pytest.mark.parametrize("name", list(TABLES))
def test_several_ranks_have_a_rank_first(name: str) -> None:
    table = two().table(name)
    expected = {"rank": pl.Int32, **TABLES[name]}
    assert dict(table.schema) == dict(pl.Schema(expected))
    assert table.columns[0] == "rank"
    assert set(table["rank"].drop_nulls()) <= {0, 7}


def test_tables_are_attributes() -> None:
    profile = two()
    assert profile.events is profile.table("events")
    assert len(profile.events) == 2 * len(traces.trace().events)
    assert profile.table("traces")["rank"].to_list() == [0, 7]
    assert {"events", "kernels", "problems"} <= set(dir(profile))
    assert len(profile.traces) == 2
    with pytest.raises(AttributeError, match="no 'evnts'"):
        _ = profile.evnts
    with pytest.raises(StepscopeError, match="No table evnts"):
        profile.table("evnts")


def test_problems_of_ranks_and_profile() -> None:
    assert one().problems.equals(traces.trace(34).problems)
    found = two().problems
    assert found.select("rank", "code").rows() == [
        (0, "cut"),
        (0, "odd"),
        (7, "cut"),
        (7, "odd"),
        (None, "of-all"),
    ]


def test_traces_by_rank() -> None:
    assert two().trace(7).info.rank is None
    with pytest.raises(StepscopeError, match="No rank 1"):
        two().trace(1)


def test_to_pandas() -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    frame = two().to_pandas()
    assert list(frame.columns) == ["rank", *TABLES["events"]]
    assert len(frame) == len(two().events)
    for name in TABLES:
        assert len(one().to_pandas(name)) == len(one().table(name))


def test_to_pandas_without_pandas(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profiles, "find_spec", lambda name: None)
    with pytest.raises(StepscopeError) as caught:
        one().to_pandas()
    assert str(caught.value) == (
        "A pandas frame needs pandas and pyarrow, which is not installed.\nTry: pip install 'stepscope[pandas]'"
    )


def test_repr() -> None:
    assert repr(one()) == "<Profile logs: pytorch (kineto), rank 34, 11 events, 2 problems>"
    assert repr(two()) == "<Profile logs: pytorch (kineto), 2 ranks, 22 events, 5 problems>"


def test_html_is_escaped() -> None:
    html = two()._repr_html_()
    assert "&lt;b&gt;bad&lt;/b&gt;" in html
    assert "<b>" not in html
    assert "<th>steps</th><td>2</td>" in html
    assert "<th>devices</th><td>NVIDIA H200</td>" in html
    assert "<th>ranks</th><td>0, 7</td>" in html


def test_importing_stepscope_needs_nothing() -> None:
    code = (
        "import sys; before = set(sys.modules); import stepscope; stepscope.__version__; new = set(sys.modules) - before;"
        "print(sorted({name.split('.')[0] for name in new} - set(sys.stdlib_module_names)))"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "['stepscope']"


def test_the_public_names() -> None:
    import stepscope
    from stepscope.profiles.load import load

    assert stepscope.load is load
    assert "load" in dir(stepscope)
    with pytest.raises(AttributeError, match="has no attribute 'lod'"):
        _ = stepscope.lod
