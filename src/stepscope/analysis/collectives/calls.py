"""One row for each collective that ran, wherever its facts stand: on the kernel, on its op, in its name."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from functools import lru_cache

import msgspec
import polars as pl

from stepscope.analysis.account.account import Account
from stepscope.analysis.collectives.device_tensors_on_host import held
from stepscope.analysis.collectives.exposed import exposed_time
from stepscope.analysis.collectives.xla_programs import FACTS, program_facts
from stepscope.analysis.collectives.xla_runs import program_runs
from stepscope.trace.columns import repeated
from stepscope.trace.frames import conform, filled, kept, take
from stepscope.trace.lookup import rows_by_event
from stepscope.trace.trace import Trace

CALLS = {
    "event": pl.UInt32,
    "name": pl.String,
    "group": pl.String,
    "group_size": pl.Int32,
    "dtype": pl.String,
    "bytes": pl.Int64,
    "dur_ns": pl.Int64,
    "exposed_ns": pl.Int64,
    "held_ns": pl.Int64,  # from its start until the device had computed what a host collective sends
    "start_ns": pl.Int64,
    "step": pl.Int32,
    "group_ranks": pl.String,
    "sequence": pl.Int64,
    "device": pl.Int32,  # which of the rank's devices that have collectives; 0 for the host
    "stream": pl.Int32,  # which of its streams that have collectives; 0 for the host
    "label": pl.String,  # the instruction of a compiled program, which is the same on every rank
    "on_host": pl.Boolean,
    "peer": pl.Int32,  # the other end of a send or a receive, where it is known
}
# The first that the name contains, underscores and case aside.
_OPERATIONS = (
    ("reducescatter", "reduce_scatter"),
    ("allreduce", "all_reduce"),
    ("crossdevicereduce", "all_reduce"),
    ("quickreduce", "all_reduce"),
    ("allgather", "all_gather"),
    ("alltoall", "all_to_all"),
    ("collectivepermute", "send_recv"),
    ("collectivereduce", "all_reduce"),
    ("collectivegather", "all_gather"),
    ("crossreplicasum", "all_reduce"),
    ("bcast", "broadcast"),
    ("sendrecv", "send_recv"),
    ("broadcast", "broadcast"),
    ("barrier", "barrier"),
    ("reduce", "reduce"),
    ("scatter", "scatter"),
    ("gather", "gather"),
    ("send", "send"),
    ("recv", "recv"),
)
# As PyTorch's collectives, its ops and NCCL's kernels write types: our name, and bytes.
_TYPES: dict[str, tuple[str, int]] = {
    "float": ("float32", 4), "float32": ("float32", 4), "f32": ("float32", 4),
    "half": ("float16", 2), "c10::half": ("float16", 2), "f16": ("float16", 2), "float16": ("float16", 2),
    "bfloat16": ("bfloat16", 2), "c10::bfloat16": ("bfloat16", 2), "bf16": ("bfloat16", 2),
    "double": ("float64", 8), "float64": ("float64", 8), "f64": ("float64", 8),
    "byte": ("uint8", 1), "unsigned char": ("uint8", 1), "uint8_t": ("uint8", 1), "u8": ("uint8", 1),
    "char": ("int8", 1), "signed char": ("int8", 1), "int8_t": ("int8", 1), "i8": ("int8", 1), "bool": ("bool", 1),
    "short": ("int16", 2), "int": ("int32", 4), "int32_t": ("int32", 4), "i32": ("int32", 4), "u32": ("uint32", 4),
    "long": ("int64", 8), "long int": ("int64", 8), "int64_t": ("int64", 8), "i64": ("int64", 8), "u64": ("uint64", 8),
}  # fmt: skip
_REDUCED_TYPE = re.compile(
    r"_(?:Sum|Prod|Min|Max|MinMax|SumPostDiv|PreMulSum)_([a-z0-9_]+?)(?:_RING|_TREE|_NVLS|_COLLNET|_PAT|\(|$)"
)
_HOST = r"^(gloo|mpi|ucc):"
# Instructions of XLA and ops of TensorFlow, which on a CPU last until the collective is done.
_INSTRUCTION = r"^(ragged-)?(all-reduce|all-gather|reduce-scatter|all-to-all|collective-permute|collective-broadcast)(-start|-done)?([.\d]|$)"
_HOST_OP = _INSTRUCTION + r"|^Collective(Reduce|Gather|Bcast|AllToAll|Permute)\w*$"
# What is known of a call before its facts are looked for.
_FOUND = (
    pl.col("id").alias("event"),
    pl.col("name").cast(pl.String).alias("raw"),
    pl.col("start_ns"),
    pl.col("dur_ns"),
    pl.col("step"),
    pl.lit(None, dtype=pl.Int64).alias("run"),
)
_STARTS, _ENDS = r"-start([.\d]|$)", r"-done([.\d]|$)"
_INPUTS = {"event": pl.UInt32, "elements": pl.Int64, "input": pl.String}
_TEXTS = ("name", "dtype", "group", "group_ranks")
_WRITTEN = (*_TEXTS, "bytes", "group_size", "sequence", "peer")
_NAMED = ("name", "group", "group_size", "group_ranks", "sequence", "peer")
# What the code of a compiled program says about collectives.
_PROGRAM = {
    "group": ("program_group",),
    "group_size": ("program_size",),
    "group_ranks": ("program_ranks",),
    "sequence": ("run",),
}


def collective_calls(trace: Trace, account: Account) -> pl.DataFrame:
    """One row for each collective in the steps, with the columns of CALLS."""
    rows = recorded_calls(trace)
    device = take(trace.tracks.sort("id")["device"], take(trace.events["track"], rows["event"]))
    return conform(rows.with_columns(exposed_ns=exposed_time(account, rows, device)), CALLS)


def recorded_calls(trace: Trace) -> pl.DataFrame:
    """The same without an account: nothing is known to be exposed."""
    on_device = _device_calls(trace)
    on_host = _host_calls(trace)
    ops = _host_ops(trace) if on_device.is_empty() else on_device.clear()
    places = [(on_device, False), (on_host, True), (ops, True)]
    found = [place for place in places if len(place[0])] or places[:1]
    rows = pl.concat([_described(trace, calls).with_columns(on_host=host) for calls, host in found])
    rows = rows.join(held(trace, on_host["event"]), on="event", how="left", maintain_order="left")
    rows = rows.with_columns(
        *_places(trace, rows["event"]), pl.col("held_ns").fill_null(0), exposed_ns=pl.lit(0)
    )
    return conform(rows, CALLS)


def _places(trace: Trace, events: pl.Series) -> list[pl.Series]:
    """Ranks number their devices and streams each in its own way: here they are counted."""
    tracks = take(trace.events["track"], events)
    places = (take(trace.tracks[name], tracks).alias(name) for name in ("device", "stream"))
    return [(place.rank("dense").cast(pl.Int32) - 1).fill_null(0) for place in places]


@lru_cache(maxsize=4096)  # a step has the same names as the one before
def operation(name: str) -> str | None:
    """all_reduce, all_gather, … as the many spellings of libraries mean it; None for a name that tells none."""
    squeezed = re.sub(r"[\s_-]", "", name).lower()
    return next((ours for word, ours in _OPERATIONS if word in squeezed), None)


def _inside(trace: Trace, events: pl.DataFrame) -> pl.DataFrame:
    if not trace.events["step"].count() or not events["step"].null_count():
        return events
    return kept(events, events["step"].is_not_null())


def _device_calls(trace: Trace) -> pl.DataFrame:
    """event, raw name, start_ns, dur_ns, step, run of its program, op that launched it."""
    found = _collectives(trace)
    kernels = kept(found, found["kind"] == "kernel")
    rows = _whole(_inside(trace, kernels)).select(*_FOUND)
    at = take(rows_by_event(trace.kernels["event"], len(trace.events)), rows["event"])
    return rows.hstack([take(trace.kernels["op"], at).alias("op")])


def _collectives(trace: Trace) -> pl.DataFrame:
    """Events that are collectives by their names."""
    return kept(trace.events, filled(trace.events["role"] == "collective"))


def _whole(events: pl.DataFrame) -> pl.DataFrame:
    """XLA splits a collective into its start and its end: one call, from the beginning of the one to the end of the other.

    They are paired in order. Where a line of its own shows what runs meanwhile, that is the call.
    """
    texts = events["name"].cast(pl.String)
    starting, ending = (texts.str.contains(pattern) for pattern in (_STARTS, _ENDS))
    if not starting.any() or not ending.any():
        return events
    name = pl.col("name").cast(pl.String)
    starts, ends = events.filter(starting), events.filter(ending)
    what = pl.concat_str(
        name.str.replace(r"-(start|done).*$", ""), pl.col("track").cast(pl.String), separator=" "
    )
    turn = pl.int_range(pl.len()).over("what")
    begun, done = (
        part.sort("start_ns").with_columns(what=what).with_columns(turn=turn) for part in (starts, ends)
    )
    pairs = done.join(begun.select("what", "turn", begun_ns="start_ns"), on=["what", "turn"], how="left")
    start = pl.min_horizontal("start_ns", "begun_ns")
    joined = pairs.with_columns(start_ns=start, dur_ns=pl.col("start_ns") + pl.col("dur_ns") - start)
    tracks = ends["track"].unique().implode()
    rest = events.filter(
        ~name.str.contains(_ENDS) & ~(name.str.contains(_STARTS) & pl.col("track").is_in(tracks))
    )
    # What has a line of its own is drawn there from beginning to end.
    apart = rest.filter(name.str.contains(_STARTS))
    return pl.concat([rest, joined.select(events.columns)] if apart.is_empty() else [rest]).sort("start_ns")


def _host_calls(trace: Trace) -> pl.DataFrame:
    """gloo and its like: spans on host threads, one for each collective while it runs."""
    return _inside(trace, _on_host(trace, _HOST)).select(*_FOUND, op="id")


def _host_ops(trace: Trace) -> pl.DataFrame:
    """Ops of programs that run on the CPU, where no device event shows collectives; ops inside one are not counted again."""
    found = _on_host(trace, _HOST_OP).filter(pl.col("kind").is_in(["op", "span"]))
    end = (pl.col("start_ns") + pl.col("dur_ns")).cum_max().shift(1).over("track")
    ordered = found.sort("track", "start_ns", "dur_ns", descending=[False, False, True])
    outer = ordered.filter(~(pl.col("start_ns") < end).fill_null(False))
    runs = program_runs(trace, outer["id"]).rename({"event": "id", "run": "run_of"})
    rows = outer.join(runs, on="id", how="left", maintain_order="left")
    rows = _inside(trace, rows.with_columns(step=pl.coalesce("launched_in", "step")))
    return rows.select(*_FOUND, op="id").with_columns(run=rows["run_of"])


def _on_host(trace: Trace, pattern: str) -> pl.DataFrame:
    # One after the other: few events are collectives, and only their names are worth looking at.
    found = _collectives(trace)
    found = kept(found, found["name"].cast(pl.String).str.contains(pattern))
    if found.is_empty():
        return found
    threads = trace.tracks.filter(pl.col("what") == "host")["id"]
    return found.filter(pl.col("track").is_in(threads.implode()))


def _described(trace: Trace, calls: pl.DataFrame) -> pl.DataFrame:
    """What the profile says of each call: of the kernel itself, else of its op, else by the op's inputs and the names."""
    table = rows_by_event(trace.collectives["event"], len(trace.events))
    rows = calls.hstack(
        [*_facts(trace, take(table, calls["event"])), *_facts(trace, take(table, calls["op"]), "op_")]
    )
    rows = _with_program(rows, program_facts(trace, rows["event"]))
    rows = rows.hstack([take(trace.events["parent"], rows["op"]).alias("caller")])
    rows = rows.hstack(_by_name(trace, rows))
    rows = _with_inputs(trace, rows)
    named = [
        pl.coalesce(column, f"op_{column}", *_PROGRAM.get(column, ())).alias(column) for column in _NAMED
    ]
    rows = rows.with_columns(
        *named, dtype=pl.coalesce("dtype", "op_dtype", "program_dtype", "op_input", "raw_dtype")
    )
    types = {name: _TYPES.get(name.lower(), (name, None)) for name in rows["dtype"].drop_nulls().unique()}
    item = pl.col("dtype").replace_strict(
        list(types), [size for _, size in types.values()], default=None, return_dtype=pl.Int64
    )
    elements = pl.coalesce("op_elements", "caller_elements")
    spelled = {name: operation(name) or name for name in rows["name"].drop_nulls().unique()}
    return rows.with_columns(
        name=pl.coalesce(pl.col("name").replace(spelled), "caller_name", "raw_name", "raw"),
        bytes=pl.coalesce("bytes", "op_bytes", "program_bytes", elements * item),
        dtype=pl.col("dtype").replace({name: ours for name, (ours, _) in types.items()}),
        label=pl.when(pl.col("raw").str.contains(_INSTRUCTION)).then("raw"),
    ).select("event", *_NAMED, "dtype", "bytes", "start_ns", "dur_ns", "step", "label")


