"""Calls of compiled functions through nnx.jit or equinox.filter_jit, which take their arguments apart in Python.

JAX's tracer leaves the folder out, and these libraries have files that are named as a job's may be: graph.py, extract.py. Below the call
of a wrapper they are the library's; the job's own code runs there only while the function is traced.
"""

from __future__ import annotations

import polars as pl

from stepscope.lazy import dataclass
from stepscope.trace.columns import repeated
from stepscope.trace.lookup import is_named, names_of
from stepscope.trace.scopes import ancestors


@dataclass(frozen=True)
class Wrapper:
    """`call`: what a call of it is named. `prepares`: a function that it calls each time, and that says whose file it is. `files`: its own."""

    call: str
    prepares: str
    files: str


NNX = Wrapper(
    r"^\$compilation\.py:\d+ __call__$",
    r"^\$extract\.py:\d+ to_tree$",
    r"^\$(compilation|extract|filterlib|graph|graphlib|pytreelib|statelib|tracers|variablelib)\.py:\d+ ",
)
EQUINOX = Wrapper(
    r"^\$_jit\.py:\d+ (_call|__call__)$",
    r"^\$_jit\.py:\d+ _preprocess$",
    r"^\$_(better_abstract|caches|compile_utils|filters|flatten|jit|module|prebuilt|tree)\.py:\d+ ",
)
WRAPPERS = (NNX, EQUINOX)


def in_wrapper(events: pl.DataFrame, wrapper: Wrapper) -> pl.Series:
    """For each event whether it is Python of the wrapper's library: a call of it, or what that calls of its own files."""
    names = names_of(events).cast(pl.String)
    if not (names.str.contains(wrapper.call).any() and names.str.contains(wrapper.prepares).any()):
        return repeated(False, len(events), pl.Boolean)
    is_python = events["kind"] == "python"
    is_call = is_python & is_named(events, wrapper.call)
    is_own = is_python & is_named(events, wrapper.files)
    return is_call | (is_own & ancestors(events, is_call).is_not_null())
