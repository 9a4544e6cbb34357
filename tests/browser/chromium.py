"""Finds a Chromium that is already here; `make test` installs one where it may."""

from __future__ import annotations

import os
import shutil

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# Quiet, and without a sandbox, which root in a container does not have.
ARGUMENTS = (
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)


def chromium() -> str | None:
    """Its path, or None."""
    named = os.environ.get("STEPSCOPE_CHROMIUM")
    return named or next(filter(None, map(shutil.which, NAMES)), None)
