"""What a device can do at best: dense operations per second by number format, and bytes per second of its memory.

The figures are those of the register of devices. A device that is not listed there has no peak, unless the profile gives it.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import Any

from stepscope.analysis.kernels.measured_peaks import MeasuredDevice, measured
from stepscope.lazy import dataclass, pattern
from stepscope.registers.calibration.caches import CACHES, PCIE_GB_PER_S
from stepscope.registers.calibration.devices import DEVICES, GIB, GIGA, MIB, TERA, DeviceEntry

# Where a device has no units for a format, it computes in the next wider one.
_WIDER = {"fp4": "fp8", "fp8": "bf16", "int4": "int8"}
_SIXTEEN_BITS = ("bf16", "fp16")


@dataclass(frozen=True)
class Peaks:
    """Dense peak rates of one device, as it appears to a program (a half of an MI250X is one device)."""

    name: str
    bytes_per_s: float
    flops: dict[str, float] = field(default_factory=dict)  # FLOP/s (or whole-number operations) by precision
    l2_bytes: float = 0.0
    l2_bytes_per_s: float | None = None
    pcie_bytes_per_s: float | None = None  # one way
    link: str = ""  # to other devices
    link_bytes_per_s: float | None = None  # both ways, all links
    source: str = "data sheet"  # or `profile`, or `measured` by stepscope calibrate
    sheet: dict[str, float] = field(
        default_factory=dict
    )  # where peaks were measured: FLOP/s by the data sheet

    def flops_per_s(self, precision: str) -> float | None:
        """The peak in a format, None where the device has no units for it or it is not known."""
        return self.flops.get(precision)

    def own_flops_per_s(self, precision: str) -> float | None:
        """The peak of work whose operands have this format: in a wider one where there are no units for it."""
        while precision not in self.flops and precision in _WIDER:
            precision = _WIDER[precision]
        return self.flops.get(precision)

    def best_flops_per_s(self, precision: str) -> float | None:
        """The peak that this work could have: that of 16 bits, or of its own format where that is higher."""
        if self.sheet:
            return replace(self, flops=self.sheet, sheet={}).best_flops_per_s(precision)
        own = self.own_flops_per_s(precision)
        known = [self.flops[name] for name in _SIXTEEN_BITS if name in self.flops]
        return None if own is None else max(own, *known) if known else own


def peaks(device: dict[str, Any]) -> Peaks | None:
    """The peaks of a device as a trace describes it: as they were measured on one of its name, else by its data sheet."""
    found = listed_peaks(device)
    own = measured(str(device.get("name") or device.get("gpu_device_name") or ""))
    return found if own is None else _with_measured(found, own)


def _with_measured(found: Peaks | None, own: MeasuredDevice) -> Peaks | None:
    """What was not measured stays as it was; without bandwidth there is no roofline."""
    bandwidth = own.bytes_per_s or (found.bytes_per_s if found else None)
    if bandwidth is None:
        return found
    base = found or Peaks(own.name, bandwidth)
    return replace(
        base,
        bytes_per_s=bandwidth,
        flops={**base.flops, **own.flops_per_s},
        l2_bytes=own.l2_bytes or base.l2_bytes,
        l2_bytes_per_s=own.l2_bytes_per_s or base.l2_bytes_per_s,
        pcie_bytes_per_s=own.pinned_bytes_per_s or base.pcie_bytes_per_s,
        source="measured",
        sheet=base.flops,
    )


def listed_peaks(device: dict[str, Any]) -> Peaks | None:
    """The peaks of the data sheet, by the name and, where one name has two, the memory of the device; or the file's own."""
    name = str(device.get("name") or device.get("gpu_device_name") or "")
    gib = (device.get("totalGlobalMem") or device.get("memory_size") or 0) / GIB
    for named, least_gib, found in _TABLE:
        if named.search(name) and gib >= least_gib:
            return found
    return _as_recorded(name, device)


def _as_recorded(name: str, device: dict[str, Any]) -> Peaks | None:
    """TPUs give their own peaks, which are those of bf16."""
    tera, gigabytes = (
        device.get(key) for key in ("peak_teraflops_per_second", "peak_hbm_bw_gigabytes_per_second")
    )
    if not (isinstance(tera, int | float) and isinstance(gigabytes, int | float) and tera > 0):
        return None
    return Peaks(name, gigabytes * GIGA, {"bf16": tera * TERA}, source="profile")


def _listed(entry: DeviceEntry) -> Peaks:
    cache = next((each for each in CACHES if entry.name.startswith(each.name)), None)
    return Peaks(
        name=entry.name,
        bytes_per_s=entry.gb_per_s * GIGA,
        flops={key: value * TERA for key, value in entry.tera.items()},
        l2_bytes=cache.l2_mib * MIB if cache else 0.0,
        l2_bytes_per_s=cache.l2_gb_per_s * GIGA if cache and cache.l2_gb_per_s else None,
        pcie_bytes_per_s=PCIE_GB_PER_S[cache.pcie] * GIGA if cache else None,
        link=cache.link if cache else "",
        link_bytes_per_s=cache.link_gb_per_s * GIGA if cache and cache.link_gb_per_s else None,
    )


_TABLE = tuple((pattern(entry.pattern, re.IGNORECASE), entry.least_gib, _listed(entry)) for entry in DEVICES)
