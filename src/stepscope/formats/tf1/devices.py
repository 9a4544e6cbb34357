"""The devices of a RunMetadata: threads of the executor, streams of a GPU, and summaries that repeat the streams."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, Literal

from stepscope.trace.schema import DEVICE_KINDS

Part = Literal["executor", "stream", "summary", "sync"]
EventKind = Literal["op", "kernel", "copy", "memset", "sync"]

# `/device:GPU:0/stream:7`, `…/stream:7<MemcpyH2D>`, `…/stream:` for unknown ones; `/stream:all` and `/memcpy` repeat them.
_PART = re.compile(
    r"/(?:stream:(?P<stream>\d*)(?:<\w*>)?|(?P<summary>stream:all|memcpy(?::all)?)|(?P<sync>sync))$"
)
_KIND = re.compile(r"(?:^|[/:])(?P<kind>[A-Za-z_]+):(?P<number>\d{1,9})$")
_OP = re.compile(r" = ([^\s(]+)\(")
_KERNEL_DETAILS = re.compile(r"\s(?:regs|registers_per_thread|kind_src|size|shm):|@@")
_REGISTERS = re.compile(r"\sregs:")
_FIGURES = re.compile(r"\b(\w+):(\d[\d.,]{0,40})")
_COPY = re.compile(r"memcpy", re.IGNORECASE)
_FILL = re.compile(r"memset", re.IGNORECASE)
_DIRECTION = re.compile(r"memcpy\s?([HDP])(?:to|2)([HDP])", re.IGNORECASE)
_COPY_BYTES = re.compile(r"\bsize:(\d{1,18})\b|\b(\d{1,18}) bytes\b|^\[(\d{1,18})\]")
_COPY_ENDS = re.compile(r"kind_src:(\S+) kind_dst:(\S+)")


@dataclass(frozen=True)
class Device:
    """A device name of the file, taken apart. `placement` is the device itself, without stream or the like."""

    text: str
    placement: str
    kind: str
    number: int | None
    part: Part
    stream: int | None


def parse_device(text: str) -> Device:
    """What the name says; one that says nothing is an executor on a device of an unknown kind."""
    part = _PART.search(text)
    placement = text[: part.start()] if part else text
    found = _KIND.search(placement)
    kind = found["kind"].lower().removeprefix("xla_") if found else ""
    stream = part["stream"] if part else None
    return Device(
        text=text,
        placement=placement,
        kind=kind if kind in DEVICE_KINDS else "other",
        number=int(found["number"]) if found else None,
        part=_part(part),
        stream=int(stream) if stream and len(stream) < 19 else None,
    )


def _part(found: re.Match[str] | None) -> Part:
    if found is None:
        return "executor"
    return "sync" if found["sync"] else "summary" if found["summary"] else "stream"


def event_kind(device: Device, name: str, label: str) -> EventKind:
    """On a stream, copies and fills are distinguished from kernels by their names."""
    if device.part == "executor":
        return "op"
    if device.part == "sync":
        return "sync"
    told = f"{device.text[len(device.placement) :]} {name} {label}"
    if _REGISTERS.search(label):
        return "kernel"
    return "copy" if _COPY.search(told) else "memset" if _FILL.search(told) else "kernel"


def event_name(kind: EventKind, name: str, label: str) -> str:
    """The type of an op, the function of a kernel: labels read `node = Type(inputs)` or `kernel details`."""
    if kind == "op":
        found = _OP.search(label)
        return found[1] if found else name or label or "(unnamed)"
    if kind == "sync":
        return name or "(unnamed)"
    return _KERNEL_DETAILS.split(label, maxsplit=1)[0].strip() or name or "(unnamed)"


def kernel_details(label: str) -> dict[str, Any]:
    """The columns of the `kernels` table that the label gives: `regs:32 static_shared:0 grid:1,1,1 …`."""
    found = dict(_FIGURES.findall(label))
    shared = [_whole(found.get(name)) for name in ("static_shared", "dynamic_shared")]
    return {
        "registers": _whole(found.get("regs")),
        "shared_bytes": sum(part or 0 for part in shared) if shared != [None, None] else None,
        "grid": _extent(found.get("grid")),
        "block": _extent(found.get("block")),
        "occupancy": _decimal(found.get("occ_pct")),
    }


def _whole(text: str | None) -> int | None:
    return int(text) if text and text.isdecimal() and len(text) < 10 else None


def _decimal(text: str | None) -> float | None:
    return float(text) if text and re.fullmatch(r"\d+(\.\d+)?", text) else None


def _extent(text: str | None) -> list[int] | None:
    sizes = [_whole(part) for part in (text or "").split(",")]
    whole = [size for size in sizes if size is not None]
    return whole if len(sizes) == len(whole) == 3 else None


def copy_direction(name: str, label: str) -> str | None:
    """HtoD, DtoH, …"""
    found = _DIRECTION.search(f"{label} {name}")
    return f"{found[1].upper()}to{found[2].upper()}" if found else None


def copy_bytes(label: str) -> int | None:
    """The size, in any of the ways that versions wrote it."""
    found = _COPY_BYTES.search(label)
    return int(next(group for group in found.groups() if group)) if found else None


def copy_ends(label: str) -> tuple[str | None, str | None]:
    """The kinds of memory at both ends, where the label says them."""
    found = _COPY_ENDS.search(label)
    return (found[1], found[2]) if found else (None, None)


def allocator_device(allocator: str, device: Device) -> tuple[str, int | None]:
    """Whose memory an allocator gives: `GPU_0_bfc` that of a GPU, `gpu_host_bfc` and `cpu` that of the host."""
    found = re.match(r"(?i)gpu_(\d{1,9})_", allocator)
    if found:
        return "gpu", int(found[1])
    if re.search(r"(?i)cpu|host", allocator):
        return "cpu", 0
    return device.kind, device.number
