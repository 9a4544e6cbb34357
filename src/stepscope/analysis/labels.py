"""Losses over many classes, of which the capture counted the labels that are ignored."""

from __future__ import annotations

import math
from typing import Annotated

import msgspec

from stepscope.trace.trace import Trace

_Side = Annotated[int, msgspec.Meta(ge=1)]
_Count = Annotated[int, msgspec.Meta(ge=1)]


class CountedLabels(msgspec.Struct, frozen=True):
    """`shape` and `dtype` of the logits; `ignored`: the share of the `labels` of all `calls`."""

    framework: str
    shape: Annotated[tuple[_Side, ...], msgspec.Meta(min_length=2)]
    dtype: str
    calls: _Count
    labels: _Count
    ignored: Annotated[float, msgspec.Meta(ge=0, le=1)]

    @property
    def classes(self) -> int:
        """They come second."""
        return self.shape[1]

    @property
    def rows(self) -> int:
        """Positions that have a label, ignored or not."""
        return math.prod(self.shape) // self.classes


def counted_labels(trace: Trace) -> list[CountedLabels]:
    """What the sidecar says of them; a row that makes no sense is left out."""
    noted = trace.info.capture.get("labels")
    found = []
    for each in noted if isinstance(noted, list) else []:
        try:
            found.append(msgspec.convert(each, CountedLabels))
        except msgspec.ValidationError:
            continue
    return found
