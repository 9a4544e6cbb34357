"""Work in a loop of a compiled program that could be done for all turns at once."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.useless import work_in_loop
from stepscope.analysis.xla.loops import LoopWork
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of

GATES, STATE, GRADIENT, SUMS = "gemm_fusion_gates", "loop_state_fusion", "gemm_fusion_dw", "loop_add_fusion"
TURNS = 100


def found_in(
    monkeypatch: pytest.MonkeyPatch, *turn: tuple[str, int], leaving: set[str], sums: set[str]
) -> Finding | None:
    """In steps of 4000 µs whose loop runs these kernels, for so many µs, in each of a hundred turns."""
    early = leaving & {GATES}
    work = LoopWork(frozenset(leaving), frozenset({STATE}), frozenset(early), frozenset(sums))
    monkeypatch.setattr(work_in_loop, "_work_of_loops", lambda case: work)
    lines = ["track  start  dur  name  kind  launches  shapes  dtypes"]
    for step in range(3):
        launched, begin = 4000 * step + 2, 4000 * step + 20
        lines.append(f"main  {4000 * step}  4000  ProfilerStep#{step}  annotation  -  -  -")
        for _ in range(TURNS):
            for name, length in turn:
                lines.append(f"main  {launched}  1  cudaLaunchKernel  runtime  {name}  -  -")
                lines.append(f"stream 7  {begin}  {length}  {name}  kernel  -  -  -")
                launched, begin = launched + 2, begin + length
        lines.append(
            f"main  {launched}  {4000 * step + 3995 - launched}  cudaDeviceSynchronize  runtime  -  -  -"
        )
    return work_in_loop.find(case_of(compute_trace("\n".join(lines), framework="jax")))


def test_long_sums_of_gradients_go_at_most(monkeypatch: pytest.MonkeyPatch) -> None:
    """Small kernels surely leave; what adds up gradients leaves with them only if nothing else needs it."""
    turn = (GATES, 4), (GATES, 4), (STATE, 4), (SUMS, 20)
    alone = found_in(monkeypatch, *turn, leaving={GATES}, sums=set())
    both = found_in(monkeypatch, *turn, leaving={GATES, SUMS}, sums={SUMS})
    assert alone is not None and both is not None
    assert alone.share == pytest.approx(0.2, abs=0.02)
    assert alone.speedup.high < 1.6
    assert alone.speedup.low < both.speedup.low < 1.7 < both.speedup.mid < 2.2 < both.speedup.high


def test_long_outputs_that_are_no_sums_take_their_time_anywhere(monkeypatch: pytest.MonkeyPatch) -> None:
    turn = (GATES, 4), (GATES, 4), (STATE, 4), (SUMS, 20)
    alone = found_in(monkeypatch, *turn, leaving={GATES}, sums=set())
    written = found_in(monkeypatch, *turn, leaving={GATES, SUMS}, sums=set())
    assert alone is not None and written is not None
    assert written.speedup.mid == pytest.approx(alone.speedup.mid, abs=0.05)


def test_gradients_alone_are_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every loop has them: nothing shows that something could be computed before it."""
    turn = (GRADIENT, 4), (GRADIENT, 4), (STATE, 4), (SUMS, 20)
    assert found_in(monkeypatch, *turn, leaving={GRADIENT, SUMS}, sums={SUMS}) is None


def test_picking_what_a_turn_works_on_is_no_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    """A loop over layers copies the weights of each."""
    turn = (GATES, 4), (GATES, 4), (STATE, 4), (SUMS, 20)
    monkeypatch.setattr(work_in_loop, "_moving", lambda case: {GATES})
    assert found_in(monkeypatch, *turn, leaving={GATES, SUMS}, sums={SUMS}) is None
