"""Derivatives that a job computes one output at a time, as a Jacobian row by row: what is said of them, by whichever rule finds them."""

from __future__ import annotations

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.host.loop_backward import loops_of_derivatives

TITLE = "Derivatives are computed one output at a time"
FIX = "Compute the derivatives of all outputs in one pass: torch.func.vmap(torch.func.jacrev(f)), jacfwd where there are fewer inputs than outputs, or torch.autograd.grad(y, x, grad_outputs=basis, is_grads_batched=True) with a stack of one-hot vectors; of several losses torch.stack is such a y. Several inputs of one output need one call: torch.autograd.grad(u, (x, t), ...)."


def speak_of_derivatives(case: Case, found: Finding, frame: int) -> None:
    """Title and advice of a loop, if that is what its turns compute."""
    if (loops_of_derivatives(case.trace, case.loops) == frame).any():
        found.title = TITLE
        found.fix = FIX
