"""Steps of a training job on a CPU, as rows of text: ops compute by themselves, and the backward pass runs on the same thread."""

from __future__ import annotations

from dataclasses import dataclass

from stepscope.analysis.findings.case import Case
from tests.analysis.compute.traces import compute_trace
from tests.builders.cases import case_of

HEAD = "track  start  dur  name  kind  launches  shapes  dtypes  inputs  sequence"
ENGINE = "autograd::engine::evaluate_function:"
STEP_US = 1000


@dataclass(frozen=True)
class Call:
    """An op or annotation that takes `own` µs by itself, and what is inside of it."""

    name: str
    own: int
    shapes: str = "[]"
    inputs: str = "-"
    sequence: str = "-"
    inside: tuple[Call, ...] = ()
    kind: str = "op"
    dtypes: str = "-"

    @property
    def length(self) -> int:
        """Its time with all inside."""
        return self.own + sum(each.length for each in self.inside)

    def rows(self, at: int) -> list[str]:
        """Its row and those inside."""
        shapes = self.shapes.replace(" ", "") if self.kind == "op" else "-"
        found = [
            f"main  {at}  {self.length}  {self.name}  {self.kind}  -  {shapes}  {self.dtypes}  {self.inputs}  {self.sequence}"
        ]
        for each in self.inside:
            found += each.rows(at)
            at += each.length
        return found


def case_of_calls(*calls: Call, count: int = 3) -> Case:
    """Equal steps of these calls, one after the other; an op fills the rest of each."""
    lines = [HEAD]
    for number in range(count):
        at = STEP_US * number
        lines.append(f"main  {at}  {STEP_US}  ProfilerStep#{number}  annotation  -  -  -  -  -")
        for call in calls:
            lines += call.rows(at)
            at += call.length
        lines += Call("aten::copy_", STEP_US * (number + 1) - at).rows(at)
    return case_of(compute_trace("\n".join(lines)))


def forward(length: int, shapes: str = "[[64,4096],[4096,4096]]") -> Call:
    return Call("aten::mm", length, shapes, sequence="1")


def backward(length: int) -> Call:
    product = Call("aten::mm", length, "[[4096,64],[64,4096]]")
    return Call(f"{ENGINE} MmBackward0", 1, sequence="1", inside=(product,))


def gradient(shape: str) -> Call:
    node = Call("torch::autograd::AccumulateGrad", 1, f"[{shape}]")
    return Call(f"{ENGINE} torch::autograd::AccumulateGrad", 1, inside=(node,))


def optimizer(*ops: Call) -> Call:
    return Call("Optimizer.step#SGD.step", 1, kind="annotation", inside=ops)
