"""Which op of the framework a piece of a compiled program's work belongs to, and how much it computes.

XLA names work after its instruction, and the instruction says which op of the program it comes from. Work inside a
command buffer (a CUDA graph) is only known by its kernel: kernels that are named after an instruction are found by their
order in the run of the program, all turns of its loops written out, since equal instructions share one kernel; library kernels
(cuBLAS, cuDNN) between two of those belong to the calls that stand between their instructions, if there are as many of them,
and copies to the instructions that only move data.
"""

from __future__ import annotations

import re
from collections.abc import Container, Sequence
from functools import cached_property, partial
from itertools import groupby

import polars as pl

from stepscope.analysis.xla.file_work import instruction_facts
from stepscope.analysis.xla.hlo_module import Instruction, Module, as_kernel, name_of, read_module
from stepscope.analysis.xla.instruction_cost import SILENT, Work, Worker, known_trips
from stepscope.analysis.xla.loops import body_of
from stepscope.registers.policy.tables import XLA_CALL_DEPTH, XLA_UNROLLED_MOST
from stepscope.trace.frames import conform
from stepscope.trace.trace import Trace

_OF_INSTRUCTION = {"scope": pl.String, "flops": pl.Int64, "bytes": pl.Int64, "shapes": pl.String}
WORK = {"event": pl.UInt32, "op": pl.String, **_OF_INSTRUCTION}
_WORK_KINDS = ("op", "kernel", "copy", "memset")
_EVENTS = {
    "event": pl.UInt32, "kind": pl.String, "name": pl.String, "start_ns": pl.Int64, "module": pl.String,
    "instruction": pl.String, "run": pl.UInt32, "device": pl.Int32,
}  # fmt: skip
UNKNOWN_OP = "custom-call"  # a library's kernel whose call is not known
_NUMBER = re.compile(r"(_\d+)+$")
_ENTERED = ("while", "call")
_MOVING = ("copy", "copy-start", "async-start", "dynamic-slice", "dynamic-update-slice")
_COPY = re.compile(r"memcpy\d*(_\w+)?$")  # as CUDA names copies inside a graph


def program_ops(trace: Trace) -> pl.DataFrame:
    """event, op, scope, flops, bytes, shapes of all work of compiled programs that the profile describes, or has the code of."""
    described = instruction_facts(trace).select(*WORK)
    modules = trace.modules.drop_nulls("hlo")
    rows = _program_work(trace, modules) if len(modules) else pl.DataFrame()
    if rows.is_empty():
        return described
    rows = rows.join(described, on="event", how="anti", maintain_order="left")
    found = [described]
    for (module, program), work in rows.group_by("module", "program", maintain_order=True):
        hlo = _code(modules, str(module), program)
        if hlo is not None:
            found.append(_of_program(Program(hlo, str(module)), work))
    return pl.concat(found)


def programs_that_ran(trace: Trace) -> list[tuple[str, int | None, bytes]]:
    """Name, device (None for the host) and code of each program that has work in the profile."""
    modules = trace.modules.drop_nulls("hlo")
    rows = _program_work(trace, modules) if len(modules) else pl.DataFrame()
    if rows.is_empty():
        return []
    ran = rows.select("module", "program", "device").unique(maintain_order=True)
    found = [
        (str(name), device, _code(modules, str(name), program)) for name, program, device in ran.iter_rows()
    ]
    return [(name, device, hlo) for name, device, hlo in found if hlo is not None]


def events_of_programs(trace: Trace) -> pl.DataFrame:
    """event, kind, name, start_ns, module, instruction, run, device of the device's work, as far as it names its program.

    What runs inside a graph names the graph as its instruction, and kernels their own names.
    """
    modules = trace.modules.drop_nulls("hlo")
    rows = _program_work(trace, modules) if len(modules) else pl.DataFrame()
    if rows.is_empty():
        return pl.DataFrame(schema=_EVENTS)
    return rows.filter(pl.col("device").is_not_null()).select(
        "event",
        pl.col("kind").cast(pl.String),
        pl.col("name").cast(pl.String),
        "start_ns",
        "module",
        "instruction",
        "run",
        "device",
    )


