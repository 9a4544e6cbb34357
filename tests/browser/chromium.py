"""Finds a Chromium that is already here; `make test` installs one where it may."""

from __future__ import annotations

import os
import shutil
import subprocess
from functools import cache

from tests.patience import PATIENCE_S

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Quiet, and without a sandbox, which root in a container does not have.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--disable-dev-shm-usage",  # containers often have 64 MB of it, and pages crash when it is full
)


@cache
def chromium() -> str | None:
    """Its path, or None."""
    named = os.environ.get("STEPSCOPE_CHROMIUM")
    candidates = [named] if named else [*filter(None, map(shutil.which, NAMES))]
    return next(filter(_works, candidates), None)


def _works(path: str) -> bool:
    """Ubuntu has scripts of these names that only ask for a snap."""
    try:
        command = [path, "--version", "--no-sandbox"]
        return subprocess.run(command, capture_output=True, timeout=PATIENCE_S, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False
