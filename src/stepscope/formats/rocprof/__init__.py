"""rocprofv3: the JSON of AMD's rocprofiler-sdk."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stepscope.formats.reader import Format, Progress
from stepscope.formats.source import Source

if TYPE_CHECKING:
    from stepscope.trace.draft import Draft

_START = re.compile(rb'\s*\{\s*"rocprofiler-sdk-tool"\s*:')


def _matches(head: bytes, name: str) -> bool:
    return _START.match(head) is not None


def _read(source: Source, progress: Progress) -> Draft:
    from stepscope.formats.rocprof.draft import read

    return read(source, progress)


FORMAT = Format(
    name="rocprof",
    summary="rocprofv3 (*_results.json)",
    matches=_matches,
    read=_read,
    suffixes=("_results.json",),
    turn=20,  # before other JSON
    written_by="rocprofv3 with `--output-format json`; see [rocprofv3](formats/rocprof.md)",
    versions="`rocprofiler-sdk-tool` of ROCm 6 and 7",
    verified="counts and sums of kernels equal `json.load`, over a recording of MI350X",
)
