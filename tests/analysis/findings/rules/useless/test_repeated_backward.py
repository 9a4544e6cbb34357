"""A backward pass that runs several times through the same layers of one step."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from stepscope.trace.trace import Trace
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of

GEMM = "nvjet_sm90_tst_128x128_64x6_2x1_v_bz_TNT"
ENGINE = "autograd::engine::evaluate_function:"


def found_in(first: int, second: int, node: str = "MmBackward0", between: str = "") -> dict[str, Finding]:
    """Findings of steps of a forward product and two backward ones of the forward ops with these numbers."""
    lines = ["track  start  dur  name  kind  launches  shapes  dtypes  inputs  sequence"]
    for step in range(3):
        at = 1000 * step
        lines.append(f"main  {at}  1000  ProfilerStep#{step}  annotation  -  -  -  -  -")
        lines += product(at + 10, "main", "aten::mm", 10 * step + 1, at + 20, 300)
        for begin, number, kernel_at in ((50, first, 330), (90, second, 640)):
            name = f"{ENGINE} {node}"
            lines.append(
                f"autograd  {at + begin}  30  {name}  op  -  [[8,8]]  float  -  {10 * step + number}"
            )
            lines += product(at + begin + 2, "autograd", "aten::mm", 10 * step + 9, at + kernel_at, 300)
        lines += [
            f"main  {at + 82}  6  {name}  annotation  -  -  -  -  -" for name in between.split(",") if name
        ]
        lines.append(f"main  {at + 140}  850  cudaDeviceSynchronize  runtime  -  -  -  -  -")
    return {each.code: each for each in apply_rules(case_of(compute_trace("\n".join(lines))))}


def product(at: int, track: str, name: str, sequence: int, kernel_at: int, length: int) -> list[str]:
    """An op that launches one kernel."""
    return [
        f"{track}  {at}  8  {name}  op  -  [[4096,4096],[4096,4096]]  c10::BFloat16,c10::BFloat16  -  {sequence}",
        f"{track}  {at + 1}  5  cudaLaunchKernel  runtime  {GEMM}  -  -  -  -",
        f"stream 7  {kernel_at}  {length}  {GEMM}  kernel  -  -  -  -  -",
    ]


def test_a_graph_that_two_losses_walk_through() -> None:
    found = found_in(1, 1)["repeated-backward"]
    assert 1.3 < found.speedup.mid < 1.6
    assert found.evidence["passes"] == 2
    assert "retain_graph" in found.fix


def test_a_generator_that_is_not_detached_is_useless_for_the_discriminator() -> None:
    found = found_in(1, 1, between="Optimizer.step#Adam.step")
    assert "repeated-backward" not in found
    assert "detach" in found["useless-backward"].fix
    assert 1.3 < found["useless-backward"].speedup.mid < 1.6
    assert "repeated-backward" in found_in(1, 1, between="Optimizer.zero_grad#Adam.zero_grad")


@pytest.mark.parametrize(("second", "node"), [(2, "MmBackward0"), (1, "MmBackwardBackward0")])
def test_other_layers_and_gradients_of_gradients_are_needed(second: int, node: str) -> None:
    assert "repeated-backward" not in found_in(1, second, node)


def test_sums_of_gradients_that_are_thrown_away_go_as_well() -> None:
    (found,) = (one for one in apply_rules(case_of(undetached(3))) if one.code == "useless-backward")
    # Of 850 µs of a step's host, 100 are for the gradient of the generator that no optimizer uses, and 300 for its sum.
    assert found.speedup.low > 850 / 650


def undetached(steps: int) -> Trace:
    """Steps that the host decides about: the discriminator's loss goes on through the generator, whose gradient is summed up in 300 µs."""
    lines = ["track  start  dur  name  kind  launches  shapes  dtypes  inputs  sequence"]
    for step in range(steps):
        at, number = 1000 * step, 10 * step
        lines.append(f"main  {at}  1000  ProfilerStep#{step}  annotation  -  -  -  -  -")
        lines += product(at + 2, "main", "aten::mm", number + 1, at + 20, 20)
        lines += product(at + 12, "main", "aten::mm", number + 2, at + 40, 20)
        lines += node(at + 30, 20, "MmBackward0", "[[8,8]]", number + 2)
        lines += node(at + 52, 10, "torch::autograd::AccumulateGrad", "[[16,16]]", 0)
        lines += node(at + 70, 100, "MmBackward0", "[[8,8]]", number + 1)
        lines += node(at + 172, 300, "torch::autograd::AccumulateGrad", "[[8,8]]", 0)
        lines += update(at + 480, "[16,16]")
        lines += product(at + 510, "main", "aten::mm", number + 3, at + 520, 20)
        lines += node(at + 530, 100, "MmBackward0", "[[8,8]]", number + 1)
        lines += node(at + 632, 300, "torch::autograd::AccumulateGrad", "[[8,8]]", 0)
        lines += update(at + 940, "[8,8]")
        lines.append(f"main  {at + 980}  10  cudaDeviceSynchronize  runtime  -  -  -  -  -")
    return compute_trace("\n".join(lines))


def node(at: int, length: int, name: str, shapes: str, sequence: int) -> list[str]:
    """A node of autograd that launches one kernel at its end."""
    return [
        f"autograd  {at}  {length}  {ENGINE} {name}  op  -  {shapes}  float  -  {sequence or '-'}",
        f"autograd  {at + 1}  {length - 2}  {name}  op  -  {shapes}  float  -  {sequence or '-'}",
        f"autograd  {at + length - 8}  5  cudaLaunchKernel  runtime  {GEMM}  -  -  -  -",
        f"stream 7  {at + length}  {2 * length if sequence else 5}  {GEMM}  kernel  -  -  -  -  -",
    ]


def update(at: int, shape: str) -> list[str]:
    """A step of an optimizer."""
    return [
        f"main  {at}  20  Optimizer.step#Adam.step  annotation  -  -  -  -  -",
        f"main  {at + 2}  15  aten::_fused_adam_  op  -  [[{shape}],[{shape}]]  TensorList,TensorList  -  -",
        f"main  {at + 4}  5  cudaLaunchKernel  runtime  multi_tensor_apply_kernel  -  -  -  -",
        f"stream 7  {at + 10}  5  multi_tensor_apply_kernel  kernel  -  -  -  -  -",
    ]
