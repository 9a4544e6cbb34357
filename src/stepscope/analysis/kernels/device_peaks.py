"""What a device can do at best: dense operations per second by number format, and bytes per second of its memory.

Figures are those of the vendors' data sheets, without sparsity, at boost clock; matrix units where the format has any
(fp64 too), with sums in fp32 where the sheet tells them apart. A device that is not listed has no peak: none is guessed.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Any

TERA = 1e12
GIGA = 1e9


@dataclass(frozen=True)
class Peaks:
    """Dense peak rates of one device, as it appears to a program (a half of an MI250X is one device)."""

    name: str
    bytes_per_s: float
    flops: dict[str, float] = field(default_factory=dict)  # FLOP/s (or whole-number operations) by precision

    def flops_per_s(self, precision: str) -> float | None:
        """The peak in a format, None where the device has no units for it or it is not known."""
        return self.flops.get(precision)


def peaks(device: dict[str, Any]) -> Peaks | None:
    """The peaks of a device as a trace describes it: by its name, and its memory where one name has two."""
    name = str(device.get("name") or device.get("gpu_device_name") or "")
    gib = (device.get("totalGlobalMem") or device.get("memory_size") or 0) / 2**30
    for pattern, least_gib, found in _TABLE:
        if pattern.search(name) and gib >= least_gib:
            return found
    return None


def _peaks(name: str, gb_per_s: float, **tera: float) -> Peaks:
    return Peaks(name, gb_per_s * GIGA, {precision: value * TERA for precision, value in tera.items()})


def _sixteen(value: float) -> dict[str, float]:
    return {"fp16": value, "bf16": value}


_H100 = {"fp64": 67, "fp32": 67, "tf32": 494.7, **_sixteen(989.4), "fp8": 1978.9, "int8": 1978.9}
_NVL = {"fp64": 60, "fp32": 60, "tf32": 417.5, **_sixteen(835.5), "fp8": 1670.5, "int8": 1670.5}
_A100 = {"fp64": 19.5, "fp32": 19.5, "tf32": 156, **_sixteen(312), "int8": 624, "int4": 1248}
_MI300X = {"fp64": 163.4, "fp32": 163.4, "tf32": 653.7, **_sixteen(1307.4), "fp8": 2614.9, "int8": 2614.9}

# Pattern of the name, least memory in GiB, peaks. The first that fits is taken: the special before the general.
_ROWS: tuple[tuple[str, float, Peaks], ...] = (
    (r"V100.*PCIE", 0, _peaks("V100 PCIe", 900, fp64=7, fp32=14, fp16=112)),
    (r"V100", 0, _peaks("V100 SXM2", 900, fp64=7.8, fp32=15.7, fp16=125)),
    (r"\bT4\b", 0, _peaks("T4", 320, fp64=0.25, fp32=8.1, fp16=65, int8=130, int4=260)),
    (r"A100.*PCI", 50, _peaks("A100 PCIe 80 GB", 1935, **_A100)),
    (r"A100|A800", 50, _peaks("A100 80 GB", 2039, **_A100)),
    (r"A100|A800", 0, _peaks("A100 40 GB", 1555, **_A100)),
    (r"A30\b", 0, _peaks("A30", 933, fp64=10.3, fp32=10.3, tf32=82, **_sixteen(165), int8=330, int4=661)),
    (r"A40\b", 0, _peaks("A40", 696, fp32=37.4, tf32=74.8, **_sixteen(149.7), int8=299.3, int4=598.7)),
    (r"A10G", 0, _peaks("A10G", 600, fp32=35, tf32=35, **_sixteen(70), int8=140, int4=280)),
    (r"A10\b", 0, _peaks("A10", 600, fp32=31.2, tf32=62.5, **_sixteen(125), int8=250, int4=500)),
    (r"RTX A6000", 0, _peaks("RTX A6000", 768, fp32=38.7, tf32=77.4, **_sixteen(154.8), int8=309.7, int4=619.3)),
    (r"L40S", 0, _peaks("L40S", 864, fp32=91.6, tf32=183, **_sixteen(362), fp8=733, int8=733)),
    (r"L40\b", 0, _peaks("L40", 864, fp32=90.5, tf32=90.5, **_sixteen(181), fp8=362, int8=362)),
    (r"L4\b", 0, _peaks("L4", 300, fp32=30.3, tf32=60, **_sixteen(121), fp8=242.5, int8=242.5)),
    (r"RTX 6000 Ada", 0, _peaks("RTX 6000 Ada", 960, fp32=91.1, tf32=182.1, **_sixteen(364.2), fp8=728.5, int8=728.5)),
    (r"H100.*PCIe", 0, _peaks("H100 PCIe", 2039, fp64=51, fp32=51, tf32=378, **_sixteen(756), fp8=1513, int8=1513)),
    (r"H100 NVL", 0, _peaks("H100 NVL", 3900, **_NVL)),
    (r"H200 NVL", 0, _peaks("H200 NVL", 4800, **_NVL)),
    (r"GH200", 120, _peaks("GH200 144 GB", 4900, **_H100)),
    (r"GH200", 0, _peaks("GH200", 4000, **_H100)),
    (r"H200", 0, _peaks("H200 SXM", 4800, **_H100)),
    (r"H100", 0, _peaks("H100 SXM", 3350, **_H100)),
    (r"H800", 0, _peaks("H800", 3350, **{**_H100, "fp64": 1})),
    (r"H20\b", 0, _peaks("H20", 4000, fp64=1, fp32=44, tf32=74, **_sixteen(148), fp8=296, int8=296)),
    (
        r"GB200", 0,
        _peaks("GB200", 8000, fp64=40, fp32=80, tf32=1250, **_sixteen(2500), fp8=5000, fp4=10000, int8=5000),
    ),
    (
        r"B200", 0,
        _peaks("B200", 8000, fp64=37, fp32=75, tf32=1125, **_sixteen(2250), fp8=4500, fp4=9000, int8=4500),
    ),
    (r"RTX 3090 Ti", 0, _peaks("RTX 3090 Ti", 1008, fp32=40, tf32=40, **_sixteen(80), int8=320)),
    (r"RTX 3090", 0, _peaks("RTX 3090", 936, fp32=35.6, tf32=35.6, **_sixteen(71), int8=284)),
    (r"RTX 3080\b(?! Ti)", 0, _peaks("RTX 3080", 760, fp32=29.8, tf32=29.8, **_sixteen(59.5), int8=238)),
    (r"RTX 4090", 0, _peaks("RTX 4090", 1008, fp32=82.6, tf32=82.6, **_sixteen(165.2), fp8=330.3, int8=660.6)),
    (r"RTX 4080\b(?! SUPER)", 0, _peaks("RTX 4080", 717, fp32=48.7, tf32=48.7, **_sixteen(97.5), fp8=194.9, int8=389.9)),
    (
        r"RTX 5090", 0,
        _peaks("RTX 5090", 1792, fp32=104.8, tf32=104.8, **_sixteen(209.5), fp8=419, fp4=1676, int8=838),
    ),
    (
        r"RTX 5080", 0,
        _peaks("RTX 5080", 960, fp32=56.3, tf32=56.3, **_sixteen(112.6), fp8=225.1, fp4=900.4, int8=450.2),
    ),
    (r"MI210", 0, _peaks("MI210", 1638, fp64=45.3, fp32=45.3, **_sixteen(181), int8=181)),
    (r"MI250X", 0, _peaks("MI250X (one of two)", 1638, fp64=47.9, fp32=47.9, **_sixteen(191.5), int8=191.5)),
    (r"MI250", 0, _peaks("MI250 (one of two)", 1638, fp64=45.3, fp32=45.3, **_sixteen(181), int8=181)),
    (
        r"MI300A", 0,
        _peaks("MI300A", 5300, fp64=122.6, fp32=122.6, tf32=490.3, **_sixteen(980.6), fp8=1961.2, int8=1961.2),
    ),
    (r"MI300X", 0, _peaks("MI300X", 5300, **_MI300X)),
    (r"MI325X", 0, _peaks("MI325X", 6000, **_MI300X)),
)  # fmt: skip
_TABLE = tuple((re.compile(pattern, re.IGNORECASE), least, found) for pattern, least, found in _ROWS)
