"""Peaks of devices.

They are those of the vendors' data sheets; nameless devices are recognised by what they have.

Peaks are dense (without sparsity), at boost clock, on matrix units where the format has any (fp64 too), with sums in fp32
where the sheet distinguishes them; where a sheet gives figures with sparsity alone, half of them. Halves of an MI250 are
devices of their own.
"""

from __future__ import annotations

from stepscope.lazy import dataclass

GIB = 2**30
MIB = 2**20
GIGA = 10**9
TERA = 10**12


@dataclass(frozen=True)
class DeviceEntry:
    """One device: the pattern of its name, the least memory where one name has two, its rates and their source."""

    pattern: str
    least_gib: float
    name: str
    gb_per_s: float
    tera: dict[str, float]  # 10^12 operations a second by number format
    source: str


@dataclass(frozen=True)
class Identity:
    """What a nameless device is recognised by: vendor, architecture where it matters, multiprocessors, memory."""

    vendor: str
    capability: tuple[int, int] | None
    units: int
    gib: tuple[int, int]  # from, to
    name: str


# The first pattern that fits is taken: the special before the general.
DEVICES: tuple[DeviceEntry, ...] = (
    DeviceEntry(r"P100.*PCIE", 0, "P100 PCIe", 732, {"fp64": 4.7, "fp32": 9.3, "fp16": 18.7}, "NVIDIA, Tesla P100 data sheet"),
    DeviceEntry(r"P100", 0, "P100 SXM2", 732, {"fp64": 5.3, "fp32": 10.6, "fp16": 21.2}, "NVIDIA, Tesla P100 data sheet"),
    DeviceEntry(r"V100.*PCIE", 0, "V100 PCIe", 900, {"fp64": 7, "fp32": 14, "fp16": 112}, "NVIDIA, V100 PCIe data sheet"),
    DeviceEntry(r"V100", 0, "V100 SXM2", 900, {"fp64": 7.8, "fp32": 15.7, "fp16": 125}, "NVIDIA, V100 SXM2 data sheet"),
    DeviceEntry(r"\bT4\b", 0, "T4", 320, {"fp64": 0.25, "fp32": 8.1, "fp16": 65, "int8": 130, "int4": 260}, "NVIDIA, T4 data sheet"),
    DeviceEntry(r"Quadro RTX [68]000|TITAN RTX", 0, "TU102 (Quadro RTX 6000/8000, TITAN RTX)", 672, {"fp32": 16.3, "fp16": 130.5, "int8": 261, "int4": 522}, "NVIDIA, Turing architecture paper"),
    DeviceEntry(r"RTX 2080 Ti", 0, "RTX 2080 Ti", 616, {"fp32": 13.4, "fp16": 53.8, "int8": 215.2, "int4": 430.3}, "NVIDIA, Turing architecture paper"),
    DeviceEntry(r"A100.*PCI", 50, "A100 PCIe 80 GB", 1935, {"fp64": 19.5, "fp32": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624, "int4": 1248}, "NVIDIA, A100 PCIe data sheet"),
    DeviceEntry(r"A100|A800", 50, "A100 80 GB", 2039, {"fp64": 19.5, "fp32": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624, "int4": 1248}, "NVIDIA, A100 data sheet"),
    DeviceEntry(r"A100|A800", 0, "A100 40 GB", 1555, {"fp64": 19.5, "fp32": 19.5, "tf32": 156, "fp16": 312, "bf16": 312, "int8": 624, "int4": 1248}, "NVIDIA, A100 data sheet"),
    DeviceEntry(r"A30\b", 0, "A30", 933, {"fp64": 10.3, "fp32": 10.3, "tf32": 82, "fp16": 165, "bf16": 165, "int8": 330, "int4": 661}, "NVIDIA, A30 data sheet"),
    DeviceEntry(r"A40\b", 0, "A40", 696, {"fp32": 37.4, "tf32": 74.8, "fp16": 149.7, "bf16": 149.7, "int8": 299.3, "int4": 598.7}, "NVIDIA, A40 data sheet"),
    DeviceEntry(r"A10G", 0, "A10G", 600, {"fp32": 35, "tf32": 35, "fp16": 70, "bf16": 70, "int8": 140, "int4": 280}, "Amazon's page of G5 instances"),
    DeviceEntry(r"A10\b", 0, "A10", 600, {"fp32": 31.2, "tf32": 62.5, "fp16": 125, "bf16": 125, "int8": 250, "int4": 500}, "NVIDIA, A10 data sheet"),
    DeviceEntry(r"RTX A6000", 0, "RTX A6000", 768, {"fp32": 38.7, "tf32": 77.4, "fp16": 154.8, "bf16": 154.8, "int8": 309.7, "int4": 619.3}, "NVIDIA, RTX A6000 data sheet"),
    DeviceEntry(r"L40S", 0, "L40S", 864, {"fp32": 91.6, "tf32": 183, "fp16": 362, "bf16": 362, "fp8": 733, "int8": 733}, "NVIDIA, L40S data sheet"),
    DeviceEntry(r"L40\b", 0, "L40", 864, {"fp32": 90.5, "tf32": 90.5, "fp16": 181, "bf16": 181, "fp8": 362, "int8": 362}, "NVIDIA, L40 data sheet"),
    DeviceEntry(r"L4\b", 0, "L4", 300, {"fp32": 30.3, "tf32": 60, "fp16": 121, "bf16": 121, "fp8": 242.5, "int8": 242.5}, "NVIDIA, L4 data sheet"),
    DeviceEntry(r"RTX 6000 Ada", 0, "RTX 6000 Ada", 960, {"fp32": 91.1, "tf32": 182.1, "fp16": 364.2, "bf16": 364.2, "fp8": 728.5, "int8": 728.5}, "NVIDIA, RTX 6000 Ada data sheet"),
    DeviceEntry(r"H100.*PCIe", 0, "H100 PCIe", 2039, {"fp64": 51, "fp32": 51, "tf32": 378, "fp16": 756, "bf16": 756, "fp8": 1513, "int8": 1513}, "NVIDIA, H100 PCIe data sheet"),
    DeviceEntry(r"H100 NVL", 0, "H100 NVL", 3900, {"fp64": 60, "fp32": 60, "tf32": 417.5, "fp16": 835.5, "bf16": 835.5, "fp8": 1670.5, "int8": 1670.5}, "NVIDIA, H100 NVL data sheet"),
    DeviceEntry(r"H200 NVL", 0, "H200 NVL", 4800, {"fp64": 60, "fp32": 60, "tf32": 417.5, "fp16": 835.5, "bf16": 835.5, "fp8": 1670.5, "int8": 1670.5}, "NVIDIA, H200 NVL data sheet"),
    DeviceEntry(r"GH200", 120, "GH200 144 GB", 4900, {"fp64": 67, "fp32": 67, "tf32": 494.7, "fp16": 989.4, "bf16": 989.4, "fp8": 1978.9, "int8": 1978.9}, "NVIDIA, GH200 data sheet"),
    DeviceEntry(r"GH200", 0, "GH200", 4000, {"fp64": 67, "fp32": 67, "tf32": 494.7, "fp16": 989.4, "bf16": 989.4, "fp8": 1978.9, "int8": 1978.9}, "NVIDIA, GH200 data sheet"),
    DeviceEntry(r"H200", 0, "H200 SXM", 4800, {"fp64": 67, "fp32": 67, "tf32": 494.7, "fp16": 989.4, "bf16": 989.4, "fp8": 1978.9, "int8": 1978.9}, "NVIDIA, H200 SXM data sheet"),
    DeviceEntry(r"H100", 0, "H100 SXM", 3350, {"fp64": 67, "fp32": 67, "tf32": 494.7, "fp16": 989.4, "bf16": 989.4, "fp8": 1978.9, "int8": 1978.9}, "NVIDIA, H100 SXM data sheet"),
    DeviceEntry(r"H800", 0, "H800", 3350, {"fp64": 1, "fp32": 67, "tf32": 494.7, "fp16": 989.4, "bf16": 989.4, "fp8": 1978.9, "int8": 1978.9}, "as widely reported; no public data sheet"),
    DeviceEntry(r"H20\b", 0, "H20", 4000, {"fp64": 1, "fp32": 44, "tf32": 74, "fp16": 148, "bf16": 148, "fp8": 296, "int8": 296}, "as widely reported; no public data sheet"),
    DeviceEntry(r"GB300|B300", 0, "B300", 8000, {"fp64": 1.3, "fp32": 75, "tf32": 1125, "fp16": 2250, "bf16": 2250, "fp8": 4500, "fp4": 13500, "int8": 150}, "NVIDIA, HGX B300 data sheet"),
    DeviceEntry(r"GB200", 0, "GB200", 8000, {"fp64": 40, "fp32": 80, "tf32": 1250, "fp16": 2500, "bf16": 2500, "fp8": 5000, "fp4": 10000, "int8": 5000}, "NVIDIA, GB200 NVL72 data sheet"),
    DeviceEntry(r"B200", 0, "B200", 8000, {"fp64": 37, "fp32": 75, "tf32": 1125, "fp16": 2250, "bf16": 2250, "fp8": 4500, "fp4": 9000, "int8": 4500}, "NVIDIA, HGX B200 data sheet"),
    DeviceEntry(r"RTX 3090 Ti", 0, "RTX 3090 Ti", 1008, {"fp32": 40, "tf32": 40, "fp16": 80, "bf16": 80, "int8": 320}, "NVIDIA, GA102 architecture paper"),
    DeviceEntry(r"RTX 3090", 0, "RTX 3090", 936, {"fp32": 35.6, "tf32": 35.6, "fp16": 71, "bf16": 71, "int8": 284}, "NVIDIA, GA102 architecture paper"),
    DeviceEntry(r"RTX 3080\b(?! Ti)", 0, "RTX 3080", 760, {"fp32": 29.8, "tf32": 29.8, "fp16": 59.5, "bf16": 59.5, "int8": 238}, "NVIDIA, GA102 architecture paper"),
    DeviceEntry(r"RTX 4090", 0, "RTX 4090", 1008, {"fp32": 82.6, "tf32": 82.6, "fp16": 165.2, "bf16": 165.2, "fp8": 330.3, "int8": 660.6}, "NVIDIA, Ada architecture paper"),
    DeviceEntry(r"RTX 4080\b(?! SUPER)", 0, "RTX 4080", 717, {"fp32": 48.7, "tf32": 48.7, "fp16": 97.5, "bf16": 97.5, "fp8": 194.9, "int8": 389.9}, "NVIDIA, Ada architecture paper"),
    DeviceEntry(r"RTX 5090", 0, "RTX 5090", 1792, {"fp32": 104.8, "tf32": 104.8, "fp16": 209.5, "bf16": 209.5, "fp8": 419, "fp4": 1676, "int8": 838}, "NVIDIA, RTX Blackwell architecture paper"),
    DeviceEntry(r"RTX 5080", 0, "RTX 5080", 960, {"fp32": 56.3, "tf32": 56.3, "fp16": 112.6, "bf16": 112.6, "fp8": 225.1, "fp4": 900.4, "int8": 450.2}, "NVIDIA, RTX Blackwell architecture paper"),
    DeviceEntry(r"MI210", 0, "MI210", 1638, {"fp64": 45.3, "fp32": 45.3, "fp16": 181, "bf16": 181, "int8": 181}, "AMD, Instinct MI210 data sheet"),
    DeviceEntry(r"MI250X", 0, "MI250X (one of two)", 1638, {"fp64": 47.9, "fp32": 47.9, "fp16": 191.5, "bf16": 191.5, "int8": 191.5}, "AMD, Instinct MI250X data sheet"),
    DeviceEntry(r"MI250", 0, "MI250 (one of two)", 1638, {"fp64": 45.3, "fp32": 45.3, "fp16": 181, "bf16": 181, "int8": 181}, "AMD, Instinct MI250 data sheet"),
    DeviceEntry(r"MI300A", 0, "MI300A", 5300, {"fp64": 122.6, "fp32": 122.6, "tf32": 490.3, "fp16": 980.6, "bf16": 980.6, "fp8": 1961.2, "int8": 1961.2}, "AMD, Instinct MI300A data sheet"),
    DeviceEntry(r"MI300X", 0, "MI300X", 5300, {"fp64": 163.4, "fp32": 163.4, "tf32": 653.7, "fp16": 1307.4, "bf16": 1307.4, "fp8": 2614.9, "int8": 2614.9}, "AMD, Instinct MI300X data sheet"),
    DeviceEntry(r"MI325X", 0, "MI325X", 6000, {"fp64": 163.4, "fp32": 163.4, "tf32": 653.7, "fp16": 1307.4, "bf16": 1307.4, "fp8": 2614.9, "int8": 2614.9}, "AMD, Instinct MI325X data sheet"),
    DeviceEntry(r"MI350X", 0, "MI350X", 8000, {"fp64": 72.1, "fp32": 144.2, "fp16": 2306.9, "bf16": 2306.9, "fp8": 4613.7, "fp4": 9227.5, "int8": 4613.7}, "AMD, Instinct MI350X data sheet"),
    DeviceEntry(r"MI355X", 0, "MI355X", 8000, {"fp64": 78.6, "fp32": 157.3, "fp16": 2516.6, "bf16": 2516.6, "fp8": 5033.2, "fp4": 10066.3, "int8": 5033.2}, "AMD, Instinct MI355X data sheet"),
)  # fmt: skip

