"""Profiles whose names mean harm: to a terminal, and to a page."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any

from tests.builders.documents import event, kineto_document, span

NAMES = [
    "\x1b[2J\x1b[31mred",
    "[bold red]markup[/] :smile:",
    "bell\x07",
    "c1\x9b31m",
    "\u202eright to left",
    "two\nlines\ttab",
    "=cmd|' /C calc'!A0",
    "+1+1",
    "-2+3",
    "@SUM(1+1)",
]
# What would run, load or style something if it were taken as markup.
MARKUP = (
    "<img src=x onerror=\"window.hacked='img'\">",
    "<script>window.hacked='script'</script>",
    "<a href=\"javascript:window.hacked='link'\">aten::mm</a>",
    '"><svg onload="window.hacked=1">',
    "<b>bold</b>&lt;i&gt;%{x}",
)
BEGAN_US = 1_694_128_201_421_058  # older PyTorch counts from 1970: in ns, more than a double tells exactly
on_host = partial(span, pid=10)


def write_hostile(folder: Path) -> Path:
    """A Kineto file with such names wherever a name can stand."""
    events = [event(f"cat {name}", name, 10 * i, 5, tid=i) for i, name in enumerate(NAMES)]
    document = kineto_document(*events, deviceProperties=[{"id": 0, "name": NAMES[0]}], host_name=NAMES[1])
    path = folder / "hostile \x1b[31m.pt.trace.json"
    path.write_text(json.dumps(document, ensure_ascii=False), "utf-8")
    return path


def hostile_document() -> dict[str, Any]:
    """A profile of three steps in which every name is markup: of ops, kernels, modules, frames, threads, arguments and groups."""
    events = [
        *(_named("process_name", pid, 0, MARKUP[pid % 5]) for pid in (0, 10)),
        *(_named("thread_name", 10, thread, MARKUP[thread % 5]) for thread in (1, 2)),
    ]
    for step in range(3):
        begin = BEGAN_US + 1_000 * step
        events.append(on_host("user_annotation", f"ProfilerStep#{step}", begin, 900, tid=1))
        events += _around(begin, step)
        for number, name in enumerate(MARKUP):
            at = begin + 100 + 120 * number
            events += _op(name, at, 100 * step + number)
    return kineto_document(
        *events,
        deviceProperties=[{"id": 0, "name": MARKUP[0], "totalGlobalMem": 1 << 34, "numSms": 4}],
        distributedInfo={"backend": MARKUP[1], "rank": 0, "world_size": 2},
        **{MARKUP[0]: MARKUP[1]},
    )


def _around(begin: int, step: int) -> list[dict[str, Any]]:
    """A phase, a loader, a module and a frame around the ops, a collective and a counter beside them."""
    frames: dict[str, Any] = {"Python id": 2 * step + 2, "Python parent id": 2 * step + 1}
    told: dict[str, Any] = {
        "Collective name": MARKUP[0],
        "Process Group Name": MARKUP[1],
        "dtype": MARKUP[2],
        "Group size": 2,
    }
    return [
        on_host("user_annotation", MARKUP[2], begin + 5, 780, tid=1),
        on_host("user_annotation", f"enumerate(DataLoader)#{MARKUP[0]}.__next__", begin + 800, 80, tid=1),
        on_host("python_function", f"nn.Module: {MARKUP[1]}_0", begin + 10, 770, tid=1, **frames),
        on_host("python_function", f"{MARKUP[2]}.py(12): {MARKUP[3]}", begin + 20, 750, tid=1),
        on_host("kernel", f"ncclDevKernel_AllReduce_Sum_f32 {MARKUP[3]}", begin + 700, 60, tid=9, pid=0, device=0, stream=9, **told),
        {"ph": "C", "name": MARKUP[4], "pid": 10, "tid": 1, "ts": begin + 50, "args": {MARKUP[0]: step}},
    ]  # fmt: skip


def _op(name: str, at: int, place: int) -> list[dict[str, Any]]:
    """An op, its launch and its kernel, and what it allocates."""
    on_device = {"pid": 0, "device": 0, "stream": 7, "correlation": place}
    return [
        on_host("cpu_op", name, at, 90, tid=1, **external(place) | {name: name, "Module Hierarchy": name}),
        on_host("cuda_runtime", "cudaLaunchKernel", at + 5, 20, tid=1, correlation=place),
        on_host("kernel", f"{name} kernel", at + 30, 40, tid=7, **on_device),
        _memory(at + 10, 4096 * (place % 100 + 1)),
    ]


def _named(what: str, pid: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": thread, "args": {"name": name}}


def external(number: int) -> dict[str, Any]:
    """Arguments whose names no keyword can have."""
    return {"External id": number, "Input Dims": [[2, 3]]}


def _memory(at: int, size: int) -> dict[str, Any]:
    arguments = {
        "Addr": 4096 * at, "Bytes": size, "Device Id": 0, "Device Type": 1,
        "Total Allocated": size, "Total Reserved": 1 << 20,
    }  # fmt: skip
    return {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "ts": at, "s": "t", "pid": 10, "tid": 1, "args": arguments}  # fmt: skip
