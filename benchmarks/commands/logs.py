"""A folder of logs with hundreds of recordings of one job, a minute after each other, made of a real one."""

from __future__ import annotations

import gzip
import re
import sys
from pathlib import Path

from stepscope.formats.source import Source
from stepscope.profiles.find.inside import look_inside
from stepscope.profiles.find.runs import entry

MINUTE_NS = 60 * 10**9
_BASE = re.compile(rb'("baseTimeNanoseconds"\s*:\s*"?)(\d+)')


def make_logs(source: Path, folder: Path, runs: int) -> None:
    """So many of them, in one folder."""
    folder.mkdir(parents=True, exist_ok=True)
    content = b"".join(Source(str(source)).pieces())
    begins = look_inside([entry(str(source))])[str(source)].start_ns or 0
    for number in range(runs):
        moved = _move(content, number * MINUTE_NS)
        written = begins + number * MINUTE_NS + 10**9
        path = folder / f"host_{1000 + number}.{written}.pt.trace.json.gz"
        path.write_bytes(gzip.compress(moved, 1))


def _move(content: bytes, by_ns: int) -> bytes:
    """The same recording, so much later."""
    return _BASE.sub(lambda found: found[1] + b"%d" % (int(found[2]) + by_ns), content, count=1)


if __name__ == "__main__":
    make_logs(Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
