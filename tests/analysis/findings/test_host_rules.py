"""Findings about the host: change sets, second stages and what is advised."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stepscope.analysis.findings.apply import apply_rules, replay_together
from stepscope.analysis.findings.finding import Finding, Interval
from stepscope.analysis.findings.rules.host import launch_bound, optimizer_loop
from stepscope.analysis.findings.rules.kernels import weight_casts
from stepscope.registers.policy.ranking import LAUNCHES_BESIDE_CAUSE
from tests.builders.cases import case_of_text, findings_of, gemm, steps
from tests.builders.jobs.bodies import BODIES, in_body


def test_calls_of_the_allocator_are_a_finding() -> None:
    rows = ["main  0  400  cudaFree  runtime  -", *gemm(400, 285), "main  700  250  cudaMalloc  runtime  -"]
    found = {each.code: each for each in findings_of(steps(*rows))}
    assert "allocator-churn" in found
    assert found["allocator-churn"].speedup.mid > 1.3
    assert "empty_cache" in found["allocator-churn"].fix


def test_garbage_that_the_loop_collects_before_it_empties_the_cache_is_part_of_it() -> None:
    rows = [
        *gemm(0, 285),
        "main  300  690  job.py(88): step  python  -",
        "main  310  400  <built-in function collect>  python  -",
        "main  710  270  torch/cuda/memory.py(212): empty_cache  python  -",
        "main  715  250  cudaFree  runtime  -",
    ]
    found = {each.code: each for each in findings_of(steps(*rows))}
    assert found["allocator-churn"].share == pytest.approx(0.67, abs=0.03)
    assert found["allocator-churn"].fix.startswith("Remove gc.collect() and torch.cuda.empty_cache()")
    assert [place.function for place in found["allocator-churn"].where] == ["step"]
    assert "host-python" not in found


def test_garbage_that_the_loop_collects_without_that_is_code_of_the_users() -> None:
    rows = [*gemm(0, 285), "main  310  600  <built-in function collect>  python  -"]
    found = {each.code: each for each in findings_of(steps(*rows))}
    assert "allocator-churn" not in found
    assert found["host-python"].fix.startswith("Take gc.collect() out of the loop")


def test_many_waits_come_before_faster_launches() -> None:
    """Twelve waits in a step: no graph can hold it until they are gone."""
    rows = []
    for k in range(12):
        at = 80 * k
        rows += [f"main  {at}  30  aten::add  op  -", *gemm(at + 30, 20, begin=at + 42)]
        rows += [f"main  {at + 41}  24  cudaStreamSynchronize  runtime  -"]
    found = {each.code: each for each in findings_of(steps(*rows))}
    assert "device-sync" in found
    assert "launch-bound" not in found


def test_an_interval_holds_its_middle_and_widens_without_a_light_window() -> None:
    load = "main  0  700  enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__  annotation  -"
    case = case_of_text(steps(load, *gemm(700, 285)))
    (found,) = apply_rules(case)
    speedup, left = found.speedup, found.left_ns_per_step
    assert 1 < speedup.low < speedup.mid < speedup.high
    assert left is not None
    assert left.low < left.mid < left.high
    assert abs(left.mid - case.saved_of_ns / speedup.mid) < 2000


def test_all_changes_together_bring_more_than_the_largest() -> None:
    load = "main  0  300  enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__  annotation  -"
    case = case_of_text(steps(load, "main  300  300  aten::sort  op  -", *gemm(600, 385)))
    found = apply_rules(case)
    both = replay_together(case, found)
    assert both is not None
    assert both.mid > max(each.speedup.mid for each in found)


def test_no_finding_gains_more_than_all_together() -> None:
    load = "main  0  300  enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__  annotation  -"
    case = case_of_text(steps(load, "main  300  300  aten::sort  op  -", *gemm(600, 385)))
    found = apply_rules(case)
    found[0].speedup = Interval(1.0, 1.5, 90.0)  # as where its own spread is wider than that of all
    both = replay_together(case, found)
    assert both is not None and both.high == 90.0
    assert both.low > 1.0 and both.mid > 1.5


def test_nothing_is_said_of_all_together_where_one_was_not_replayed() -> None:
    """Slow steps are not replayed: what the others gain together may be less than what these cost."""
    load = "main  0  300  enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__  annotation  -"
    case = case_of_text(steps(load, "main  300  300  aten::sort  op  -", *gemm(600, 385)))
    found = apply_rules(case)
    slow = Finding(
        code="step-outliers",
        class_="time",
        title="",
        detail="",
        saves_ns_per_step=9,
        speedup=Interval(9, 9, 9),
    )
    assert replay_together(case, [*found, slow]) is None
    slow.saves_ns_per_step, slow.speedup = 0, Interval()  # promises nothing, as where it was not recorded
    assert replay_together(case, [*found, slow]) == replay_together(case, found)
    case.of_slow_steps.add(found[0].code)
    assert replay_together(case, found) is None


def test_fewer_launches_among_other_changes_may_be_half_of_them() -> None:
    """Beside a loader that goes: a graph is the most that people make of the launches, not the least."""
    load = "main  0  150  enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__  annotation  -"
    ops = [
        row
        for k in range(20)
        for row in (f"main  {150 + 41 * k}  36  aten::add  op  -", *gemm(150 + 41 * k + 30, 4))
    ]
    case = case_of_text(steps(load, *ops))
    found = {each.code: each for each in apply_rules(case)}
    both = replay_together(case, list(found.values()))
    assert both is not None
    assert {"launch-bound", "input-bound"} <= found.keys()
    assert found["launch-bound"].speedup.low < both.low < 3 < both.mid < both.high


def test_an_idle_gap_without_a_name_promises_nothing() -> None:
    found = {each.code: each for each in findings_of(steps(*gemm(0, 300), *gemm(800, 185)))}
    assert found["idle-unexplained"].speedup.high == 1
    assert found["idle-unexplained"].class_ == "advice"


def test_compilation_in_the_first_step_alone_is_warm_up() -> None:
    rows = steps(*gemm(0, 985), count=4)
    rows += ["main  0  900  torch._dynamo compile  annotation  -"]
    assert "recompilation" not in {each.code for each in findings_of(rows)}


@pytest.mark.parametrize("kind", BODIES)
def test_a_loop_that_launches_piece_by_piece(kind: str) -> None:
    """Twelve experts, each with a wait of its own: one cause, and what it promises is the loop launched at once."""
    rows = ["main  0  980  moe.py(8): experts  python  -"]
    for k in range(12):
        at = 80 * k
        rows += [f"main  {at}  30  aten::add  op  -", *gemm(at + 30, 4, begin=at + 42)]
        rows += [f"main  {at + 41}  8  cudaStreamSynchronize  runtime  -"]
    found = findings_of(in_body(kind, steps(*rows)))
    assert found[0].code == "unbatched-loop"
    assert found[0].speedup.mid > 2
    place = ("moe.py", 8) if kind == "function" else ("train.py", 3)
    assert [(each.file, each.line) for each in found[0].where] == [place]
    assert "device-sync" not in {each.code for each in found}


@pytest.mark.parametrize("kind", BODIES)
def test_a_loop_that_reads_values_one_by_one_is_a_matter_of_its_waits(kind: str) -> None:
    """Twelve norms, each read with .item(): what is promised is that they are made together and read once."""
    rows = ["main  0  980  clip.py(3): total_norm  python  -"]
    for k in range(12):
        at = 80 * k
        rows += [*gemm(at, 4, begin=at + 12), f"main  {at + 12}  40  aten::item  op  -"]
        rows += [f"main  {at + 13}  38  aten::_local_scalar_dense  op  -"]
        rows += [f"main  {at + 15}  30  cudaStreamSynchronize  runtime  -"]
    found = {each.code: each for each in findings_of(in_body(kind, steps(*rows)))}
    assert "unbatched-loop" not in found
    assert found["device-sync"].speedup.mid > 2
    place = ("clip.py", 3) if kind == "function" else ("train.py", 3)
    assert [(each.file, each.line) for each in found["device-sync"].where] == [place]


def test_what_is_left_without_compilation_holds_the_waits_for_results() -> None:
    """700 µs of compiling; then the host waits for 100 µs in which the device does nothing: that stays."""
    rows = [
        "main  0  700  backend_compile  span  -",
        *gemm(700, 100, 710),
        "main  715  200  cudaStreamSynchronize  runtime  -",
        *gemm(920, 70, 930),
    ]
    found = {each.code: each for each in findings_of(steps(*rows), framework="jax")}
    speedup = found["recompilation"].speedup
    assert speedup.mid < 7


@pytest.mark.parametrize(("unprofiled_us", "most"), [(1_000, 85), (1_400, 450)])
def test_what_the_replay_lacks_of_a_step_may_stay_without_compilation(unprofiled_us: int, most: int) -> None:
    """All but 70 µs of a recorded step go; where the job's steps are 400 µs longer, nobody saw what these are."""
    timed = {"unprofiled_step": {"mean_ns": unprofiled_us * 1_000, "count": 9}}
    lines = steps("main  0  900  backend_compile  span  -", *gemm(900, 70), count=4)
    case = case_of_text(lines, framework="jax", capture=timed)
    case.steps = replace(case.steps, source="marker")
    found = {each.code: each for each in apply_rules(case)}["recompilation"]
    assert found.left_ns_per_step is not None
    assert found.left_ns_per_step.high == pytest.approx(most * 1_000, rel=0.25)
    assert found.speedup.high > 8


