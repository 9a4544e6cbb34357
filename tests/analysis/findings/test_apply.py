"""What is found, by which code, with which slices; and what is not."""

from __future__ import annotations

from dataclasses import replace

import polars as pl
import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding, Interval, ranked
from stepscope.analysis.findings.promise import timed
from stepscope.analysis.findings.rules.host.launch_bound import RULE as LAUNCH_BOUND
from stepscope.trace.frames import conform
from stepscope.units import duration
from tests.builders.cases import HEAD, case_of, case_of_text, findings_of, gemm, step, steps
from tests.builders.inline import trace_of


def test_a_busy_device_gets_no_finding() -> None:
    assert findings_of(steps(*gemm(0, 985))) == []


def test_waiting_for_a_batch_is_input_bound_and_nothing_else() -> None:
    load = "main  0  700  enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__  annotation  -"
    found = findings_of(steps(load, *gemm(700, 285)))
    assert [one.code for one in found] == ["input-bound"]
    assert 0.65 < found[0].share < 0.72
    assert 2.5 < found[0].speedup.low <= found[0].speedup.mid <= found[0].speedup.high < 5.5
    assert "num_workers" in found[0].fix


def test_a_wait_that_empties_the_queue_is_a_sync_and_not_slow_launching() -> None:
    parts = []
    for k in range(4):
        at = 250 * k
        parts += gemm(at, 150)
        parts.append(f"main  {at + 11}  151  cudaDeviceSynchronize  runtime  -")
        parts.append(f"main  {at + 165}  80  aten::add  op  -")
    found = findings_of(steps(*parts))
    assert [one.code for one in found] == ["device-sync"], [(one.code, one.share) for one in found]


def test_a_long_op_on_the_host_is_a_fallback() -> None:
    found = findings_of(steps("main  0  600  aten::sort  op  -", *gemm(600, 385)))
    assert [one.code for one in found] == ["cpu-fallback"]
    assert found[0].evidence["names"][0]["name"] == "aten::sort"


def test_an_op_whose_kernels_go_into_a_graph_is_no_fallback() -> None:
    def during(begin: str) -> list[str]:
        op = ("main  10  580  vllm::moe_forward  op  -", "main  300  5  hipLaunchKernel  runtime  -")
        capture = (f"main  1  2  {begin}  runtime  -", "main  592  2  hipStreamEndCapture  runtime  -")
        replay = "main  595  2  hipGraphLaunch  runtime  -"
        return [one.code for one in findings_of(steps(*capture, *op, replay, *gemm(600, 385)))]

    assert "cpu-fallback" not in during("hipStreamBeginCapture")
    assert "cpu-fallback" in during("hipStreamIsCapturing")


def test_nothing_is_said_of_the_host_where_graphs_are_only_captured() -> None:
    """A server captures its graphs once, when it starts: its launches then hold no step up."""
    small = [row for at in range(20, 900, 20) for row in gemm(at, 5)]
    capture = [
        "main  1  2  cudaStreamBeginCapture  runtime  -",
        "main  950  2  cudaStreamEndCapture  runtime  -",
    ]
    assert "launch-bound" in [one.code for one in findings_of(steps(*small))]
    assert findings_of(steps(*capture, *small)) == []


def test_an_engines_bookkeeping_is_no_fallback() -> None:
    name = "autograd::engine::evaluate_function: MseLossBackward0"
    found = findings_of(steps(f"main  0  600  {name}  op  -", *gemm(600, 385)))
    assert "cpu-fallback" not in [one.code for one in found]


def findings_with_copies(lines: list[str], sent: int = 1 << 20, framework: str = "pytorch") -> list[Finding]:
    """What is found where each copy to the host has a MiB, and each copy to the device `sent` bytes."""
    trace = trace_of("\n".join([HEAD, *lines]), framework=framework)
    copies = trace.events.filter(pl.col("kind") == "copy")
    names = copies["name"].cast(pl.String)
    table = pl.DataFrame(
        {
            "event": copies["id"],
            "bytes": [sent if "HtoD" in name else 1 << 20 for name in names],
            "direction": names.str.extract(r"Memcpy (\w+)"),
            "source": names.str.extract(r"\((\w+) "),
            "target": names.str.extract(r"> (\w+)"),
        }
    )
    table = conform(table, trace.copies.schema)
    return apply_rules(case_of(trace.over({**trace.tables, "copies": table}, trace.cold)))


