"""The path of modules that an op ran in, told from the Python calls around it."""

from __future__ import annotations

import polars as pl

from stepscope.trace.scopes import sums_below
from tests.builders.tables import check, trace

EVENTS = """
    track  start  dur  name                    kind
    main       0  100  nn.Module: Model_0      python
    main       1   50  model.py(3): forward    python
    main       2   40  nn.Module: Block_3      python
    main       3   10  nn.Module: Linear_7     python
    main       4    5  aten::linear            op
    main       5    3  aten::addmm             op
    main      20    5  aten::relu              op
    main      60    5  aten::mean              op
    main     200    5  aten::outside           op
    other      4    5  aten::another thread    op
    main     300    5  nn.Module: not a call   annotation
    main     301    1  aten::in an annotation  op
    """


def test_paths() -> None:
    events = [4, 5, 6, 7, 8, 9, 11]
    found = trace(EVENTS, ops=pl.DataFrame({"event": events}))
    name = found.events["name"].cast(pl.String).gather(found.ops["event"])
    check(
        found.ops.with_columns(name=name),
        """
        name                    scope
        aten::linear            Model_0/Block_3/Linear_7
        aten::addmm             Model_0/Block_3/Linear_7
        aten::relu              Model_0/Block_3
        aten::mean              Model_0
        aten::outside           -
        aten::in an annotation  -
        aten::another thread    -
        """,
    )


def test_a_scope_that_the_file_names_wins() -> None:
    found = trace(EVENTS, ops=pl.DataFrame({"event": [4, 5], "scope": ["given", None]}))
    assert found.ops["scope"].to_list() == ["given", "Model_0/Block_3/Linear_7"]


def test_values_below_an_event_are_summed_with_its_own() -> None:
    events = trace(EVENTS).events
    below = sums_below(events, events["kind"] == "op")
    names = events["name"].cast(pl.String).to_list()
    counts = dict(zip(names, below.to_list(), strict=True))
    assert counts["nn.Module: Model_0"] == 4 and counts["nn.Module: Linear_7"] == 2
    assert counts["aten::relu"] == 1 and counts["nn.Module: not a call"] == 1


def test_the_closest_python_call() -> None:
    found = trace(EVENTS, ops=pl.DataFrame({"event": [4, 6, 7, 8]}))
    names = found.events["name"].cast(pl.String)
    parents = [None if parent is None else names[parent] for parent in found.ops["python_parent"]]
    assert parents == ["nn.Module: Linear_7", "nn.Module: Block_3", "nn.Module: Model_0", None]


def test_thousands_of_levels_do_not_fill_the_memory() -> None:
    lines = [f"a  {i}  {20_000 - 2 * i}  nn.Module: Module_{i}  python" for i in range(5_000)]
    text = "\n".join(["track  start  dur  name  kind", *lines, "a  6000  1  op  op"])
    found = trace(text, ops=pl.DataFrame({"event": [5_000]}))
    assert found.ops["scope"].to_list() == [None]