def test_a_checkpoint_in_every_step_is_a_matter_of_files() -> None:
    lines = steps(*gemm(0, 300), "main  320  600  torch/serialization.py(943): save  python  -", count=4)
    found = findings_of(lines)
    assert [one.code for one in found] == ["file-io"]
    assert found[0].speedup.mid > 2
    assert "async_save" in found[0].fix


def test_a_value_that_is_read_to_be_printed_is_waited_for() -> None:
    lines = steps(
        *gemm(0, 600),
        "main  20  900  <built-in function print>  python  -",
        "main  30  575  cudaStreamSynchronize  runtime  -",
        "main  610  300  torch/_tensor_str.py(690): _str  python  -",
    )
    assert "file-io" not in [one.code for one in findings_of(lines)]


def test_a_recording_of_nothing_but_steps_is_not_idle() -> None:
    assert findings_of(steps(count=4)) == []


@pytest.mark.parametrize(("low", "first"), [(1.15, "optimizer-loop"), (1.0, "launch-bound")])
def test_launches_that_are_not_needed_come_before_a_graph(low: float, first: str) -> None:
    """Savings of 19 and 64 %, as in a job with one parameter group per parameter."""
    named = optimizer_loop.RULE.finding("", "", saves_ns_per_step=190, speedup=Interval(low, 1.23, 1.5))
    found = launch_bound.RULE.finding("", "", saves_ns_per_step=640, speedup=Interval(2.3, 2.8, 3.6))
    behind = launch_bound.behind_causes([named], found)
    assert behind is found
    assert max((named, found), key=lambda each: each.saves_ns_per_step * each.certainty).code == first