@pytest.mark.parametrize(("sent", "first"), [(4 << 20, "round-trip-copy"), (3 << 20, "host-python")])
def test_numpy_between_steps_is_a_trip_if_the_data_that_comes_has_the_size_of_what_went(
    sent: int, first: str
) -> None:
    lines = steps(
        "main  0  20  aten::copy_  op  -",
        "main  5  10  cudaMemcpyAsync  runtime  Memcpy HtoD (Pageable -> Device)",
        "stream 7  10  20  Memcpy HtoD (Pageable -> Device)  copy  -",
        *gemm(30, 300),
        "main  50  305  aten::copy_  op  -",
        "main  55  295  cudaMemcpyAsync  runtime  Memcpy DtoH (Device -> Pageable)",
        "stream 7  335  10  Memcpy DtoH (Device -> Pageable)  copy  -",
        "main  380  600  sampler.py(7): update  python  -",
        count=4,
    )
    found = findings_with_copies(lines, sent)
    assert found[0].code == first, [(one.code, one.share) for one in found]
    assert "cpu-fallback" not in [one.code for one in found]
    assert first == "host-python" or found[0].speedup.mid > 2.2  # with what the last step does after its copy


def test_data_that_goes_to_the_host_and_back_is_one_finding() -> None:
    lines = steps(
        *gemm(0, 100),
        "main  20  305  aten::copy_  op  -",
        "main  25  295  cudaMemcpyAsync  runtime  Memcpy DtoH (Device -> Pageable)",
        "stream 7  115  200  Memcpy DtoH (Device -> Pageable)  copy  -",
        "main  330  50  aten::clamp  op  -",
        "main  400  310  aten::copy_  op  -",
        "main  405  300  cudaMemcpyAsync  runtime  Memcpy HtoD (Pageable -> Device)",
        "stream 7  415  285  Memcpy HtoD (Pageable -> Device)  copy  -",
        *gemm(715, 260),
    )
    found = findings_with_copies(lines)
    assert [one.code for one in found][:1] == ["round-trip-copy"], [(one.code, one.share) for one in found]
    assert not {"exposed-copy", "device-sync"} & {one.code for one in found}
    assert found[0].evidence["bytes_per_step"] == 2 << 20


@pytest.mark.parametrize("inside", [True, False])
def test_results_that_the_function_which_copies_them_computes_on_are_one_finding(inside: bool) -> None:
    """400 µs of NumPy after a copy of 1 MiB; where another function computes, it may be about anything else."""
    lines = steps(
        *gemm(0, 100),
        f"main  15  {965 if inside else 400}  serve.py(7): answer  python  -",
        "main  20  305  aten::copy_  op  -",
        "main  25  295  cudaMemcpyAsync  runtime  Memcpy DtoH (Device -> Pageable)",
        "stream 7  115  200  Memcpy DtoH (Device -> Pageable)  copy  -",
        "main  430  540  numpy/fromnumeric.py(48): argmax  python  -",
        count=4,
    )
    found = findings_with_copies(lines)
    codes = [one.code for one in found]
    assert ("round-trip-copy" in codes) == inside, codes
    if inside:
        assert codes[0] == "round-trip-copy"
        assert "on the device" in found[0].fix


@pytest.mark.parametrize("waits", [True, False])
def test_results_that_another_thread_copies_belong_to_the_function_that_waits_for_them(waits: bool) -> None:
    """JAX copies on a thread of its own; a copy that nobody waits for may be for anyone."""
    lines = steps(
        "main  0  5  PjitFunction(predict)  span  -",
        "main  1  3  cuLaunchKernelEx  runtime  gemm",
        "stream 7  10  100  gemm  kernel  -",
        "main  10  970  $serve.py:7 answer  python  -",
        *(["main  15  400  np.asarray(jax.Array)  span  -"] if waits else []),
        "pool  260  10  MemcpyD2H  runtime  Memcpy DtoH (Device -> Pageable)",
        "stream 9  265  50  Memcpy DtoH (Device -> Pageable)  copy  -",
        "main  430  540  $fromnumeric.py:48 argmax  python  -",
        count=4,
    )
    found = {one.code: one for one in findings_with_copies(lines, framework="jax")}
    assert ("round-trip-copy" in found) == waits, list(found)
    if waits:
        # The computation, the wait, and what the runtime does for the copy go; the kernel and its launch stay.
        assert found["round-trip-copy"].speedup.high > 5
        assert "device-sync" not in found


