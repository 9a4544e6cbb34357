"""Generated parts of the documentation."""

from __future__ import annotations


def replace_section(page: str, heading: str, text: str) -> str:
    """The page with `text`, which begins with the heading, instead of the section of that heading."""
    before, found, rest = page.partition(f"{heading}\n")
    if not found:
        raise ValueError(f"The page has no section {heading}")
    _, next_heading, after = rest.partition("\n## ")
    return f"{before}{text}{next_heading}{after}"
