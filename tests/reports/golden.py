"""Texts to compare with: golden files that STEPSCOPE_GOLDEN=write makes anew."""

from __future__ import annotations

import os
from pathlib import Path

FOLDER = Path(__file__).parent / "golden"


def check(name: str, text: str) -> None:
    """The text is that of the file."""
    path = FOLDER / name
    if os.environ.get("STEPSCOPE_GOLDEN") == "write":
        path.write_text(text, "utf-8")
    assert text == path.read_text("utf-8"), "if this is meant, run the test with STEPSCOPE_GOLDEN=write"
