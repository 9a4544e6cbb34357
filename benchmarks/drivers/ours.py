"""stepscope.load, cold or from the cache: the folder in STEPSCOPE_CACHE decides."""

from __future__ import annotations

import pkgutil
from importlib import import_module
from typing import Any

import stepscope
from benchmarks.drivers.meter import report
from stepscope import native
from stepscope.profiles.cache import background


def import_everything() -> None:
    """Import what load() would import when it is first called: peers are timed without their imports too."""
    for package in ("native", "trace", "formats", "profiles"):
        module = import_module(f"stepscope.{package}")
        for found in pkgutil.walk_packages(module.__path__, module.__name__ + "."):
            import_module(found.name)


def load(path: str) -> dict[str, Any]:
    """All tables of the profile."""
    profile = stepscope.load(path)
    return {"events": profile.events.height, "interpreted": native.interpreted()}


if __name__ == "__main__":
    import_everything()
    report(load, background.wait)
