"""Caches and links of devices.

Sizes of the L2 and generations of links are those of the vendors' architecture papers and data sheets, or of public listings where
these are silent; an entry that could not be confirmed says so. Bandwidths of the L2 are bytes a clock times the highest clock: no
kernel reaches them, so that nothing is called lost that is not. On AMD's MI300 and later the Infinity Cache takes the place of the L2,
which is split among eight dies.
"""

from __future__ import annotations

from stepscope.lazy import dataclass

# GB/s of 16 lanes, one way, after encoding.
PCIE_GB_PER_S = {3: 15.8, 4: 31.5, 5: 63.0, 6: 121.0}


@dataclass(frozen=True)
class CacheEntry:
    """L2 and links of the devices whose name in the table of peaks begins so."""

    name: str
    l2_mib: float
    l2_gb_per_s: float | None
    pcie: int  # generation
    link: str  # to other devices: its name
    link_gb_per_s: float | None  # both ways together, over all links of the device
    source: str


_AMPERE = "NVIDIA, GA102 architecture paper: 512 KB a memory controller"
_ADA = "NVIDIA, Ada architecture paper"
_HOPPER = "NVIDIA, H100 architecture paper; L2 5,120 bytes a clock at 1.98 GHz"
_CDNA3 = "AMD, CDNA 3 paper: Infinity Cache of 256 MB, 17.2 TB/s"

# The first name that fits is taken: the special before the general.
CACHES: tuple[CacheEntry, ...] = (
    CacheEntry("P100 PCIe", 4, None, 3, "", None, "NVIDIA, P100 architecture paper"),
    CacheEntry("P100", 4, None, 3, "NVLink 1", 160, "NVIDIA, P100 architecture paper"),
    CacheEntry("V100 PCIe", 6, 3133, 3, "", None, "NVIDIA, V100 architecture paper; L2 2,048 bytes a clock at 1.53 GHz"),
    CacheEntry("V100", 6, 3133, 3, "NVLink 2", 300, "NVIDIA, V100 architecture paper; L2 2,048 bytes a clock at 1.53 GHz"),
    CacheEntry("T4", 4, None, 3, "", None, "NVIDIA, Turing architecture paper"),
    CacheEntry("TU102", 6, None, 3, "NVLink 2", 100, "NVIDIA, Turing architecture paper"),
    CacheEntry("RTX 2080 Ti", 5.5, None, 3, "NVLink 2", 100, "NVIDIA, Turing architecture paper"),
    CacheEntry("A100", 40, 7219, 4, "NVLink 3", 600, "NVIDIA, A100 architecture paper; L2 5,120 bytes a clock at 1.41 GHz"),
    CacheEntry("A30", 24, None, 4, "NVLink 3", 200, "NVIDIA, A30 data sheet; L2 not confirmed"),
    CacheEntry("A40", 6, None, 4, "NVLink 3", 112.5, _AMPERE),
    CacheEntry("A10G", 6, None, 4, "", None, _AMPERE + "; not confirmed for this device"),
    CacheEntry("A10", 6, None, 4, "", None, _AMPERE),
    CacheEntry("RTX A6000", 6, None, 4, "NVLink 3", 112.5, _AMPERE),
    CacheEntry("L40S", 48, None, 4, "", None, "public listings; NVIDIA's sheet is silent on the L2"),
    CacheEntry("L40", 96, None, 4, "", None, _ADA + "; not confirmed for this device"),
    CacheEntry("L4", 48, None, 4, "", None, "public listings; NVIDIA's sheet is silent on the L2"),
    CacheEntry("RTX 6000 Ada", 96, None, 4, "", None, _ADA),
    CacheEntry("H100 PCIe", 50, 8986, 5, "NVLink 4", 600, "NVIDIA, H100 architecture paper; L2 5,120 bytes a clock at 1.755 GHz"),
    CacheEntry("H100 NVL", 50, 9140, 5, "NVLink 4", 600, "NVIDIA, H100 NVL data sheet; L2 as that of H100, at 1.785 GHz; not confirmed"),
    CacheEntry("H100", 50, 10138, 5, "NVLink 4", 900, _HOPPER),
    CacheEntry("H200", 50, 10138, 5, "NVLink 4", 900, _HOPPER),
    CacheEntry("GH200", 50, 10138, 5, "NVLink 4", 900, _HOPPER + "; size not confirmed, some list 60 MB"),
    CacheEntry("H800", 50, 10138, 5, "NVLink 4", 400, "as widely reported; no public data sheet"),
    CacheEntry("H20", 60, None, 5, "NVLink 4", 900, "as widely reported; no public data sheet"),
    CacheEntry("B300", 126, None, 6, "NVLink 5", 1800, "as B200; not confirmed"),
    CacheEntry("GB200", 126, None, 5, "NVLink 5", 1800, "public measurements of B200; NVIDIA, GB200 NVL72 data sheet"),
    CacheEntry("B200", 126, None, 5, "NVLink 5", 1800, "public measurements; NVIDIA, HGX B200 data sheet"),
    CacheEntry("RTX 3090", 6, None, 4, "NVLink 3", 112.5, _AMPERE),
    CacheEntry("RTX 3080", 5, None, 4, "", None, _AMPERE),
    CacheEntry("RTX 4090", 72, None, 4, "", None, _ADA),
    CacheEntry("RTX 4080", 64, None, 4, "", None, _ADA),
    CacheEntry("RTX 5090", 96, None, 5, "", None, "NVIDIA, RTX Blackwell architecture paper; not confirmed"),
    CacheEntry("RTX 5080", 64, None, 5, "", None, "NVIDIA, RTX Blackwell architecture paper; not confirmed"),
    CacheEntry("MI210", 8, None, 4, "Infinity Fabric", 300, "AMD, CDNA 2 paper; links not confirmed"),
    CacheEntry("MI250", 8, None, 4, "Infinity Fabric", None, "AMD, CDNA 2 paper: 8 MB for each half"),
    CacheEntry("MI300", 256, 17200, 5, "Infinity Fabric", 896, _CDNA3),
    CacheEntry("MI325X", 256, 17200, 5, "Infinity Fabric", 896, _CDNA3),
    CacheEntry("MI35", 256, None, 5, "Infinity Fabric", 1075, "AMD, MI350 data sheets; not confirmed"),
)  # fmt: skip
