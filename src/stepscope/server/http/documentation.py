"""The documentation, for the page's "how is this computed": installed with the package, or beside the sources."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

from stepscope.server.http.request import Refused

_NAME = re.compile(r"([a-z0-9_-]+/)?[a-z0-9_-]+")
LONGEST = 200


def document(name: str) -> str:
    """A page of docs/ as Markdown, by its name without .md: `report/account`."""
    folder = _folder()
    name = name.removesuffix(".md")
    if folder is None or len(name) > LONGEST or _NAME.fullmatch(name) is None:
        raise _missing()
    try:
        return (folder / f"{name}.md").read_text("utf-8")
    except OSError:
        raise _missing() from None


@cache
def _folder() -> Path | None:
    package = Path(__file__).resolve().parents[2]
    places = (package / "docs", package.parent.parent / "docs")
    return next((place for place in places if (place / "index.md").is_file()), None)


def _missing() -> Refused:
    return Refused("There is no such page in the documentation.", status=404)
