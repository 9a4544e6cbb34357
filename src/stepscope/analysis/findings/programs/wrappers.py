"""Advice on calls of compiled functions that a library wraps: it goes through all parts of the model in Python, in each call."""

from __future__ import annotations

import polars as pl

from stepscope.analysis.findings.case import Case
from stepscope.analysis.host.wrapped_calls import EQUINOX, NNX, in_wrapper
from stepscope.registers.policy.findings import MAJORITY

_FIXES = (
    (
        NNX,
        "nnx.jit goes through the model in Python in each call: wrap the function once, before the loop, in nnx.cached_partial(step, model, optimizer), or split the model once (nnx.split) and call a jax.jit function with its state.",
    ),
    (
        EQUINOX,
        "equinox.filter_jit goes through the model in Python in each call: split it once, before the loop, with equinox.partition(model, equinox.is_array), call a jax.jit function with the arrays, and combine both inside of it.",
    ),
)


def advise_on_wrapper(case: Case, events: pl.Series, ns: pl.Series) -> str | None:
    """What avoids it, if most of this time of the host passes in such a library; `ns` is what each of the events took."""
    for wrapper, fix in _FIXES:
        inside = in_wrapper(case.trace.events, wrapper).gather(events).fill_null(False)
        if int(ns.filter(inside).sum()) > MAJORITY * int(ns.sum()):
            return fix
    return None