# Profilers of AMD's devices leave the name empty or write `AMD Radeon Graphics`, older XPlane files have none at all.
IDENTITIES: tuple[Identity, ...] = (
    Identity("AMD", None, 304, (180, 200), "AMD Instinct MI300X"),
    Identity("AMD", None, 304, (240, 260), "AMD Instinct MI325X"),
    Identity("AMD", None, 228, (110, 130), "AMD Instinct MI300A"),
    Identity("AMD", None, 110, (60, 66), "AMD Instinct MI250X"),
    Identity("AMD", None, 104, (60, 66), "AMD Instinct MI250/MI210"),
    Identity("NVIDIA", (7, 0), 80, (14, 34), "Tesla V100"),
    Identity("NVIDIA", (7, 5), 40, (13, 17), "Tesla T4"),
    Identity("NVIDIA", (8, 0), 108, (36, 82), "NVIDIA A100"),
    Identity("NVIDIA", (9, 0), 114, (76, 82), "NVIDIA H100 PCIe"),
    Identity("NVIDIA", (9, 0), 132, (76, 82), "NVIDIA H100"),
    Identity("NVIDIA", (9, 0), 132, (136, 146), "NVIDIA H200"),
    Identity("NVIDIA", (10, 0), 148, (170, 192), "NVIDIA B200"),
)
