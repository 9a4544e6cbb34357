"""A folder of real profiles of every format, and of a trace that means harm."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

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
    """A profile of three steps in which every name is markup."""
    events: list[dict[str, Any]] = []
    for step in range(3):
        begin = 1_000 * step
        events.append(_span(f"ProfilerStep#{step}", "user_annotation", begin, 900, 1))
        for number, name in enumerate(MARKUP):
            at = begin + 100 + 120 * number
            place = 100 * step + number
            events.append(_span(name, "cpu_op", at, 90, 1, **external(place)))
            events.append(_span("cudaLaunchKernel", "cuda_runtime", at + 5, 20, 1, correlation=place))
            events.append(
                _span(
                    f"{name} kernel", "kernel", at + 30, 40, 7, pid=0, device=0, stream=7, correlation=place
                )
            )
            events.append(_memory(at + 10, 4096 * (number + 1)))
    return {
        "schemaVersion": 1,
        "deviceProperties": [{"id": 0, "name": MARKUP[0], "totalGlobalMem": 1 << 34, "numSms": 4}],
        "distributedInfo": {"backend": MARKUP[1], "rank": 0, "world_size": 1},
        "traceEvents": events,
    }


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
