"""What the collectors of TensorFlow and JAX have in common: both write XPlane files under plugins/profile."""

from __future__ import annotations

from pathlib import Path

from stepscope.capture.backends.cut_xplane import cut
from stepscope.capture.backends.pauses import Stretches
from stepscope.capture.files.writer import Recorded


def written(folder: Path, stretches: Stretches) -> list[Recorded]:
    """What the collector left in its folder: the XPlane file, then its JSON twin where there is one with the same content."""
    planes = sorted(folder.rglob("*.xplane.pb"))
    if not planes:
        raise RuntimeError("the collector wrote no xplane.pb")
    files = [Recorded(planes[-1], ".xplane.pb")]
    if stretches.was_paused:
        stretches.pause()
        cut(planes[-1], stretches.done, stretches.asked_ns)
        return files
    twin = planes[-1].with_name(planes[-1].name.removesuffix(".xplane.pb") + ".trace.json.gz")
    return [*files, Recorded(twin, ".trace.json.gz")] if twin.exists() else files
