"""What the stack of an allocation says: the line of the program that asked for it, and what it is likely for.

The site of an allocation is the innermost frame of the user's own code outside all modules: for activations the line that calls the
model, for weights the line that makes or copies it, for optimizer state the line of `step()`. The frames further in are its `inner` place.
Its `path` stands for the site and all lines of the user's code that lead to it: a function that several lines call has several.
"""

from __future__ import annotations

from typing import Any

import polars as pl

from stepscope.trace.trace import Trace

_LIBRARY = r"site-packages|dist-packages|/lib/python3|torchinductor_|/torch_compile|^<|^$|^\?\?|/torch/(nn|optim|autograd|utils|cuda|distributed|profiler|_)|\.(cpp|cc|cu|cuh|h|hpp|c|so)(:|\.|$)"
_NATIVE = "::"  # names of C++
_COMPILED = r"^$|^\?\?|\.(cpp|cc|cu|cuh|h|hpp|c|so)(:|\.|$)"
_OPTIMIZER = r"torch/optim/|/optimizers?/|bitsandbytes/optim"
_MAKES_STATE = r"^(\w+\.)*(_?init_group|_?init_state|_lazy_init)$"
_CLONES_STATE = r"torch/optim/sgd\.py$"  # the buffer of its momentum is made where weights are updated
_UPDATES = r"_(multi|single)_tensor_|_fused_|_foreach_"
_CALLS_MODULE = r"^(\w+\.)*(_call_impl|_wrapped_call_impl)$"
_MAKES_MODULE = r"^(\w+\.)*(_apply|to_empty|_?load_state_dict|_load_from_state_dict|from_pretrained|reset_parameters|_init_weights)$"
_COPIES_MODULE = r"^(\w+\.)*(_apply|to_empty|_?load_state_dict|from_pretrained|deepcopy)$"
_INIT = r"^(\w+\.)*__init__$"
_IN_INIT = r"(^|\.)(__init__|<listcomp>|<genexpr>|<dictcomp>)$"
_PARAMETERS = r"torch/nn/(parameter|init)\.py$"
_BACKWARD = r"torch::autograd::Engine|^(\w+\.)*(_engine_run_backward|backward)$"
_RECOMPUTES = r"^(\w+\.)*(backward|unpack_hook|recompute_fn|_recompute\w*)$"
_CHECKPOINT = r"torch/utils/checkpoint\.py$"
_FUNCTIONAL = r"torch/(nn/functional|_refs)"
_LOADS = r"torch/utils/data/"
_WORKSPACE = r"getNewWorkspace|BlasLtWorkspace|getCurrentCUDABlasHandle"
_SITE = ("file", "line", "function")
FLAGS = (
    "optimizer",
    "makes_state",
    "clones_state",
    "updates",
    "calls",
    "makes",
    "backward",
    "recomputes",
    "functional",
    "loads",
    "workspace",
)


def describe_stacks(trace: Trace) -> pl.DataFrame:
    """A row for each stack: site_*, inner_*, path, entry_line (the first one inside the module), and what its frames reveal."""
    frames = trace.frames.with_columns(pl.col("function", "file").cast(pl.String)).with_columns(_FLAGS)
    if frames.is_empty():
        return _empty()
    # Of a copy, the line that makes it counts, also in a constructor: the two models of a trainer are made by different lines.
    entered = pl.coalesce(
        pl.when(pl.col(name)).then("depth").max().over("stack") for name in ("calls", "copies", "enters")
    )
    users = frames.with_columns(entered=entered).filter("is_user")
    outside = users.filter(pl.col("entered").is_null() | (pl.col("depth") > pl.col("entered")))
    sites = _innermost(outside, "site").join(_paths(outside), on="stack")
    inner = _innermost(users, "inner")
    entries = (
        users.filter(pl.col("depth") < pl.col("entered"))
        .group_by("stack")
        .agg(entry_line=pl.col("line").sort_by("depth").last())
    )
    facts = frames.group_by("stack").agg(pl.col(FLAGS).any())
    # An optimizer that calls back for the loss is around the model, which allocates.
    facts = facts.with_columns(optimizer=pl.col("optimizer") & ~pl.col("calls"))
    fallback = _innermost(frames.filter(~pl.col("is_native")), "any")
    joined = facts
    for each in (sites, inner, entries, fallback):
        joined = joined.join(each, on="stack", how="left")
    return joined.with_columns(
        pl.coalesce(f"site_{part}", f"inner_{part}", f"any_{part}").alias(f"site_{part}") for part in _SITE
    ).drop([f"any_{part}" for part in _SITE])


def _innermost(frames: pl.DataFrame, prefix: str) -> pl.DataFrame:
    first = frames.sort("stack", "depth").unique("stack", keep="first", maintain_order=True)
    return first.select("stack", *(pl.col(part).alias(f"{prefix}_{part}") for part in _SITE))


def _paths(frames: pl.DataFrame) -> pl.DataFrame:
    lines = pl.concat_str(pl.col("file").fill_null(""), pl.col("line").fill_null(0), separator=":")
    joined = frames.sort("stack", "depth").group_by("stack").agg(path=lines.str.join("\n"))
    return joined.with_columns(pl.col("path").hash())


def _empty() -> pl.DataFrame:
    places: dict[str, Any] = {f"{prefix}_{part}": pl.String for prefix in ("site", "inner") for part in _SITE}
    places |= {f"{prefix}_line": pl.Int32 for prefix in ("site", "inner")}
    return pl.DataFrame(
        schema={
            "stack": pl.UInt32,
            **dict.fromkeys(FLAGS, pl.Boolean),
            **places,
            "entry_line": pl.Int32,
            "path": pl.UInt64,
        }
    )


_function, _file = pl.col("function"), pl.col("file")
_TESTS = {
    "is_native": _file.str.contains(_COMPILED) | _function.str.contains(_NATIVE, literal=True),
    "is_user": ~(_file.str.contains(_LIBRARY) | _function.str.contains(_NATIVE, literal=True)),
    "optimizer": _file.str.contains(_OPTIMIZER),
    "makes_state": _function.str.contains(_MAKES_STATE),
    "clones_state": _file.str.contains(_CLONES_STATE),
    "updates": _function.str.contains(_UPDATES),
    "calls": _function.str.contains(_CALLS_MODULE),
    "makes": _function.str.contains(_MAKES_MODULE)
    | _function.str.contains(_INIT)
    | _file.str.contains(_PARAMETERS),
    "copies": _function.str.contains(_COPIES_MODULE) & _file.str.contains(_LIBRARY),
    "enters": _function.str.contains(_IN_INIT),
    "backward": _function.str.contains(_BACKWARD),
    "recomputes": _function.str.contains(_RECOMPUTES) & _file.str.contains(_CHECKPOINT),
    "functional": _file.str.contains(_FUNCTIONAL),
    "loads": _file.str.contains(_LOADS),
    "workspace": _function.str.contains(_WORKSPACE),
}
_FLAGS = [test.fill_null(False).alias(name) for name, test in _TESTS.items()]
