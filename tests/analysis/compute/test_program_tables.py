import polars as pl
import pytest

from stepscope.analysis.compute.program_tables import (
    TABLES,
    count_states,
    program_tables,
    rows_left,
    whole_passes,
)
from tests.builders.cases import case_of_text, steps


def _ops(shapes: list[str | None]) -> pl.DataFrame:
    return pl.DataFrame(
        {"event": range(len(shapes)), "shapes": shapes}, schema={"event": pl.UInt32, "shapes": pl.String}
    )


def test_a_gradient_of_few_rows_makes_a_table_and_passes_over_all_of_it_are_found() -> None:
    rows = [f"stream 7  {10 * n}  5  {name}  kernel  -" for n, name in enumerate(_NAMES)]
    trace = case_of_text(steps(*rows)).trace
    names = trace.events["name"].cast(pl.String).to_list()
    shapes = {
        "input_scatter_fusion": "[[1000000,64],[8192,64],[8192,1]]",
        "loop_add_fusion": "[[1000000,64],[1000000,64]]",
    }
    ops = _ops([shapes.get(name) for name in names])
    tables = program_tables(trace, ops)
    assert tables.rows() == [("[1000000,64]", 1_000_000, 8192, 64_000_000)]
    kernels = ops.select("event", bytes=pl.lit(4.0 * 64_000_000), time_ns=pl.lit(90_000)).with_columns(
        pl.Series(
            "class", ["embedding" if name == "input_scatter_fusion" else "elementwise" for name in names]
        )
    )
    over = _over(names, ops, kernels, tables, 0.0)
    assert "loop_add_fusion" in over
    assert "loop_broadcast_fusion" in over
    assert "input_scatter_fusion" not in over
    # 64 MB, a byte of each element, take 64 µs at 1 TB/s: what took less looked up a few rows.
    rates = {1000.0: True, 500.0: False}
    assert {rate: "loop_add_fusion" in _over(names, ops, kernels, tables, rate) for rate in rates} == rates


def _over(
    names: list[str], ops: pl.DataFrame, kernels: pl.DataFrame, tables: pl.DataFrame, rate: float
) -> set[str]:
    return {names[event] for event in whole_passes(ops, kernels, tables, rate)}


def test_a_batch_that_touches_many_rows_and_odd_shapes_make_no_table() -> None:
    trace = case_of_text(steps("stream 7  10  5  input_scatter_fusion  kernel  -")).trace
    for shapes in ("[[1000,64],[8192,64]]", "[[1000]]", "nonsense", "[]", "[[0,0],[1]]"):
        assert program_tables(trace, _ops([shapes] * len(trace.events))).is_empty()


_NAMES = ("loop_broadcast_fusion", "input_scatter_fusion", "loop_add_fusion")


# 100,000 rows of a table of 4 GB; at 4 TB/s, a pass over it takes 1 ms, or a little longer.
_TABLES = pl.DataFrame([("[8388608,128]", 1 << 23, 100_000, 1 << 30)], schema=dict(TABLES), orient="row")
_RATE, _PASS = 4096.0, 1 << 20


@pytest.mark.parametrize(("passes", "states"), [(4, 0), (5, 0), (4.7, 0), (7, 1), (9.3, 2), (2, 0)])
def test_an_optimizer_with_a_state_moves_more_of_the_table(passes: float, states: int) -> None:
    assert count_states(_TABLES, passes * _PASS, _RATE) == states


def test_rows_are_merged_before_a_state_is_changed() -> None:
    plain, _ = rows_left(_TABLES, 4.7 * _PASS, _RATE)
    least, most = rows_left(_TABLES, 7 * _PASS, _RATE)
    assert plain == 0  # added to the table instead of to zeros
    # Sorting takes 73 µs, and five times the rows of 51 MB at least 81 µs, and at most 250.
    assert 7 * _PASS * least == pytest.approx(154_500, rel=0.02)
    assert 7 * _PASS * most == pytest.approx(250_000, rel=0.02)
    assert rows_left(_TABLES, 7 * _PASS, 0.0) == (0.0, 0.0)