def test_what_follows_the_longest_computation_on_results_may_stay() -> None:
    """A count of 301 µs after a search of 610 µs may be on what the search left; before it, it is on the large result."""

    def promised(*computing: str) -> float:
        lines = steps(
            *gemm(0, 20),
            "main  15  975  serve.py(7): answer  python  -",
            "main  20  45  aten::copy_  op  -",
            "main  21  43  cudaMemcpyAsync  runtime  Memcpy DtoH (Device -> Pageable)",
            "stream 7  35  25  Memcpy DtoH (Device -> Pageable)  copy  -",
            *computing,
            count=4,
        )
        return {one.code: one for one in findings_with_copies(lines)}["round-trip-copy"].speedup.mid

    after = promised(
        "main  70  610  numpy/fromnumeric.py(48): argmax  python  -",
        "main  682  301  numpy/count.py(9): bincount  python  -",
    )
    before = promised(
        "main  70  301  numpy/count.py(9): bincount  python  -",
        "main  373  610  numpy/fromnumeric.py(48): argmax  python  -",
    )
    assert 1.5 < after < 0.9 * before


def test_slow_first_steps_are_warm_up_and_promise_nothing() -> None:
    lines = ["main  0  5000  ProfilerStep#0  annotation  -", "main  0  4000  compile  annotation  -"]
    lines += [
        "main  4000  10  aten::mm  op  -",
        "main  4000  8  cudaLaunchKernel  runtime  gemm",
        "stream 7  4010  985  gemm  kernel  -",
    ]
    lines += [row for number in range(1, 7) for row in step(number, 4000 + 1000 * number, *gemm(0, 985))]
    (found,) = findings_of(lines)
    assert (found.code, found.class_, found.speedup.mid, found.saves_ns_per_step) == (
        "warm-up",
        "advice",
        1.0,
        0,
    )
    assert found.evidence["steps"] == [0]


def test_slow_steps_are_told_apart_from_the_usual_ones() -> None:
    lines = [row for number in range(6) for row in step(number, 1000 * number, *gemm(0, 985))]
    lines += [
        "main  6000  5000  ProfilerStep#6  annotation  -",
        "main  6000  4000  save_checkpoint  annotation  -",
    ]
    lines += [row.replace("  10  aten", "  10  aten") for row in (
        "main  10000  10  aten::mm  op  -",
        "main  10000  8  cudaLaunchKernel  runtime  gemm",
        "stream 7  10010  985  gemm  kernel  -",
    )]  # fmt: skip
    found = findings_of(lines)
    assert [one.code for one in found] == ["step-outliers"]
    assert found[0].evidence["steps"] == [6]
    assert found[0].evidence["names"][0]["name"] == "save_checkpoint"
    assert found[0].detail.startswith("Step 6 took 5.00 ms where the median step takes 1.00 ms")


def test_findings_own_disjoint_slices() -> None:
    load = "main  0  300  enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__  annotation  -"
    lines = steps(
        load, "main  300  200  aten::sort  op  -", "main  500  200  aten::add  op  -", *gemm(700, 285)
    )
    case = case_of(trace_of("\n".join([HEAD, *lines]), framework="pytorch"))
    found = apply_rules(case)
    assert len(found) >= 2
    assert sum(one.share for one in found) <= 1.0


def test_promises_are_made_without_the_profilers_share() -> None:
    launches = [row for k in range(10) for row in gemm(100 * k, 28, begin=100 * k + 12)]
    busy = [f"main  {100 * k + 11 + i}  1  aten::view  op  -" for k in range(10) for i in range(0, 88, 2)]
    found = findings_of(steps(*launches, *busy))
    assert found[0].code == "launch-bound"
    assert 1.1 < found[0].speedup.low < found[0].speedup.high < 1000 / 280


