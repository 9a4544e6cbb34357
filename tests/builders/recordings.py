"""The real profiles among the fixtures."""

from __future__ import annotations

from pathlib import Path

from benchmarks.recordings.archive import open_set
from tests.formats.ways import SOAKS

FIXTURES = Path(__file__).parent.parent / "fixtures"
SAMPLES = Path(__file__).parents[2] / "src" / "stepscope" / "samples"
_VARIANTS = ("slow", "mended")
_PACKED = ("diagnosis", "diagnosis_heldout", "diff")


def recordings(*endings: str) -> list[Path]:
    """Of a job that was recorded again, or before and after a change, the largest file; in the soak all, also packed ones."""
    folders = [FIXTURES, SAMPLES, *(map(open_set, _PACKED) if SOAKS else ())]
    found = [path for folder in folders for ending in endings for path in folder.rglob(ending)]
    chosen: dict[object, Path] = {}
    for path in sorted(set(found), key=lambda each: (each.stat().st_size, each)):
        chosen[path if SOAKS else _job(path)] = path
    return sorted(chosen.values())


def _job(path: Path) -> tuple[Path, tuple[str, ...]]:
    words = path.name.split(".")
    return path.parent, tuple(word for word in words if word not in _VARIANTS and not word.isdigit())