def _facts(trace: Trace, at: pl.Series, prefix: str = "") -> Iterator[pl.Series]:
    """What is written at these rows of the table of collectives."""
    for name in _WRITTEN:
        column = take(trace.collectives[name], at)
        yield (column.cast(pl.String) if name in _TEXTS else column).alias(prefix + name)


def _with_program(rows: pl.DataFrame, facts: pl.DataFrame) -> pl.DataFrame:
    """With what the code of the program says, which few profiles have."""
    if len(facts):
        return rows.join(facts, on="event", how="left", maintain_order="left")
    return rows.hstack([repeated(None, len(rows), FACTS[name], name) for name in FACTS if name != "event"])


def _with_inputs(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """With the elements and types of the inputs of op and caller, where the profile itself does not give size and type of each call."""
    said = rows.select(
        pl.coalesce("bytes", "op_bytes", "program_bytes"), pl.coalesce("dtype", "op_dtype", "program_dtype")
    )
    is_known = not sum(column.null_count() for column in said)
    for place in ("op", "caller"):
        names = {"event": place, "elements": f"{place}_elements", "input": f"{place}_input"}
        if is_known:
            nothing = (
                repeated(None, len(rows), _INPUTS[name], names[name]) for name in ("elements", "input")
            )
            rows = rows.hstack(list(nothing))
        else:
            found = _inputs(trace, rows[place]).rename(names)
            rows = rows.join(found, on=place, how="left", maintain_order="left")
    return rows


def _by_name(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """Operation and type as the names have them: NCCL's kernel of an all-to-all is called SendRecv, its op is not.

    What only sends is called int8 whatever it sends.
    """
    callers = take(trace.events["name"], rows["caller"]).cast(pl.String)
    types = []
    for name in rows["raw"]:
        found = _REDUCED_TYPE.search(name)
        reduces = operation(name) in ("all_reduce", "reduce", "reduce_scatter")
        types.append(found[1] if found and reduces else None)
    return pl.DataFrame(
        {
            "raw_name": [operation(name) for name in rows["raw"]],
            "caller_name": [operation(name) if name else None for name in callers],
            "raw_dtype": types,
        },
        schema={"raw_name": pl.String, "caller_name": pl.String, "raw_dtype": pl.String},
    )


def _inputs(trace: Trace, events: pl.Series) -> pl.DataFrame:
    """event, elements, input (type) of the first tensor, or list of tensors, that the op was given."""
    wanted = events.drop_nulls().unique()
    if wanted.is_empty():  # arguments that are no columns stay unread
        return pl.DataFrame(schema=_INPUTS)
    places = [
        trace.ops,
        *(cold for cold in trace.cold.values() if {"event", "shapes", "dtypes"} <= set(cold.columns)),
    ]
    rows = []
    for frame in places:
        found = frame.select("event", "shapes", "dtypes").filter(pl.col("event").is_in(wanted.implode()))
        rows += [
            (event, *_first_tensor(shapes, dtypes))
            for event, shapes, dtypes in found.drop_nulls().iter_rows()
        ]
    return pl.DataFrame(rows, schema=_INPUTS, orient="row").unique("event", keep="first", maintain_order=True)


def _first_tensor(shapes: str, dtypes: str) -> tuple[int | None, str | None]:
    """Elements and type. A list of tensors tells no type."""
    try:
        for shape, dtype in zip(msgspec.json.decode(shapes), msgspec.json.decode(dtypes), strict=False):
            if isinstance(dtype, str) and shape and (dtype.lower() in _TYPES or dtype == "TensorList"):
                parts = shape if isinstance(shape[0], list) else [shape]
                return sum(math.prod(part) for part in parts), dtype if dtype.lower() in _TYPES else None
    except (msgspec.DecodeError, TypeError):
        pass
    return None, None
