"""A change that makes room."""

from __future__ import annotations

import msgspec

from stepscope.analysis.host.place import Place


class Change(msgspec.Struct, frozen=True):
    """`bytes` is what it frees, `fits` whether that is enough for the request that failed."""

    code: str
    text: str
    bytes: int
    fits: bool
    where: Place | None = None
