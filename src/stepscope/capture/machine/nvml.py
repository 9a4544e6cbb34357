"""Utilisation, memory, power, clocks and temperature of NVIDIA GPUs, asked from the driver's own library."""

from __future__ import annotations

import ctypes
import os
from typing import Any

_LIBRARIES = ("libnvidia-ml.so.1", "libnvidia-ml.so")
_SM_CLOCK, _MEMORY_CLOCK, _CORE_SENSOR = 1, 2, 0


class _Utilisation(ctypes.Structure):
    _fields_ = [("gpu", ctypes.c_uint), ("memory", ctypes.c_uint)]


class _Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Nvml:
    """The GPUs of this machine that the process may see. Raises OSError where there is no driver."""

    def __init__(self) -> None:
        self._library = _load()
        if self._library.nvmlInit_v2() != 0:
            raise OSError("NVML cannot be initialised")
        self._handles = [(index, self._handle(index)) for index in self._visible()]

    def sample(self) -> list[dict[str, Any]]:
        """One row per GPU; what the driver does not report is left out."""
        return [{"index": index, **self._figures(handle)} for index, handle in self._handles]

    def used_bytes(self) -> int | None:
        """Memory in use on all of them; None where the driver does not report it."""
        rows = [self._memory(handle) for _, handle in self._handles]
        known = [int(row.used) for row in rows if row is not None]
        return sum(known) if known else None

    def facts(self) -> list[dict[str, Any]]:
        """What does not change: name, memory and power limit."""
        rows = []
        for index, handle in self._handles:
            name = ctypes.create_string_buffer(96)
            self._library.nvmlDeviceGetName(handle, name, 96)
            limit = self._number("nvmlDeviceGetEnforcedPowerLimit", handle)
            row = {"index": index, "name": name.value.decode(errors="replace")}
            rows.append(row | ({} if limit is None else {"power_limit_watts": limit / 1000}))
        return rows

    def _figures(self, handle: Any) -> dict[str, Any]:
        use, memory = _Utilisation(), self._memory(handle)
        row: dict[str, Any] = {}
        if self._library.nvmlDeviceGetUtilizationRates(handle, ctypes.byref(use)) == 0:
            row |= {"utilisation_percent": use.gpu, "memory_utilisation_percent": use.memory}
        if memory is not None:
            row |= {"memory_used_bytes": memory.used, "memory_total_bytes": memory.total}
        power = self._number("nvmlDeviceGetPowerUsage", handle)
        row |= {} if power is None else {"power_watts": power / 1000}
        for name, which in (("sm_clock_mhz", _SM_CLOCK), ("memory_clock_mhz", _MEMORY_CLOCK)):
            clock = self._number("nvmlDeviceGetClockInfo", handle, which)
            row |= {} if clock is None else {name: clock}
        heat = self._number("nvmlDeviceGetTemperature", handle, _CORE_SENSOR)
        return row | ({} if heat is None else {"temperature_celsius": heat})

    def _memory(self, handle: Any) -> _Memory | None:
        memory = _Memory()
        failed = self._library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory))
        return None if failed else memory

    def _number(self, function: str, handle: Any, *which: int) -> int | None:
        value = ctypes.c_uint()
        failed = getattr(self._library, function)(handle, *which, ctypes.byref(value))
        return None if failed else int(value.value)

    def _handle(self, index: int) -> Any:
        handle = ctypes.c_void_p()
        if self._library.nvmlDeviceGetHandleByIndex_v2(index, ctypes.byref(handle)) != 0:
            raise OSError(f"NVML does not know GPU {index}")
        return handle

    def _visible(self) -> list[int]:
        count = ctypes.c_uint()
        self._library.nvmlDeviceGetCount_v2(ctypes.byref(count))
        every = list(range(count.value))
        named = os.environ.get("CUDA_VISIBLE_DEVICES")
        chosen = [int(part) for part in (named or "").split(",") if part.strip().isdigit()]
        return [index for index in chosen if index in every] or ([] if named == "" else every)


# Of this process: what a forked child inherits belongs to its parent.
_shared: tuple[int, Nvml] | None = None


def shared() -> Nvml:
    """The same for the whole process, since finding the GPUs takes milliseconds. Raises OSError where there is no driver."""
    global _shared
    pid = os.getpid()
    if _shared is None or _shared[0] != pid:
        _shared = (pid, Nvml())
    return _shared[1]


def _load() -> Any:
    for name in _LIBRARIES:
        try:
            return ctypes.CDLL(name)
        except OSError:
            continue
    raise OSError("NVML is not installed")