def test_without_a_device_nothing_is_told_of_kernels() -> None:
    busy = [f"main  {k}  4  PjitFunction(step)  runtime  -" for k in range(0, 600, 5)]
    trace = trace_of("\n".join([HEAD, *steps(*busy, "main  620  330  dot  op  -")]), framework="jax")
    (found,) = apply_rules(replace(case_of(trace), device=None))
    assert (found.code, found.title) == (
        "eager-execution",
        "A Python loop calls compiled programs one by one",
    )
    assert "lax.scan" in found.fix and "calls step 120 times" in found.detail
    assert "kernels" not in found.detail


@pytest.mark.parametrize(
    ("calls", "kernels", "code", "title"),
    [
        (30, 1, "eager-execution", "The step runs op by op instead of compiled"),
        (30, 5, "eager-execution", "A Python loop calls compiled programs one by one"),
        (8, 5, "launch-bound", "The host launches work too slowly"),
    ],
)
def test_one_program_of_jax_that_a_step_calls_again_and_again(
    calls: int, kernels: int, code: str, title: str
) -> None:
    every = 990 // calls
    rows = [f"main  {every * k}  {every - 1}  PjitFunction(add)  span  -" for k in range(calls)]
    for k in range(calls):
        for i in range(kernels):
            rows += [
                f"main  {every * k + 3 * i}  2  cuLaunchKernelEx  runtime  fusion_{i}",
                f"stream 7  {every * k + 3 * i + 2}  1  fusion_{i}  kernel  -",
            ]
    found = findings_of(steps(*rows), framework="jax")
    assert (found[0].code, found[0].title) == (code, title)


def test_a_job_on_the_host_gets_no_advice_for_devices() -> None:
    """An op that takes long there has fallen back from nowhere."""
    outer, inner = "main  0  900  aten::linear  op  -", "main  600  300  aten::addmm  op  -"
    trace = trace_of("\n".join([HEAD, *steps(outer, inner)]), framework="pytorch")
    alone = replace(case_of(trace), device=None)
    alone.trace.info.devices.clear()
    found = {one.code: one for one in apply_rules(alone)}
    assert "cpu-fallback" not in found
    assert all("CUDA" not in one.fix and "device" not in one.title for one in found.values())


def test_an_outer_op_that_launches_further_in_is_no_fallback() -> None:
    outer = "main  0  650  aten::conv2d  op  -"
    inner = "main  600  45  aten::cudnn_convolution  op  -"
    launch = ("main  630  8  cudaLaunchKernel  runtime  gemm", "stream 7  640  345  gemm  kernel  -")
    found = findings_of(steps(outer, inner, *launch))
    assert found == []


def test_where_the_replay_does_not_fit_the_account_promises() -> None:
    """The main thread is silent while another one holds the step up."""
    lines = steps("comm  0  800  gloo:all_reduce  op  -", *gemm(800, 185))
    case = case_of(trace_of("\n".join([HEAD, *lines]), framework="pytorch"))
    case.recorded_ns = 0.2 * case.step_ns
    assert not case.replay_fits
    found = [one for one in apply_rules(case) if one.class_ == "time"]
    assert found
    assert all(one.evidence["estimate"] == "account" and one.speedup.low > 1 for one in found)


def test_a_function_that_is_traced_in_every_step_is_retracing() -> None:
    traced = "main  0  600  tf.function-graph_building  annotation  -"
    found = findings_of(steps(traced, *gemm(600, 385)), framework="tensorflow")
    assert [one.code for one in found] == ["retracing"]
    assert "input_signature" in found[0].fix


@pytest.mark.parametrize(
    ("left", "first"), [(20, "memory-growth"), (90_000, "fp32-matmul"), (None, "fp32-matmul")]
)
def test_memory_that_grows_slowly_comes_behind_what_makes_the_job_faster(
    left: int | None, first: str
) -> None:
    grows = Finding(code="memory-growth", class_="memory", title="", detail="", evidence={"steps_left": left})
    faster = Finding(
        code="fp32-matmul",
        class_="time",
        title="",
        detail="",
        saves_ns_per_step=9,
        speedup=Interval(1.4, 1.5, 1.6),
    )
    little = Finding(
        code="host-python",
        class_="time",
        title="",
        detail="",
        saves_ns_per_step=1,
        speedup=Interval(1, 1.02, 1.1),
    )
    found = [each.code for each in ranked([little, grows, faster])]
    assert (found[0], found[-1]) == (first, "host-python")
    assert ranked([little, grows])[0].code == "memory-growth"


