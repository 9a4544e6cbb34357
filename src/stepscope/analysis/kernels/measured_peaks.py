"""What `stepscope calibrate` measured: a small JSON file in the user's configuration folder, one entry per name of a device.

`STEPSCOPE_CALIBRATION` names another file. A file that cannot be read counts as none: reports must not depend on it.
"""

from __future__ import annotations

import os
from functools import lru_cache
from pathlib import Path

import msgspec

SCHEMA = "stepscope.calibration/1"


class MeasuredDevice(msgspec.Struct, kw_only=True):
    """What one device reached; null where it was not measured."""

    name: str
    by: str  # torch or jax, with its version
    when: str  # day
    flops_per_s: dict[str, float] = {}  # of large matrix products, by number format
    bytes_per_s: float | None = None
    l2_bytes: float | None = None
    l2_bytes_per_s: float | None = None
    pinned_bytes_per_s: float | None = None  # from the host
    pageable_bytes_per_s: float | None = None
    launch_ns: float | None = None  # host time of launching a kernel


class Calibration(msgspec.Struct, kw_only=True):
    """The file."""

    schema: str = SCHEMA
    devices: list[MeasuredDevice] = []


def location() -> Path:
    """Where the file is, or would be."""
    chosen = os.environ.get("STEPSCOPE_CALIBRATION")
    if chosen:
        return Path(chosen)
    if os.name == "nt":
        base = Path(os.environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    else:
        base = Path(os.environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return base / "stepscope" / "calibration.json"


def measured(name: str) -> MeasuredDevice | None:
    """What was measured on a device of this name."""
    return next((each for each in calibration().devices if each.name == name), None) if name else None


def calibration() -> Calibration:
    """The whole file; empty where there is none."""
    path = location()
    try:
        changed = path.stat().st_mtime_ns
    except OSError:
        return Calibration()
    return _read(path, changed)


@lru_cache(maxsize=1)
def _read(path: Path, changed: int) -> Calibration:
    """Read again when the file has changed."""
    try:
        found = msgspec.json.decode(path.read_bytes(), type=Calibration)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return Calibration()
    return found if found.schema == SCHEMA else Calibration()


def save(device: MeasuredDevice) -> Path:
    """Put the device into the file, instead of an older entry of the same name."""
    others = [each for each in calibration().devices if each.name != device.name]
    path = location()
    path.parent.mkdir(parents=True, exist_ok=True)
    data = msgspec.json.format(msgspec.json.encode(Calibration(devices=[*others, device])), indent=2)
    part = path.with_suffix(".part")
    part.write_bytes(data + b"\n")
    part.replace(path)
    return path