class Program:
    """A module that ran, asked for the work of its instructions by their names."""

    def __init__(self, hlo: bytes, name: str) -> None:
        self.module = read_module(hlo)
        self.name = name
        self._worker = Worker(self.module)
        self._places = {
            name: number
            for number, body in self.module.bodies.items()
            for message in body
            if (name := name_of(message))
        }
        self._kernels = {as_kernel(name): name for name in self._places}
        self._known: dict[str, Work] = {}
        self._bodies: dict[int, tuple[dict[int, Instruction], dict[str, Instruction]]] = {}

    def work(self, instruction: str) -> Work | None:
        """The work of the instruction of this name; None where there is none."""
        if instruction not in self._known:
            if instruction not in self._places:
                return None
            by_id, by_name = self._body(self._places[instruction])
            if instruction not in by_name:
                return None  # a damaged message has another name further on
            self._known[instruction] = self._worker.work(by_name[instruction], by_id)
        return self._known[instruction]

    def _body(self, computation: int) -> tuple[dict[int, Instruction], dict[str, Instruction]]:
        """The instructions of a computation by number and by name: large ones are asked for thousands of times."""
        if computation not in self._bodies:
            found = self.module.instructions(computation)
            self._bodies[computation] = ({one.id: one for one in found}, {one.name: one for one in found})
        return self._bodies[computation]

    @cached_property
    def _turns(self) -> dict[str, int]:
        """When each kernel first runs, those of loops included."""
        own = [i for i in self.module.in_order if i.opcode not in SILENT]
        names = [i.kernel_name for i in (*self._whole_run, *own)]
        return {name: turn for turn, name in enumerate(dict.fromkeys(names))}

    @cached_property
    def _whole_run(self) -> list[Instruction]:
        return unrolled(self.module, self.module.entry)

    @cached_property
    def _has_loops(self) -> bool:
        return any(i.opcode in _ENTERED for i in self.module.in_order)

    def kernel_of(self, name: str, instruction: str | None) -> str:
        """The kernel as the program names it: after the instruction where the profile has it."""
        return as_kernel(instruction) if instruction in self._places else name

    def place(self, kernel: str) -> tuple[int, str]:
        """When a kernel of this name first runs in the program; those of libraries and other programs come last."""
        return self._turns.get(kernel, len(self._turns) + len(self._places)), kernel

    def of_run(self, kernels: Sequence[str]) -> list[str | None]:
        """For the kernels of one run, in order, the instructions they belong to."""
        found = aligned(kernels, self._whole_run, self._kernels)
        if found is None and self._has_loops:
            own = [i for i in self.module.in_order if i.opcode not in SILENT]
            found = aligned(kernels, own, self._kernels)
        if found is None:
            return [self._kernels.get(kernel) for kernel in kernels]
        # Kernels of loops and branches are not in the order of the program itself.
        return [name or self._kernels.get(kernel) for name, kernel in zip(found, kernels, strict=True)]


def unrolled(module: Module, computation: int, depth: int = 0) -> list[Instruction]:
    """What one run of the computation does, in order, with every turn of loops that say how many they take."""
    found: list[Instruction] = []
    for one in module.scheduled(computation) if depth <= XLA_CALL_DEPTH else ():
        if one.opcode in SILENT:
            continue
        inner = _entered(module, one, depth)
        turns = (known_trips(one) or 0) if one.opcode == "while" else 1
        if inner and 0 < turns * len(inner) <= XLA_UNROLLED_MOST - len(found):
            found += inner * turns
        else:
            found.append(one)
    return found


def _entered(module: Module, one: Instruction, depth: int) -> list[Instruction]:
    """The work of one turn of a loop, or of a call; none of anything else."""
    if one.opcode not in _ENTERED or not one.called:
        return []
    body = body_of(module, one) if one.opcode == "while" else one.called[0]
    return unrolled(module, body, depth + 1) if body is not None else []


def aligned(
    kernels: Sequence[str], instructions: Sequence[Instruction], named: Container[str] = ()
) -> list[str | None] | None:
    """The instruction of each kernel, by order; None where the kernels do not follow the program's order.

    Among kernels that are `named` after instructions of loops or branches, the call of a library's kernel is unknown.
    """
    made = {i.kernel_name for i in instructions if i.opcode != "custom-call"}
    bases = [_NUMBER.sub("", i.kernel_name) if i.opcode != "custom-call" else "" for i in instructions]
    found: list[str | None] = [None] * len(kernels)
    next_instruction, first_between = 0, 0
    for place, kernel in enumerate(kernels):
        if kernel not in made:
            continue
        base = _NUMBER.sub("", kernel)
        try:
            at = bases.index(base, next_instruction)
        except ValueError:
            return None
        between = kernels[first_between:place]
        if not any(one in named for one in between):
            _give_calls(found, between, first_between, instructions[next_instruction:at])
        found[place] = instructions[at].name
        next_instruction, first_between = at + 1, place + 1
    between = kernels[first_between:]
    if not any(one in named for one in between):
        _give_calls(found, between, first_between, instructions[next_instruction:])
    return found


