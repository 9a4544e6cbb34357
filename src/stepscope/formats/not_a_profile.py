"""Files that are not profiles: what they are instead, where that is known, and what to do with them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stepscope.formats.source import Source

if TYPE_CHECKING:
    from stepscope.formats.chrome.scan.columns import JsonEvents

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (b"SQLite format 3", "an SQLite database that no export of Nsight Systems has written"),
    (b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "an old Office document, such as an Excel sheet"),
    (b"\x93NUMPY", "a NumPy array"),
    (b"\x89HDF", "an HDF5 file"),
    (b"\x89PNG", "a picture"),
    (b"%PDF", "a PDF document"),
    (b"PAR1", "a Parquet file"),
    (b"ARROW1", "an Arrow file"),
    (b"\x28\xb5\x2f\xfd", "packed with Zstandard; unpack it first: zstd -d"),
    (b"\xfd7zXZ", "packed with xz; unpack it first: xz -d"),
    (b"BZh", "packed with bzip2; unpack it first: bzip2 -d"),
    (b"\x7fELF", "a program"),
    (b"<!DOCTYPE html", "a web page"),
    (b"<html", "a web page"),
)
_ZIPPED: tuple[tuple[bytes, str], ...] = (
    (b"xl/", "an Excel sheet"),
    (b"[Content_Types].xml", "an Office document, such as an Excel sheet"),
    (b"data.pkl", "a PyTorch checkpoint"),
    (b".npy", "a NumPy .npz archive"),
)
_PICKLES = (b"\x80\x02", b"\x80\x03", b"\x80\x04", b"\x80\x05")
_OF_TRACES = ("deviceProperties", "schemaVersion", "displayTimeUnit", "traceName", "baseTimeNanoseconds")


def suggest_export(name: str, path: str) -> str | None:
    """The command that makes a readable file of a report, where there is one."""
    if not name.lower().endswith((".nsys-rep", ".qdrep")):
        return None
    import shlex

    target = f"{path.rsplit('.', 1)[0]}.sqlite"
    command = ["nsys", "export", "--type", "sqlite", "--output", target, path]
    return f"Export it: {shlex.join(command)}"


def describe(source: Source, head: bytes) -> str:
    """What a file that no reader wants seems to be."""
    if head and suggest_export(source.name, source.path):
        return "it is a report of Nsight Systems, which only nsys itself reads"
    if not head and source.size() > 0:
        probe = Source(source.path, source.filesystem)
        next(probe.pieces(), None)
        return "its gzip stream is cut or damaged before the first byte" if len(probe.problems) else _EMPTY
    return describe_bytes(head)


_EMPTY = "it is empty: the profiler wrote nothing, or the job ended before it could"


def describe_bytes(head: bytes) -> str:
    """What a file that begins with these bytes seems to be."""
    if not head:
        return _EMPTY
    if not head.strip(b"\0"):
        return "it holds only zero bytes: the disk was full, or a copy broke off"
    if head.startswith(b"PK\x03\x04"):
        inside = next((what for name, what in _ZIPPED if name in head), "a zip archive")
        return (
            f"it is {inside}; unpack it first if it holds a profile" if "zip" in inside else f"it is {inside}"
        )
    if head.startswith(_PICKLES):
        return "it is a Python pickle, which is never opened here: pickles can run code"
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return f"it is {what}"
    if b"\0" in head[:1024]:
        return "it is binary, and of no format that is known here"
    return "it is JSON, but a single value" if _is_json(head) else "it is text, but not JSON"


def _is_json(text: bytes) -> bool:
    import json

    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def describe_json(found: JsonEvents) -> str:
    """What a JSON document without events seems to be."""
    header = found.header
    problems = {problem.code: problem for problem in found.problems.all()}
    if "nodes" in header and ("schema" in header or "pid" in header):
        return "it is a PyTorch execution trace, which has no times; put it beside a profile of the same process by torch.profiler"
    if "segments" in header and "device_traces" in header:
        return "it is a CUDA memory snapshot as JSON; stepscope reads the pickle that torch.cuda.memory._dump_snapshot writes"
    if "speedscope" in str(header.get("$schema", "")):
        return "it is a speedscope profile"
    if "nbformat" in header:
        return "it is a Jupyter notebook"
    if "traceEvents" in header:
        return "its `traceEvents` are not a list"
    if problems.keys() & {"bad-events", "no-phase", "untimed-events", "time-out-of-range"}:
        return "what its list holds are not events"
    for code in ("gzip-bomb", "damaged-gzip"):
        if code in problems:
            return f"{problems[code].title.lower()}. {problems[code].detail.rstrip('.')}"
    if "truncated" in problems:
        return f"it is cut short before the first one. {problems['truncated'].detail.split(';')[0]}"
    if not header or any(key in header for key in _OF_TRACES):
        return "its list of events is empty"
    shown = ", ".join(repr(key) for key in list(header)[:6])
    return f"its members are {shown}"
