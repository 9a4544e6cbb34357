"""Huge matrices of which the capture counted the entries that are not zero, in a sample of their rows."""

from __future__ import annotations

from typing import Annotated

import msgspec

from stepscope.trace.trace import Trace

_Side = Annotated[int, msgspec.Meta(ge=1)]


class SampledMatrix(msgspec.Struct, frozen=True):
    """`nonzero`: the share of entries that are not zero in `rows` evenly spaced rows."""

    framework: str
    shape: tuple[_Side, _Side]
    dtype: str
    rows: Annotated[int, msgspec.Meta(ge=1)]
    nonzero: Annotated[float, msgspec.Meta(ge=0, le=1)]


def sampled_matrices(trace: Trace) -> list[SampledMatrix]:
    """What the sidecar says of them; a row that makes no sense is left out."""
    noted = trace.info.capture.get("matrices")
    found = []
    for each in noted if isinstance(noted, list) else []:
        try:
            found.append(msgspec.convert(each, SampledMatrix))
        except msgspec.ValidationError:
            continue
    return found
