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


def found_in(
    first: int, second: int, node: str = "MmBackward0", between: str = "", inner: str = "-", adds: bool = True
) -> dict[str, Finding]:
    """Findings of steps of a forward product and two backward ones of the forward ops with these numbers.

    `inner`: the number of the op inside of the first of them, which PyTorch gives it with create_graph=True; `adds`: gradients are added up.
    """
    return found_in_passes([(50, first, 330, inner), (90, second, 640, "-")], node, between, adds)


def found_in_passes(
    passes: list[tuple[int, int, int, str]], node: str = "MmBackward0", between: str = "", adds: bool = True
) -> dict[str, Finding]:
    """The same of these passes: when the node begins, the number of its forward op, when its kernel runs, the number of the op inside."""
    lines = ["track  start  dur  name  kind  launches  shapes  dtypes  inputs  sequence"]
    added = f"{ENGINE} torch::autograd::AccumulateGrad"
    length = 600 // len(passes)
    for step in range(3):
        at = 1000 * step
        lines.append(f"main  {at}  1000  ProfilerStep#{step}  annotation  -  -  -  -  -")
        lines += product(at + 10, "main", "aten::mm", 10 * step + 1, at + 20, 300)
        for begin, number, kernel_at, inner in passes:
            name = f"{ENGINE} {node}"
            lines.append(
                f"autograd  {at + begin}  10  {name}  op  -  [[8,8]]  float  -  {10 * step + number}"
            )
            lines += product(at + begin + 1, "autograd", "aten::mm", inner, at + kernel_at, length)
            if adds:
                lines.append(f"autograd  {at + begin + 10}  5  {added}  op  -  -  -  -  -")
                lines.append(
                    f"autograd  {at + begin + 11}  3  torch::autograd::AccumulateGrad  op  -  [[8,8]]  float  -  -"
                )
        lines += [
            f"main  {at + 82}  6  {name}  annotation  -  -  -  -  -" for name in between.split(",") if name
        ]
        lines.append(f"main  {at + 140}  850  cudaDeviceSynchronize  runtime  -  -  -  -  -")
    return {each.code: each for each in apply_rules(case_of(compute_trace("\n".join(lines))))}


def product(at: int, track: str, name: str, sequence: int | str, kernel_at: int, length: int) -> list[str]:
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


def test_a_second_pass_through_a_graph_that_the_first_has_made_is_needed() -> None:
    """As of an eikonal loss: gradients of a network of sines have no node with "BackwardBackward" in its name."""
    assert "repeated-backward" in found_in(1, 1, "SinBackward0")
    assert "repeated-backward" not in found_in(1, 1, "SinBackward0", inner="7")


def test_two_passes_that_add_nothing_up_are_needed() -> None:
    """Gradients by two inputs, or a gradient that weighs a loss."""
    assert "repeated-backward" not in found_in(1, 1, adds=False)
    assert "repeated-backward" in found_in(1, 1)


def rows(count: int) -> list[tuple[int, int, int, str]]:
    """Passes for a row of a Jacobian each."""
    return [(30 + 20 * row, 1, 330 + 600 // count * row, "-") for row in range(count)]


def test_derivatives_of_one_output_after_the_other_need_one_pass() -> None:
    found = found_in_passes(rows(5), adds=False)["repeated-backward"]
    assert found.title == "Derivatives are computed one output at a time"
    assert "jacrev" in found.fix and "sum of the losses" not in found.fix
    assert found.evidence["passes"] == 5
    # Large products take as long in one pass.
    assert 1 <= found.speedup.low < 1.1 and found.speedup.high < 2
    assert "repeated-backward" not in found_in_passes(rows(2), adds=False)
    losses = found_in_passes(rows(5))["repeated-backward"]
    assert losses.title == "The backward pass runs twice through the same layers"


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