@pytest.mark.parametrize(("mid", "share"), [(1.2, LAUNCHES_BESIDE_CAUSE), (1.02, 1.0)])
def test_launches_are_behind_casts_that_may_bring_nothing(mid: float, share: float) -> None:
    """Where the host decides, their low end is 1 whatever they take: the middle says whether they gain."""
    named = weight_casts.RULE.finding("", "", saves_ns_per_step=190, speedup=Interval(1.0, mid, 1.5))
    found = launch_bound.RULE.finding("", "", saves_ns_per_step=640, speedup=Interval(2.3, 2.8, 3.6))
    before = found.certainty
    launch_bound.behind_causes([named], found)
    assert found.certainty == pytest.approx(share * before)


def test_launches_gain_from_half_of_them_to_one_graph() -> None:
    """Twenty ops of 45 µs with kernels of 4: two launches as one bring hardly two, a graph many times that."""
    rows = []
    for k in range(20):
        rows += [f"main  {48 * k}  45  aten::add  op  -", *gemm(48 * k + 40, 4, begin=48 * k + 46)]
    case = case_of_text(steps(*rows, count=4))
    launches = launch_bound.slow_launches(case)
    assert launches is not None
    graph = case.played_ns / launches.changed.largest.step_ns()
    found = next(each for each in apply_rules(case) if each.code == "launch-bound")
    assert 1.4 < found.speedup.low < 2.1
    assert found.speedup.low < found.speedup.mid < graph
    assert found.speedup.high > 3
