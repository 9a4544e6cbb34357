"""Generated parts of the documentation."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path


def replace_section(page: str, heading: str, text: str) -> str:
    """The page with `text`, which begins with the heading, instead of the section of that heading."""
    before, found, rest = page.partition(f"{heading}\n")
    if not found:
        raise ValueError(f"The page has no section {heading}")
    _, next_heading, after = rest.partition("\n## ")
    return f"{before}{text}{next_heading}{after}"


def write_page(text: str, arguments: Sequence[str]) -> None:
    """Write a generated page to the file that the first argument names, or to stdout without one."""
    if arguments:
        Path(arguments[0]).write_text(text, "utf-8")
    else:
        sys.stdout.write(text)
