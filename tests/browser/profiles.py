"""A folder of real profiles of every format, and of a trace that means harm."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

BEGAN_US = 1_694_128_201_421_058  # older PyTorch counts from 1970: in ns, more than a double tells exactly
ROOT = Path(__file__).resolve().parents[2]
FIXTURES = ROOT / "tests" / "fixtures"
SAMPLE = ROOT / "src" / "stepscope" / "samples" / "tiny_gpt.pt.trace.json.gz"
CHROME = FIXTURES / "jax/plugins/profile/2026_11_15_02_05_58/vm.trace.json.gz"

# What would run, load or style something if it were taken as markup.
MARKUP = (
    "<img src=x onerror=\"window.hacked='img'\">",
    "<script>window.hacked='script'</script>",
    "<a href=\"javascript:window.hacked='link'\">aten::mm</a>",
    '"><svg onload="window.hacked=1">',
    "<b>bold</b>&lt;i&gt;%{x}",
)


def lay_out(folder: Path) -> Path:
    """All of them below one folder, each run in its own."""
    files = {
        "kineto_gpu/tiny_gpt.pt.trace.json.gz": SAMPLE,
        "before/slow.pt.trace.json.gz": FIXTURES / "diagnosis/torch_item.slow.pt.trace.json.gz",
        "after/mended.pt.trace.json.gz": FIXTURES / "diagnosis/torch_item.mended.pt.trace.json.gz",
        "chrome/job.trace.json.gz": CHROME,
        "vanishing/gone.pt.trace.json.gz": FIXTURES / "kineto/streams.pt.trace.json.gz",
    }
    for name, source in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, folder / name)
    for name, source in {
        "xplane_jax": FIXTURES / "jax",
        "xplane_tf": FIXTURES / "tensorflow",
        "tf1_events": FIXTURES / "tf_events",
        "two_ranks": FIXTURES / "capture_gpu/torch_ddp",
    }.items():
        shutil.copytree(source, folder / name)
    (folder / "broken").mkdir()
    (folder / "broken" / "broken.pt.trace.json.gz").write_bytes(b"\x1f\x8b\x08 this is no gzip at all")
    (folder / "hostile").mkdir()
    (folder / "hostile" / f"{MARKUP[4].split('&')[0].replace('/', '_')}.pt.trace.json.gz").write_bytes(
        gzip.compress(json.dumps(hostile(), allow_nan=False).encode())
    )
    return folder


def hostile() -> dict[str, Any]:
    """A profile of three steps in which every name is markup: of ops, kernels, modules, frames, threads, arguments and groups."""
    events = [
        *(_named("process_name", pid, 0, MARKUP[pid % 5]) for pid in (0, 10)),
        *(_named("thread_name", 10, thread, MARKUP[thread % 5]) for thread in (1, 2)),
    ]
    for step in range(3):
        begin = BEGAN_US + 1_000 * step
        events.append(_span(f"ProfilerStep#{step}", "user_annotation", begin, 900, 1))
        events += _around(begin, step)
        for number, name in enumerate(MARKUP):
            at = begin + 100 + 120 * number
            events += _op(name, at, 100 * step + number)
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": MARKUP[0], "totalGlobalMem": 1 << 34, "numSms": 4}],
        "distributedInfo": {"backend": MARKUP[1], "rank": 0, "world_size": 2},
        "traceEvents": events,
        MARKUP[0]: MARKUP[1],
    }


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
        _span(MARKUP[2], "user_annotation", begin + 5, 780, 1),
        _span(f"enumerate(DataLoader)#{MARKUP[0]}.__next__", "user_annotation", begin + 800, 80, 1),
        _span(f"nn.Module: {MARKUP[1]}_0", "python_function", begin + 10, 770, 1, **frames),
        _span(f"{MARKUP[2]}.py(12): {MARKUP[3]}", "python_function", begin + 20, 750, 1),
        _span(f"ncclDevKernel_AllReduce_Sum_f32 {MARKUP[3]}", "kernel", begin + 700, 60, 9, pid=0, device=0, stream=9, **told),
        {"ph": "C", "name": MARKUP[4], "pid": 10, "tid": 1, "ts": begin + 50, "args": {MARKUP[0]: step}},
    ]  # fmt: skip


def _op(name: str, at: int, place: int) -> list[dict[str, Any]]:
    """An op, its launch and its kernel, and what it allocates."""
    on_device = {"pid": 0, "device": 0, "stream": 7, "correlation": place}
    return [
        _span(name, "cpu_op", at, 90, 1, **external(place) | {name: name, "Module Hierarchy": name}),
        _span("cudaLaunchKernel", "cuda_runtime", at + 5, 20, 1, correlation=place),
        _span(f"{name} kernel", "kernel", at + 30, 40, 7, **on_device),
        _memory(at + 10, 4096 * (place % 100 + 1)),
    ]


def _named(what: str, pid: int, thread: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": thread, "args": {"name": name}}


def _span(
    name: str, category: str, start: int, duration: int, thread: int, *, pid: int = 10, **arguments: Any
) -> dict[str, Any]:
    return {
        "ph": "X", "name": name, "cat": category, "ts": start, "dur": duration,
        "pid": pid, "tid": thread, "args": arguments,
    }  # fmt: skip


def external(number: int) -> dict[str, Any]:
    """Arguments whose names no keyword can have."""
    return {"External id": number, "Input Dims": [[2, 3]]}


def _memory(at: int, size: int) -> dict[str, Any]:
    arguments = {
        "Addr": 4096 * at, "Bytes": size, "Device Id": 0, "Device Type": 1,
        "Total Allocated": size, "Total Reserved": 1 << 20,
    }  # fmt: skip
    return {"ph": "i", "name": "[memory]", "cat": "cpu_instant_event", "ts": at, "s": "t", "pid": 10, "tid": 1, "args": arguments}  # fmt: skip
