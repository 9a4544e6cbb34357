"""Flame graphs: nothing is lost or counted twice, and equal paths are one node."""

from __future__ import annotations

from typing import Any

import polars as pl
import pytest

from stepscope.analysis.ops import flame
from stepscope.analysis.ops.calls import op_calls, ops_table
from stepscope.analysis.ops.flame import Flame, by_scope, by_stack, device_times, host_times
from stepscope.profiles.load import load
from stepscope.trace.finish import finish
from stepscope.trace.trace import Trace
from tests.builders.tables import draft

SAMPLE = "src/stepscope/samples/tiny_gpt.pt.trace.json.gz"
NESTED = """
    track  start  dur  name   kind
    main       0  100  train  python
    main      10   40  step   python
    main      15   10  mm     op
    main      60   30  step   python
    main      65   10  mm     op
    main     200   10  mm     op
    """


@pytest.fixture(scope="module")
def sample() -> Trace:
    return load(SAMPLE).traces[0]


def paths(found: Flame) -> dict[str, tuple[int, int, int]]:
    """own, total and calls of each node by its path."""
    rows: list[tuple[str, Any]] = []
    for parent, name, *figures in found.nodes.select("parent", "name", "own", "total", "calls").rows():
        above = "" if parent < 0 else f"{rows[parent][0]}/"
        rows.append((above + found.names[name], tuple(figures)))
    return dict(rows)


def top(found: Flame) -> int:
    """The time of everything."""
    return int(found.nodes.filter(pl.col("parent") == -1)["total"].sum())


def test_equal_paths_are_one_node() -> None:
    trace = finish(draft(NESTED))
    assert paths(by_stack(trace, host_times(trace))) == {
        "main": (0, 110, 0),
        "main/train": (30, 100, 1),
        "main/train/step": (50, 70, 2),
        "main/train/step/mm": (20, 20, 2),
        "main/mm": (10, 10, 1),
    }


def test_only_what_is_inside_steps_counts() -> None:
    marked = """
        track  start  dur  name            kind
        main       0  100  loop            python
        main      10   40  ProfilerStep#1  annotation
        main      15   10  mm              op
        main      60   10  warm            python
        """
    trace = finish(draft(marked))
    found = paths(by_stack(trace, host_times(trace)))
    assert found["main/loop"] == (0, 40, 0)
    assert "main/loop/warm" not in found


def test_all_steps_are_one_path() -> None:
    marked = """
        track  start  dur  name            kind
        main       0   50  ProfilerStep#1  annotation
        main      10   10  mm              op
        main      50   50  ProfilerStep#2  annotation
        main      60   10  mm              op
        """
    trace = finish(draft(marked))
    found = paths(by_stack(trace, host_times(trace)))
    assert found["main/ProfilerStep"] == (80, 100, 2)
    assert found["main/ProfilerStep/mm"] == (20, 20, 2)


@pytest.mark.parametrize("measure", ["host", "device"])
def test_scopes_add_up_to_the_ops(sample: Trace, measure: str) -> None:
    calls = op_calls(sample)
    found = by_scope(calls.with_columns(own=f"{measure}_self_ns"))
    assert top(found) == ops_table(calls)[f"{measure}_self_ns"].sum()
    inside = [path for path in paths(found) if path.startswith("Sequential_0/Block_0/")]
    assert inside


def test_device_time_by_stack_is_all_of_it(sample: Trace) -> None:
    calls = op_calls(sample)
    assert top(by_stack(sample, device_times(sample, calls))) == ops_table(calls)["device_self_ns"].sum()


def test_totals_are_sums_of_the_subtree(sample: Trace) -> None:
    nodes = by_stack(sample, host_times(sample)).nodes.with_row_index("id")
    inner = nodes.group_by("parent").agg(inner=pl.col("total").sum())
    joined = nodes.join(inner, left_on=pl.col("id").cast(pl.Int64), right_on="parent", how="left")
    assert (joined["total"] == joined["own"] + joined["inner"].fill_null(0)).all()
    assert (nodes["parent"] < nodes["id"].cast(pl.Int64)).all()


def test_too_many_nodes_to_draw(sample: Trace, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = by_stack(sample, host_times(sample))
    monkeypatch.setattr(flame, "FLAME_NODES", 50)
    some = by_stack(sample, host_times(sample))
    assert len(some.nodes) == 50
    assert some.left_out == len(whole.nodes) - 50
    assert top(some) == top(whole)
    assert set(paths(some)) <= set(paths(whole))


def test_nothing_to_draw() -> None:
    trace = finish(draft("track start dur name kind"))
    found = by_stack(trace, host_times(trace))
    assert (found.names, len(found.nodes)) == ([], 0)
    assert by_scope(op_calls(trace).with_columns(own="host_self_ns")).names == []


def test_nodes_say_what_they_are_and_have_one_of_their_events(sample: Trace) -> None:
    found = by_stack(sample, host_times(sample))
    rows = list(found.nodes.select("name", "kind", "like").iter_rows())
    names = sample.events["name"].cast(pl.String)
    for name, kind, like in rows:
        assert (like is None) == (kind == "thread")
        if like is not None:
            assert names[like].startswith(found.names[name])
    assert {"python", "op", "runtime"} <= {kind for _, kind, _ in rows}
