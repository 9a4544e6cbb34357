"""Functions are traced again inside the steps."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rule import ANY, Rule
from stepscope.analysis.findings.rules.host.recompilation import compiling, is_tracing


def find(case: Case) -> Finding | None:
    """Compilation that is mostly tracing: of TensorFlow's graphs, of JAX's programs."""
    owned = case.free(pl.col("part") == "compile")
    return compiling(case, RULE, owned) if is_tracing(owned) else None


RULE: Rule[Case] = Rule(
    code="retracing",
    title="Functions are traced again during the steps",
    turn=50,
    owns="`compile`, if more than half of it is tracing (TensorFlow's graph building, JAX's jaxprs)",
    change="as `recompilation`",
    fix={
        "tensorflow": "Pass tensors instead of Python numbers, give tf.function an input_signature or reduce_retracing=True, and define it once, outside the loop.",
        ANY: "Make the function once, outside the loop: a new lambda or partial is traced again at each call. Pass what changes as an array.",
    },
    find=find,
)
