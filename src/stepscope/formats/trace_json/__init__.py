"""Trace JSON: Kineto's and anybody's Chrome traces, which one reader reads."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.formats.reader import Format, Progress
from stepscope.formats.source import Source

if TYPE_CHECKING:
    from stepscope.trace.draft import Draft

_KINETO_KEYS = (b'"deviceProperties"', b'"schemaVersion"', b'"distributedInfo"', b'"baseTimeNanoseconds"')


def _is_json(head: bytes, name: str = "") -> bool:
    return head.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] in (b"{", b"[")


def _is_kineto(head: bytes, name: str) -> bool:
    return _is_json(head) and any(key in head for key in _KINETO_KEYS)


def _has_events(head: bytes) -> bool:
    if not _is_json(head):
        return False
    is_event = b'"ph"' in head and (b'"ts"' in head or b'"name"' in head)
    return is_event or b'"traceEvents"' in head or b'"displayTimeUnit"' in head


def _read(source: Source, progress: Progress) -> Draft:
    from stepscope.formats.trace_json.read import read

    return read(source, progress)


FORMATS = (
    Format(
        name="kineto",
        summary="PyTorch (*.pt.trace.json[.gz])",
        matches=_is_kineto,
        read=_read,
        suffixes=(".pt.trace.json",),
        turn=40,
        written_by="`torch.profiler`, Kineto on demand",
        versions="schema 1: integer-µs files of PyTorch 1.8 (legacy categories `Operator`, `Kernel`, …) to ns files of 2.11; "
        "CUDA and ROCm in full, XPU and MTIA without loss",
        verified="counts and sums equal `json.load`, file by file, over recordings from V100, A100, H200, MI250 and CPU",
    ),
    Format(
        name="chrome",
        summary="Chrome trace JSON",
        matches=_is_json,
        read=_read,
        suffixes=(".trace.json", ".chrome_trace", ".chrome_trace.json"),
        is_inside=_has_events,
        turn=90,  # last: any JSON may be one
        written_by="JAX's `trace.json.gz`, TensorFlow timelines, VizTracer, any Chrome trace",
        versions="JSON object or bare array; phases X, B/E, i, C, b/n/e (async), s/t/f (flows), M",
        verified="counts and sums equal `json.load`",
    ),
)
