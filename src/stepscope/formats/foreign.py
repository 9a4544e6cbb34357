"""Files that are no profile: what they are instead, where that can be told, and what to do with them."""

from __future__ import annotations

from stepscope.formats.json_events import JsonEvents

_MAGIC: tuple[tuple[bytes, str], ...] = (
    (
        b"PK\x03\x04",
        "a zip archive (an Excel file, a NumPy .npz or a PyTorch checkpoint); unpack it first if it holds a profile",
    ),
    (
        b"\x80\x02",
        "a Python pickle (perhaps a CUDA memory snapshot); it is never unpickled here. Open it with PyTorch's memory_viz",
    ),
    (
        b"\x80\x03",
        "a Python pickle (perhaps a CUDA memory snapshot); it is never unpickled here. Open it with PyTorch's memory_viz",
    ),
    (
        b"\x80\x04",
        "a Python pickle (perhaps a CUDA memory snapshot); it is never unpickled here. Open it with PyTorch's memory_viz",
    ),
    (
        b"\x80\x05",
        "a Python pickle (perhaps a CUDA memory snapshot); it is never unpickled here. Open it with PyTorch's memory_viz",
    ),
    (b"SQLite format 3", "an SQLite database (an Nsight Systems export?); export it from there as JSON"),
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
    (b"NVTX", "an Nsight file"),
)


def describe_bytes(head: bytes) -> str:
    """What a file that no reader wants seems to be."""
    if not head:
        return "it is empty: the profiler wrote nothing, or the job ended before it could"
    if not head.strip(b"\0"):
        return "it holds only zero bytes: the disk was full, or a copy broke off"
    for magic, what in _MAGIC:
        if head.startswith(magic):
            return f"it is {what}"
    if b"\0" not in head[:1024]:
        return "it is text, but not JSON"
    return "it is binary, and of no format that is known here"


def describe_json(found: JsonEvents) -> str:
    """What a JSON document without events seems to be."""
    header = found.header
    if "nodes" in header and ("schema" in header or "pid" in header):
        return "it is a PyTorch execution trace (ExecutionTraceObserver); record a profile with torch.profiler for times"
    if "segments" in header and "device_traces" in header:
        return "it is a CUDA memory snapshot; open it with PyTorch's memory_viz"
    if "$schema" in header and "speedscope" in str(header["$schema"]):
        return "it is a speedscope profile"
    if "nbformat" in header:
        return "it is a Jupyter notebook"
    if "traceEvents" in header or not header:
        return "its list of events is empty"
    shown = ", ".join(repr(key) for key in list(header)[:6])
    return f"its members are {shown}"