def test_no_promise_where_unprofiled_steps_are_much_longer_than_recorded() -> None:
    def promised(unprofiled_ns: int) -> float:
        timed = {"unprofiled_step": {"mean_ns": unprofiled_ns, "count": 9}}
        case = case_of_text(steps(*gemm(0, 100)), capture=timed)
        case.steps = replace(case.steps, source="marker")
        return case.gain(Interval(0.4, 0.5, 0.6)).speedup.mid

    assert promised(900_000) == 2.0
    assert promised(2_100_000) == 1.0


def _launching() -> list[str]:
    """Steps whose ops the profiler makes slow: ten short kernels, each launched by many ops."""
    launches = [row for k in range(10) for row in gemm(100 * k, 28, begin=100 * k + 12)]
    return [
        *launches,
        *(f"main  {100 * k + 11 + i}  1  aten::view  op  -" for k in range(10) for i in range(0, 88, 2)),
    ]


def test_savings_are_of_the_step_without_the_profiler() -> None:
    """A recorded step of 1 ms takes less than that without: what is saved of it is in line with the speed-up."""
    case = case_of_text(steps(*_launching()))
    found = apply_rules(case)[0]
    assert case.saved_of_ns == pytest.approx(1_000_000 * case.played_ns / case.recorded_ns)
    assert case.saved_of_ns < 900_000
    assert found.saves_ns_per_step == pytest.approx(case.saved_of_ns * (1 - 1 / found.speedup.mid), rel=0.01)
    assert found.left_ns_per_step is not None
    assert found.left_ns_per_step.mid + found.saves_ns_per_step == pytest.approx(case.saved_of_ns, abs=2)


def test_a_timed_step_needs_no_estimate() -> None:
    case = case_of_text(steps(*_launching()), capture={"unprofiled_step": {"mean_ns": 950_000, "count": 9}})
    case.steps = replace(case.steps, source="marker")
    assert (case.unprofiled_share, case.saved_of_ns) == (1.0, 950_000)


def test_slow_steps_make_no_saving_of_the_others_larger() -> None:
    """Of nine steps one takes 20 ms: no usual one saves more than its 1 ms for that."""
    lines = [row for number in range(6) for row in step(number, 1000 * number, *_launching())]
    slow = step(6, 6000, "main  1000  19000  evaluate  annotation  -", *_launching())
    lines += [slow[0].replace("  1000  ", "  20000  "), *slow[1:]]
    lines += [row for number in (7, 8) for row in step(number, 19_000 + 1000 * number, *_launching())]
    found = {each.code: each for each in findings_of(lines)}
    assert 0 < found["launch-bound"].saves_ns_per_step < 1_000_000
    assert found["step-outliers"].saves_ns_per_step > 1_000_000
    assert "where the median step takes 1.00 ms" in found["step-outliers"].detail
    assert "of 1.00 ms per step that is not slow" in found["launch-bound"].detail


def test_no_more_is_said_to_go_than_is_saved() -> None:
    """Time that follows is of the recorded step, which the profiler made longer than what is saved has room for."""
    case = case_of_text(steps(*_launching()))
    owned = case.free(pl.col("part") == "compute")
    mine = case.per_step(owned)
    found = timed(case, LAUNCH_BOUND, owned, case.plan.with_host(pl.col("cause") == "dispatch", 0.1), "")
    follows = sum(found.evidence["follows"].values())
    assert follows == pytest.approx(found.saves_ns_per_step - mine, abs=2)
    assert f"Another {duration(follows)}, mostly dispatch" in found.detail
    assert "of other time goes with it" not in found.detail


def test_what_goes_beside_what_a_finding_owns_is_told() -> None:
    """The loop's wait owns little of what overlaps once it is gone."""
    case = case_of_text(steps(*_launching()))
    owned = case.free(pl.col("part") == "compute").head(3)
    found = timed(case, LAUNCH_BOUND, owned, case.plan.with_host(pl.col("cause") == "dispatch", 0.2), "")
    named = case.per_step(owned) + sum(found.evidence["follows"].values())
    rest = found.saves_ns_per_step - named
    assert rest > 0.05 * case.step_ns
    assert f"In the replay {duration(rest)} of other time goes with it" in found.detail
