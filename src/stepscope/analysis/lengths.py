"""How long the samples of batches are, where the capture counted it: the rest of each is padding."""

from __future__ import annotations

from typing import Annotated, Literal

import msgspec

from stepscope.trace.trace import Trace

_Count = Annotated[int, msgspec.Meta(ge=1)]
_Samples = Annotated[int, msgspec.Meta(ge=0)]
_Length = Annotated[float, msgspec.Meta(gt=0)]

OF_MASK, OF_IDS, TOLD = "mask", "ids", "lengths"


class CountedLengths(msgspec.Struct, frozen=True):
    """Of batches with this `shape` (samples, positions) in `calls`: the `mean` of all samples, and of the `longest` of each batch.

    `counts` of samples: those of lengths up to one part of the positions, up to two parts, and so on; empty in older recordings.
    """

    framework: str
    of: Literal["mask", "ids", "lengths"]
    shape: tuple[_Count, _Count]
    calls: _Count
    mean: _Length
    longest: _Length
    counts: tuple[_Samples, ...] = ()

    @property
    def positions(self) -> int:
        """Of each sample, with its padding."""
        return self.shape[1]

    @property
    def mean_share(self) -> float:
        """Of the positions of all samples."""
        return min(1.0, self.mean / self.positions)

    @property
    def longest_share(self) -> float:
        """Of the positions of the longest sample of a batch."""
        return min(1.0, self.longest / self.positions)


def counted_lengths(trace: Trace) -> list[CountedLengths]:
    """What the sidecar says of them; a row that makes no sense is left out."""
    noted = trace.info.capture.get("lengths")
    found = []
    for each in noted if isinstance(noted, list) else []:
        try:
            row = msgspec.convert(each, CountedLengths)
        except msgspec.ValidationError:
            continue
        if row.mean <= row.longest <= row.positions:
            found.append(row)
    return found
