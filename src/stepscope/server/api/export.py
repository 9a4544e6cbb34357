"""A run for other tools: Chrome trace JSON, which Perfetto opens; one rank, or all of them on one clock."""

from __future__ import annotations

import zlib
from collections.abc import Iterable, Iterator

from stepscope.formats.own_export.write import chrome_text
from stepscope.formats.own_export.write_merged import RankPart, merged_text
from stepscope.profiles.export import default_name
from stepscope.profiles.profile import Profile
from stepscope.ranks.common_time import rank_times, told
from stepscope.server.api.report import HIGHEST_RANK
from stepscope.server.api.routes import Answer, Ask, RunRoute, Stream, download
from stepscope.server.runs.opened import OpenedRun

ALL = "all"


def chrome(ask: Ask) -> Answer:
    """One rank as a packed file, made while it is sent; or all of them, with rank=all."""
    profile = ask.run.profile
    if len(profile.ranks) > 1 and ask.query.has("rank") and ask.query.text("rank", 10) == ALL:
        return _all_ranks(ask.run)
    rank = ask.query.maybe_integer("rank", 0, HIGHEST_RANK)
    number = profile.ranks[0] if rank is None else rank
    alone = Profile(profile.path, [profile.trace(number)], [number], name=profile.name)
    name = default_name(alone, "chrome").name
    if len(profile.ranks) > 1:
        name = f"rank{number}.{name}"
    return Stream(packed_pieces(chrome_text(alone.traces[0])), "application/gzip", download(name))


def _all_ranks(run: OpenedRun) -> Answer:
    profile = run.profile
    times = run.kept("rank times", lambda: rank_times(profile))
    parts = [
        RankPart(rank, trace, times[rank].common)
        for rank, trace in zip(profile.ranks, profile.traces, strict=True)
    ]
    text = merged_text(parts, told([times[rank] for rank in profile.ranks]))
    return Stream(
        packed_pieces(text), "application/gzip", download(default_name(profile, "chrome", True).name)
    )


def packed_pieces(pieces: Iterable[str]) -> Iterator[bytes]:
    """The text as a .gz file, piece by piece."""
    packer = zlib.compressobj(1, zlib.DEFLATED, 31)  # 31: with the header of a .gz file
    for piece in pieces:
        packed = packer.compress(piece.encode("utf-8", "replace"))
        if packed:
            yield packed
    yield packer.flush()


ROUTES = (RunRoute("chrome", chrome),)
