"""The kernels of a device without a host, as a sequence in which steps are looked for."""

from __future__ import annotations

from stepscope.analysis.steps.calls import device_calls
from stepscope.analysis.steps.find import Steps, find_steps
from tests.builders.inline import trace_of

HEADER = "track  start  dur  name  kind"
STEP = ("gemm", "relu", "gemm", "loss", "grad", "grad")
UPDATE = ("multi_tensor_apply_kernel", "multi_tensor_apply_kernel")


def _kernels(names: tuple[str, ...], at: int, track: str = "stream 7") -> list[str]:
    """One after the other, 10 µs each."""
    return [f"{track}  {at + 10 * place}  8  {name}  kernel" for place, name in enumerate(names)]


def _trained(times: int, start_up: int = 0, update: tuple[str, ...] = UPDATE) -> Steps:
    """Steps of 200 µs whose update is on a stream of its own, after so many other kernels, each of which comes twice."""
    lines = _kernels(tuple(f"init {place // 2}x" for place in range(start_up)), 0)
    for step in range(times):
        begin = 10 * start_up + 200 * step
        lines += _kernels(STEP, begin)
        lines += _kernels(update, begin + 100, "stream 9")
        lines.append(f"stream 20  {begin + 80}  100  ncclDevKernel_AllReduce  kernel")
    return find_steps(trace_of("\n".join([HEADER, *lines])))


def test_steps_are_found_behind_a_start_up_that_does_not_repeat() -> None:
    """Where the first step begins in it is not known, so that one is left out."""
    steps = _trained(12, start_up=40)
    assert (steps.source, len(steps.host)) == ("inferred", 11)
    lengths = (steps.windows["end_ns"] - steps.windows["start_ns"]) // 1000
    assert lengths[:10].to_list() == [200] * 10
    assert int(steps.windows["start_ns"][0]) // 1000 == 400 + 118  # after the first update


def test_a_short_piece_before_the_first_update_is_a_step() -> None:
    assert len(_trained(12).host) == 12


def test_without_an_update_a_start_up_leaves_the_whole_recording() -> None:
    """What repeats behind it may be layers."""
    assert _trained(12, start_up=40, update=("copy", "copy")).is_whole


def test_all_streams_of_the_device_that_computes_most_count_without_communication() -> None:
    trace = trace_of(
        "\n".join(
            [
                HEADER,
                "stream 7  0  10  gemm  kernel",
                "stream 8  5  10  multi_tensor_apply_kernel  kernel",
                "stream 9  0  900  ncclDevKernel_Generic_1  kernel",
            ]
        )
    )
    (calls,) = device_calls(trace)
    assert calls.rows["token"].to_list() == ["gemm", "multi_tensor_apply_kernel"]
    assert calls.rows["updates"].to_list() == [False, True]
    assert calls.on_device
