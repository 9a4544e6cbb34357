"""Loops that select their pieces by boolean masks, and what is left if the masks are made once."""

from __future__ import annotations

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.loops.selections import selected_once
from stepscope.analysis.findings.rules.host import unbatched_loop
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of

HEAD = "track  start  dur  name  kind  launches  shapes  dtypes"
COMPARE, FIND, GATHER = "void CompareEqFunctor", "void flag_kernel", "void index_elementwise_kernel"
GEMM = "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_TNT"
TURNS, TURN = 8, 100


def relations(
    *, masks: bool = True, compares: bool = True, selected: str = "long", compared: str = "long"
) -> Case:
    """Steps of a loop over relations: compare, select by the mask, multiply; a turn takes 100 µs, 60 of them for the selection."""
    lines = [HEAD]
    for step in range(3):
        begin = 1000 * step
        lines += [f"main  {begin}  1000  ProfilerStep#{step}  annotation  -  -  -"]
        lines += [f"main  {begin + 2}  {TURN * TURNS + 10}  rgcn.py(7): forward  python  -  -  -"]
        for turn in range(TURNS):
            lines += turn_lines(
                begin + 5 + TURN * turn, masks=masks, compares=compares, selected=selected, compared=compared
            )
    return case_of(compute_trace("\n".join(lines)))


def turn_lines(at: int, *, masks: bool, compares: bool, selected: str, compared: str) -> list[str]:
    first = "aten::eq" if compares else "aten::abs"
    count = "aten::nonzero" if masks else "aten::sum"
    return [
        f"main  {at}  8  {first}  op  -  [[100000],[]]  {compared},Scalar",
        f"main  {at + 1}  5  cudaLaunchKernel  runtime  {COMPARE}  -  -",
        f"stream 7  {at + 7}  5  {COMPARE}  kernel  -  -  -",
        f"main  {at + 10}  50  aten::index  op  -  [[100000],[100000]]  {selected},bool",
        f"main  {at + 11}  35  {count}  op  -  [[100000]]  bool",
        f"main  {at + 12}  5  cudaLaunchKernel  runtime  {FIND}  -  -",
        f"stream 7  {at + 18}  5  {FIND}  kernel  -  -  -",
        f"main  {at + 20}  20  cudaStreamSynchronize  runtime  -  -  -",
        f"main  {at + 50}  5  cudaLaunchKernel  runtime  {GATHER}  -  -",
        f"stream 7  {at + 56}  5  {GATHER}  kernel  -  -  -",
        f"main  {at + 62}  30  aten::mm  op  -  [[3000,64],[64,64]]  float,float",
        f"main  {at + 64}  5  cudaLaunchKernel  runtime  {GEMM}  -  -",
        f"stream 7  {at + 70}  10  {GEMM}  kernel  -  -  -",
    ]


def test_masks_and_what_they_select_go_and_the_loop_stays() -> None:
    case = relations()
    plan = selected_once(case, case.loops)
    assert plan is not None
    before, after = (int(each.items["device_ns"].sum()) for each in (case.plan, plan))
    assert (before, after) == (3 * TURNS * 25_000, 3 * TURNS * 10_000)
    assert case.work_ns(plan) > 0


def test_a_smaller_fix_is_the_low_end_of_the_promise() -> None:
    masked, plain = (unbatched_loop.find(relations(masks=masks)) for masks in (True, False))
    assert masked is not None
    assert plain is not None
    assert masked.speedup.low < plain.speedup.low
    assert "boolean mask" in masked.detail and "boolean mask" not in plain.detail


def test_masks_that_a_loop_only_picks_differ_in_every_step() -> None:
    case = relations(compares=False)
    assert selected_once(case, case.loops) is None


def test_rows_of_activations_differ_in_every_step() -> None:
    case = relations(selected="float")
    assert selected_once(case, case.loops) is None


def test_indices_selected_by_computed_numbers_differ_in_every_step() -> None:
    for compared in ("float", "c10::BFloat16"):
        case = relations(compared=compared)
        assert selected_once(case, case.loops) is None
    bytes_ = relations(compared="unsigned char")
    assert selected_once(bytes_, bytes_.loops) is not None
