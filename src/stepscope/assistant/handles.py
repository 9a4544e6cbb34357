"""Handles: short, stable names of what a report lists, such as `finding:3`, `kernel:volta_sgemm_128x64~1f0c9a2e` or `step:7`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from hashlib import blake2s

from stepscope.errors import StepscopeError
from stepscope.safe import safe

KINDS = ("finding", "part", "op", "kernel", "step", "problem", "event")
_PLAIN = re.compile(r"[A-Za-z0-9_.:/\-]{1,40}")
_ODD = re.compile(r"[^A-Za-z0-9_.:/\-]+")
_SLUG = 24


@dataclass(frozen=True)
class Handle:
    """What is meant: a kind, and the name or number of one of it."""

    kind: str
    name: str

    def means(self, name: str) -> bool:
        """Whether this is the thing of that name."""
        return self.name == name or self.name == short_id(name)


def short_id(name: str) -> str:
    """A name that fits into a handle: itself, or the beginning of it and a digest."""
    if _PLAIN.fullmatch(name):
        return name
    slug = _ODD.sub("_", name[:200])[:_SLUG].strip("_")
    digest = blake2s(name.encode("utf-8", "surrogatepass"), digest_size=4).hexdigest()
    return f"{slug}~{digest}"


def handle(kind: str, name: object) -> str:
    """The handle in a list."""
    return f"{kind}:{short_id(str(name))}"


def parse_handle(text: str) -> Handle:
    """What the user or the assistant wrote."""
    kind, colon, name = text.strip().partition(":")
    if not colon or kind not in KINDS or not name:
        raise StepscopeError(
            f"Not a handle: {safe(text[:60])}",
            fix=f"A handle is one of {', '.join(KINDS)}, a colon and a name or number, such as finding:1.",
        )
    return Handle(kind, name)


def is_handle(text: str) -> bool:
    """Whether the text is meant as a handle, and not as SQL."""
    kind, colon, name = text.strip().partition(":")
    return bool(colon and name) and kind in KINDS


def not_there(wanted: Handle) -> StepscopeError:
    """For a handle that means nothing here."""
    return StepscopeError(
        f"There is no {wanted.kind} {safe(wanted.name[:60])} in this report.",
        fix="Take handles from the report of the same profile.",
    )
