"""What to do about one op of a framework that takes most of a step on the host: it is not Python, so nothing of it can be vectorised."""

from __future__ import annotations

import re

# Random numbers that depend on nothing which the step computes; samples of a distribution that the model predicts are not among them.
_RANDOM = r"(^|[:/])(Stateless|Parameterized)?(Random(Standard|Uniform|Normal|Gamma|Poisson)|TruncatedNormal)|^aten::(normal|uniform|randn?|randint|randperm)(_|$|\.)"
# Ops that call Python.
_CALLS_PYTHON = r"(?i)py_?func|numpy_function|python"
_MAKE_AHEAD = "These are random numbers: make them once and keep them, or make those of the next steps in the input pipeline, in other threads."
_CHEAPER = "This is an op of the framework, not Python: give it less to compute (a smaller batch or picture, fewer channels or rows, or bfloat16 where the CPU has it), more threads ({threads}), or an accelerator. The rest of the step matters less."
_THREADS = {
    "tensorflow": "tf.config.threading.set_intra_op_parallelism_threads",
    "pytorch": "torch.set_num_threads",
}


def advise_on_op(name: str, framework: str | None) -> str | None:
    """The advice for this op; none where no framework runs, or the op calls Python."""
    if framework is None or re.search(_CALLS_PYTHON, name):
        return None
    if can_be_made_ahead(name):
        return _MAKE_AHEAD
    return _CHEAPER.format(threads=_THREADS.get(framework, "as many as there are cores"))


def can_be_made_ahead(name: str) -> bool:
    """Whether the op as a whole may go out of the step; of others, less to compute is a choice, and no part of them is known to go."""
    return re.search(_RANDOM, name) is not None