def _give_calls(
    found: list[str | None], kernels: Sequence[str], start: int, between: Sequence[Instruction]
) -> None:
    """Library kernels between two known ones: one for each call, or all for the only one.

    Attention takes several kernels, which follow each other and have names of their own. Copies are of what only moves data.
    """
    calls = [i for i in between if i.opcode == "custom-call"]
    moving = [i for i in between if i.opcode in _MOVING]
    copies = [at for at, kernel in enumerate(kernels) if moving and _COPY.match(kernel)]
    if copies:
        if len(copies) == len(moving):
            for at, one in zip(copies, moving, strict=True):
                found[start + at] = one.name
        _give_others(found, [at for at in range(len(kernels)) if at not in copies], kernels, start, calls)
        return
    if len(calls) == 1:
        found[start : start + len(kernels)] = [calls[0].name] * len(kernels)
        return
    units = [list(group) for _, group in groupby(range(len(kernels)), partial(_unit, kernels))]
    fits = len(units) == len(calls) and all(
        _is_attention(kernels[unit[0]]) == ("fmha" in call.target) or len(kernels) == len(calls)
        for unit, call in zip(units, calls, strict=False)
    )
    if fits:
        for unit, call in zip(units, calls, strict=True):
            found[start + unit[0] : start + unit[-1] + 1] = [call.name] * len(unit)


def _give_others(
    found: list[str | None],
    places: Sequence[int],
    kernels: Sequence[str],
    start: int,
    calls: Sequence[Instruction],
) -> None:
    """The library kernels among copies, as if these were not there."""
    given: list[str | None] = [None] * len(places)
    _give_calls(given, [kernels[at] for at in places], 0, calls)
    for at, name in zip(places, given, strict=True):
        found[start + at] = name


def _is_attention(kernel: str) -> bool:
    return "sdpa" in kernel or "cudnn::fusion" in kernel or "fmha" in kernel


def _unit(kernels: Sequence[str], place: int) -> int:
    """What a kernel has in common with its neighbours: kernels of attention go together, every other is alone."""
    return -1 if _is_attention(kernels[place]) else place


def _program_work(trace: Trace, modules: pl.DataFrame) -> pl.DataFrame:
    """event, kind, name, instruction, module, program, run, start_ns of the work that names a module as its own."""
    names = modules["name"].unique()
    scopes = trace.ops["scope"].unique().drop_nulls().cast(pl.String)
    split = pl.col("text").str.split("/")
    known = pl.DataFrame({"text": scopes}).with_columns(
        module=split.list.first(), instruction=split.list.last()
    )
    known = known.filter(pl.col("module").is_in(names.implode()))
    if known.is_empty():
        return pl.DataFrame()
    ops = trace.ops.select("event", text=pl.col("scope").cast(pl.String)).join(
        known, on="text", maintain_order="left"
    )
    events = trace.events
    rows = ops.with_columns(
        events[name].gather(ops["event"]).alias(name) for name in ("kind", "name", "start_ns", "track")
    ).filter(pl.col("kind").is_in(_WORK_KINDS))
    rows = rows.with_columns(program=_programs(trace, modules, rows))
    return _with_runs(trace, rows)


def _programs(trace: Trace, modules: pl.DataFrame, rows: pl.DataFrame) -> pl.Series:
    """The number of the program, where modules of one name have to be told apart."""
    none = pl.repeat(None, len(rows), dtype=pl.Int64, eager=True)
    ran = modules.filter(pl.col("name").is_in(rows["module"].unique().implode()))
    if not ran["name"].is_duplicated().any() or "stats_int" not in trace.cold:
        return none
    numbers = trace.cold["stats_int"].filter(pl.col("key").cast(pl.String) == "program_id")
    told = numbers.select("event", program="value").unique("event", keep="first")
    return rows.select("event").join(told, on="event", how="left", maintain_order="left")["program"]


def _with_runs(trace: Trace, rows: pl.DataFrame) -> pl.DataFrame:
    """The run of the program that each piece of work began in."""
    rows = rows.with_columns(device=trace.tracks["device"].gather(rows["track"])).sort("start_ns")
    whole = trace.events.filter(pl.col("kind") == "module")
    runs = whole.select(
        pl.col("name").cast(pl.String).alias("module"),
        "start_ns",
        run="id",
        device=trace.tracks["device"].gather(whole["track"]),
    ).sort("start_ns")
    return rows.join_asof(runs, on="start_ns", by=["module", "device"], check_sortedness=False)


