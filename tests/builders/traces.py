"""A small trace written by hand, with a row in every table, for tests of what stands above the readers."""

from __future__ import annotations

from dataclasses import dataclass, field

import polars as pl

from stepscope.trace.draft import Draft
from stepscope.trace.finish import finish
from stepscope.trace.problems import Problem, Problems
from stepscope.trace.trace import Trace, TraceInfo

# The draft's rows: name, kind, category, track, start, duration (ns). Two of the kernels overlap on their stream.
EVENTS = [
    ("ProfilerStep#3", "annotation", "user_annotation", 0, 1_000, 10_000),
    ("aten::mm", "op", "cpu_op", 0, 1_500, 2_001),
    ("cudaLaunchKernel", "runtime", "cuda_runtime", 0, 1_700, 300),
    ("ProfilerStep#4", "annotation", "user_annotation", 0, 11_000, 20_000),
    ("aten::add", "op", "cpu_op", 0, 12_000, 1_000),
    ("cudaLaunchKernel", "runtime", "cuda_runtime", 0, 12_100, 400),
    ("[memory]", "memory", "cpu_instant_event", 0, 12_150, 0),
    ("gemm <b>bold</b> [red]x[/red] \x1b[31m", "kernel", "kernel", 1, 4_000, 6_003),
    ("ncclDevKernel_AllReduce", "kernel", "kernel", 1, 8_000, 7_000),
    ("Memcpy HtoD (Pageable -> Device)", "copy", "gpu_memcpy", 1, 20_000, 500),
    ('say "é"\\\n', "span", "other", 2, 5_000, 100),
]
TRACKS = [
    {"id": 0, "process": "python", "thread": "thread 1 (main)", "device_kind": "cpu", "what": "host", "pid": "77", "tid": "77"},
    {"id": 1, "process": "GPU 0", "thread": "stream 7", "stream": 7, "device": 0, "device_kind": "gpu", "what": "device", "pid": "0", "tid": "7"},
    {"id": 2, "process": "python", "thread": "thread 2", "device_kind": "cpu", "what": "host", "pid": "77", "tid": "78"},
    {"id": 3, "process": "GPU 0", "thread": "power", "device": 0, "device_kind": "gpu", "what": "counter", "pid": "0", "tid": ""},
]  # fmt: skip


def draft(rank: int | None = 0) -> Draft:
    """The trace before it is finished."""
    names = ["name", "kind", "source_category", "track", "start_ns", "dur_ns"]
    problems = Problems()
    problems.add(
        Problem("cut", "The file is cut", "It ends after {count} bytes.", "Copy it again.", "error", 123)
    )
    problems.add(Problem("odd", "Something odd", "It is odd.", severity="info"))
    return Draft(
        info=TraceInfo(
            path="/somewhere/rank0.pt.trace.json",
            format="kineto",
            framework="pytorch",
            rank=rank,
            world_size=2,
            host="node1",
            base_unix_ns=1_700_000_000_000_000_000,
            devices=[{"id": 0, "name": "NVIDIA H200", "kind": "gpu"}],
            versions={"cuda_runtime": 13000},
            capture_options={"with_stack": True, "record_shapes": False},
        ),
        events=pl.DataFrame(EVENTS, schema=names, orient="row").with_columns(
            pl.col("track").cast(pl.UInt32), pl.col("start_ns", "dur_ns").cast(pl.Int64)
        ),
        tracks=pl.DataFrame(TRACKS),
        links=pl.DataFrame({"from": [2, 5], "to": [7, 8], "why": ["launch", "launch"]}),
        ops=pl.DataFrame({"event": [1, 4], "shapes": ["[[2, 3], [3, 4]]", None], "sequence": [12, None]}),
        kernels=pl.DataFrame(
            {
                "event": [7, 8],
                "grid": [[132, 1, 1], None],
                "block": [[256, 1, 1], [32, 2, 1]],
                "occupancy": [37.5, 0.1],
                "blocks_per_sm": [float("inf"), 1.25],
                "graph_node": [2**63 + 5, None],
            }
        ),
        copies=pl.DataFrame({"event": [9], "bytes": [4096], "direction": ["HtoD"]}),
        memory=pl.DataFrame({"event": [6], "time_ns": [12_150], "bytes": [-512], "address": [2**63 + 11]}),
        collectives=pl.DataFrame(
            {"event": [8], "name": ["allreduce"], "bytes": [1 << 40], "group": ["default"]}
        ),
        counters=pl.DataFrame({"track": [3, 3], "time_ns": [1_000, 2_001], "value": [0.1, 300.25]}),
        modules=pl.DataFrame({"name": ["jit_step"], "program_id": [5], "hlo": [b"\x00\xffhlo"]}),
        cold={
            "rest": pl.DataFrame(
                {"event": [1, 7], "json": [b'{"Ev Idx":3,"list":[1,null]}', b'{"bare":NaN}']}
            ),
            "texts": pl.DataFrame(
                {"event": [3, 3], "key": ['hlo "op"', "stepscope"], "value": ["copy.1\n", "mine"]}
            ),
            "stacks": pl.DataFrame({"event": [1], "cbid": [211], "Call stack": ['a.py(1): f\n"x"']}),
        },
        problems=problems,
    )


def trace(rank: int | None = 0) -> Trace:
    """The trace as a reader would hand it over."""
    return finish(draft(rank))


@dataclass
class HandmadeProfile:
    """As much of a Profile as the commands need."""

    traces: list[Trace] = field(default_factory=lambda: [trace()])

    def table(self, name: str) -> pl.DataFrame:
        """The table, with the rank first where there are several."""
        if len(self.traces) == 1:
            return self.traces[0].tables[name]
        parts = [
            each.tables[name].drop("rank", strict=False).with_columns(rank=pl.lit(each.info.rank, pl.Int32))
            for each in self.traces
        ]
        return pl.concat(parts).select("rank", pl.exclude("rank"))
