"""A loop inside of a compiled program that runs small kernels turn by turn."""

from __future__ import annotations

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of


def found_in(turns: int, length: int, framework: str = "jax") -> dict[str, Finding]:
    """Findings of steps of 1000 µs in which one kernel runs so many times, for so many µs."""
    lines = ["track  start  dur  name  kind  launches  shapes  dtypes"]
    for step in range(3):
        at = 1000 * step
        lines.append(f"main  {at}  1000  ProfilerStep#{step}  annotation  -  -  -")
        lines.append(f"main  {at + 2}  5  cudaLaunchKernel  runtime  gemm_fusion_dot_43  -  -")
        lines += [
            f"stream 7  {at + 10 + turn * 980 // turns}  {length}  gemm_fusion_dot_43  kernel  -  -  -"
            for turn in range(turns)
        ]
        lines.append(f"main  {at + 20}  975  cudaDeviceSynchronize  runtime  -  -  -")
    trace = compute_trace("\n".join(lines), framework=framework)
    return {each.code: each for each in apply_rules(case_of(trace))}


def test_a_recurrent_network_in_a_scan() -> None:
    found = found_in(200, 4)["small-kernels-in-loop"]
    assert found.class_ == "advice"
    assert found.speedup.mid == 1
    assert found.evidence["kernels_per_step"] == 200
    assert "lax.scan" in found.fix


def test_few_turns_long_kernels_and_eager_steps_have_no_such_loop() -> None:
    assert "small-kernels-in-loop" not in found_in(20, 40)
    assert "small-kernels-in-loop" not in found_in(100, 9)
    assert "small-kernels-in-loop" not in found_in(200, 4, "pytorch")