def _code(modules: pl.DataFrame, name: str, program: object) -> bytes | None:
    mine = modules.filter(pl.col("name") == name)
    if program is not None:
        mine = mine.filter(pl.col("program_id") == program)
    return mine["hlo"][0] if len(mine) == 1 else None


def _of_program(program: Program, rows: pl.DataFrame) -> pl.DataFrame:
    known = with_instructions(program, rows)
    moved = rows.join(known, on="event", how="anti", maintain_order="left").select(
        "event", instruction=pl.lit(None, pl.String), op=pl.col("kind").cast(pl.String)
    )
    return _described(program, pl.concat([known.with_columns(op=pl.lit(UNKNOWN_OP)), moved]))


def with_instructions(program: Program, rows: pl.DataFrame) -> pl.DataFrame:
    """event, instruction of this work of the program, where the profile names it, and of kernels; null where none is known."""
    direct = {name: program.work(name) for name in rows["instruction"].unique()}
    is_direct = pl.col("instruction").is_in([name for name, work in direct.items() if work is not None])
    named = rows.filter(is_direct).select("event", "instruction")
    hidden = in_whole_runs(program, rows).filter(~is_direct & (pl.col("kind") == "kernel"))
    return pl.concat([named, _by_order(program, hidden)])


def _by_order(program: Program, rows: pl.DataFrame) -> pl.DataFrame:
    """event, instruction of kernels that only their place in a run tells."""
    kernels = rows.sort("run", "start_ns", "event", nulls_last=True)
    runs = kernels.group_by("run", maintain_order=True).agg(
        "event", pl.col("name").to_physical().alias("codes")
    )
    texts = dict(
        kernels.select(
            pl.col("name").to_physical().alias("code"), pl.col("name").cast(pl.String).alias("text")
        )
        .unique()
        .iter_rows()
    )
    # A program runs alike thousands of times: each order of kernels is aligned once.
    orders = runs.select(pl.col("codes").unique(maintain_order=True))["codes"]
    matched = [program.of_run([texts[code] for code in codes]) for codes in orders.to_list()]
    names = sorted({name for order in matched for name in order if name is not None})
    numbers = {name: number for number, name in enumerate(names)}
    known = [[None if name is None else numbers[name] for name in order] for order in matched]
    answers = pl.DataFrame({"codes": orders, "number": pl.Series(known, dtype=pl.List(pl.UInt32))})
    rows = runs.join(answers, on="codes", how="left", maintain_order="left").select("event", "number")
    rows = rows.explode("event", "number")
    return rows.select("event", instruction=pl.Series(names, dtype=pl.String).gather(rows["number"]))


def in_whole_runs(program: Program, rows: pl.DataFrame) -> pl.DataFrame:
    """The profiler cuts a run where the host begins a step: what does not begin as the program does goes on with the run before."""
    starts = pl.col("start_ns").min()
    heads = (
        rows.drop_nulls("run")
        .filter(pl.col("kind") == "kernel")
        .group_by("device", "run")
        .agg(pl.col("name", "instruction").sort_by("start_ns", "event").first().cast(pl.String), starts)
        .sort("device", "start_ns")
    )
    # A library's kernel outside of a graph is known by its instruction alone.
    named = [program.kernel_of(*row) for row in heads.select("name", "instruction").iter_rows()]
    heads = heads.with_columns(name=pl.Series(named, dtype=pl.String))
    first = min(heads["name"].drop_nulls().unique(), key=program.place, default="")
    turn = (pl.col("name") == first).cum_sum().over("device")
    whole = heads.with_columns(turn=turn).select("run", whole=pl.col("run").first().over("device", "turn"))
    return (
        rows.join(whole, on="run", how="left", maintain_order="left").with_columns(run="whole").drop("whole")
    )


def _described(program: Program, rows: pl.DataFrame) -> pl.DataFrame:
    """With the op, scope, FLOPs and bytes of the instruction; without one, `op` stays, somewhere in the program."""
    table = []
    for name in rows["instruction"].unique().drop_nulls():
        work = program.work(name)
        if work is not None:
            table.append((name, work.op, work.scope or program.name, work.flops, work.bytes, work.shapes))
    schema = {"instruction": pl.String, "told": pl.String, **_OF_INSTRUCTION}
    described = rows.join(
        pl.DataFrame(table, schema=schema, orient="row"), on="instruction", how="left", maintain_order="left"
    )
    work_of = described.select(
        "event",
        pl.coalesce("told", "op").alias("op"),
        pl.col("scope").fill_null(program.name),
        "flops",
        "bytes",
        "shapes",
    )
    return conform(work_of, WORK)
