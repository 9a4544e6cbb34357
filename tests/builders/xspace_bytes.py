"""Writes small XSpace messages for tests, field by field, without any protobuf library."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.builders.protobuf import double, number, packed


@dataclass
class Ref:
    """A string stat that is stored as a reference to a stat's name."""

    text: str


@dataclass
class Unsigned:
    """An integer stat that is stored as uint64."""

    value: int


@dataclass
class PlaneBytes:
    """Builds one plane; names get ids as they are met."""

    name: str
    event_ids: dict[tuple[str, str], int] = field(default_factory=dict)
    stat_ids: dict[str, int] = field(default_factory=dict)
    lines: list[bytes] = field(default_factory=list)
    stats: list[bytes] = field(default_factory=list)
    name_stats: dict[int, dict[str, Any]] = field(default_factory=dict)

    def stat(self, name: str, value: Any) -> bytes:
        """An XStat."""
        ident = number(1, self.stat_ids.setdefault(name, len(self.stat_ids) + 1))
        if isinstance(value, Ref):
            return ident + number(7, self.stat_ids.setdefault(value.text, len(self.stat_ids) + 1))
        if isinstance(value, Unsigned):
            return ident + number(3, value.value)
        if isinstance(value, float):
            return ident + double(2, value)
        if isinstance(value, int):
            return ident + number(4, value)
        return ident + packed(5 if isinstance(value, str) else 6, value)

    def event(self, name: str, offset_ps: int | None = 0, dur_ps: int = 0, display: str = "", times: int | None = None,
              **stats: Any) -> bytes:  # fmt: skip
        """An XEvent."""
        ident = self.event_ids.setdefault((name, display), len(self.event_ids) + 1)
        out = number(1, ident)
        out += number(2, offset_ps) if offset_ps is not None and times is None else b""
        out += number(5, times) if times is not None else b""
        return (
            out
            + number(3, dur_ps)
            + b"".join(packed(4, self.stat(key, value)) for key, value in stats.items())
        )

    def line(
        self, name: str, events: Iterable[bytes], ident: int = 1, time_ns: int = 0, display: str = ""
    ) -> None:
        """Add an XLine."""
        out = number(1, ident) + packed(2, name) + number(3, time_ns)
        out += packed(11, display) if display else b""
        self.lines.append(out + b"".join(packed(4, event) for event in events))

    def fact(self, name: str, value: Any) -> None:
        """Add a stat of the plane itself."""
        self.stats.append(self.stat(name, value))

    def describe(self, name: str, display: str = "", **stats: Any) -> int:
        """Give stats to an event name."""
        ident = self.event_ids.setdefault((name, display), len(self.event_ids) + 1)
        self.name_stats[ident] = stats
        return ident

    def bytes(self) -> bytes:
        """The XPlane."""
        out = number(1, 1) + packed(2, self.name) + b"".join(packed(3, line) for line in self.lines)
        for (name, display), ident in self.event_ids.items():
            value = number(1, ident) + packed(2, name) + (packed(4, display) if display else b"")
            value += b"".join(packed(5, self.stat(k, v)) for k, v in self.name_stats.get(ident, {}).items())
            out += packed(4, number(1, ident) + packed(2, value))
        for name, ident in self.stat_ids.items():
            out += packed(5, number(1, ident) + packed(2, number(1, ident) + packed(2, name)))
        return out + b"".join(packed(6, stat) for stat in self.stats)


def space(
    *planes: PlaneBytes, errors: Iterable[str] = (), warnings: Iterable[str] = (), hosts: Iterable[str] = ()
) -> bytes:
    """The XSpace."""
    out = b"".join(packed(1, plane.bytes()) for plane in planes)
    for field_number, texts in ((2, errors), (3, warnings), (4, hosts)):
        out += b"".join(packed(field_number, text) for text in texts)
    return out


def gpu_job() -> tuple[PlaneBytes, PlaneBytes]:
    """Two steps on the host, each of which runs one program twice on a GPU."""
    host, gpu = PlaneBytes("/host:CPU"), PlaneBytes("/device:GPU:0")
    gpu.fact("gpu_device_name", "NVIDIA H200")
    calls, work = [], []
    for step in range(2):
        at = step * 100_000
        calls.append(host.event("train", at, 90_000, step_num=step, _r=1))
        for run in range(2):
            launch = at + 10_000 + run * 20_000
            calls.append(host.event("[0] GpuExecutable::ExecuteThunks", launch - 1_000, 15_000))
            for op in range(2):
                ident = step * 10 + run * 4 + op
                stats: dict[str, Any] = {"correlation_id": ident, "device_id": 0}
                calls.append(host.event("cuLaunchKernel", launch + op * 1_000, 500, **stats))
                work.append(
                    gpu.event(f"k{op}", launch + 5_000 + op * 2_000, 1_000, correlation_id=ident, hlo_module="jit_f",
                              hlo_op=f"fusion.{op}", tf_op="jit(f)/layer/dot:Dot" if op else "jit(f)/norm:Mul")
                )  # fmt: skip
    host.line("python", calls)
    gpu.line("Stream #7(Compute)", work, 7)
    return host, gpu
