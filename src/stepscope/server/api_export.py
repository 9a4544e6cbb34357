"""A run for other tools: Chrome trace JSON, which Perfetto opens."""

from __future__ import annotations

import zlib
from collections.abc import Iterator

from stepscope.formats.export_chrome import chrome_text
from stepscope.profile.export import default_name
from stepscope.profile.profile import Profile
from stepscope.server.api_report import HIGHEST_RANK
from stepscope.server.routes import Answer, Ask, RunRoute, Stream, download
from stepscope.trace.trace import Trace


def chrome(ask: Ask) -> Answer:
    """One rank as a packed file, made while it is sent."""
    profile = ask.run.profile
    rank = ask.query.maybe_integer("rank", 0, HIGHEST_RANK)
    number = profile.ranks[0] if rank is None else rank
    alone = Profile(profile.path, [profile.trace(number)], [number], name=profile.name)
    name = default_name(alone, "chrome").name
    if len(profile.ranks) > 1:
        name = f"rank{number}.{name}"
    return Stream(_packed(alone.traces[0]), "application/gzip", download(name))


def _packed(trace: Trace) -> Iterator[bytes]:
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)  # 31: with the header of a .gz file
    for piece in chrome_text(trace):
        packed = packer.compress(piece.encode("utf-8", "replace"))
        if packed:
            yield packed
    yield packer.flush()


ROUTES = (RunRoute("chrome", chrome),)
