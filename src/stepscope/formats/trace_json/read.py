"""Trace JSON: read once, then understood as our own export, as Kineto's or as anybody's Chrome trace."""

from __future__ import annotations

from typing import Any

from stepscope.errors import UnreadableFile
from stepscope.formats.chrome.generic import chrome_draft
from stepscope.formats.chrome.scan.parallel import scan
from stepscope.formats.kineto.draft import is_kineto, kineto_draft
from stepscope.formats.not_a_profile import describe_json
from stepscope.formats.own_export.header import exported_header
from stepscope.formats.own_export.read import exported_draft
from stepscope.formats.own_export.write_merged import RANKS
from stepscope.formats.reader import Progress
from stepscope.formats.registry import describe_supported
from stepscope.formats.source import Source
from stepscope.trace.draft import Draft
from stepscope.trace.problems import problem


def read(source: Source, progress: Progress) -> Draft:
    """The draft of whichever of them it is."""
    found = scan(source, progress)
    ours = exported_header(found.header)
    is_empty = found.events.is_empty() and found.flows.is_empty() and not found.metadata
    # A trace without events can be exported too; one that lost them cannot be told from it but by its problems.
    if is_empty and (ours is None or len(found.problems)):
        raise UnreadableFile(
            f"{source.path} is JSON but holds no trace events: {describe_json(found)}.",
            fix=describe_supported(),
        )
    if ours is not None:
        return exported_draft(found, ours, source.path)
    draft = kineto_draft(found, source.path) if is_kineto(found) else chrome_draft(found, source.path)
    _note_merged(draft, found.header)
    return draft


def _note_merged(draft: Draft, header: dict[str, Any]) -> None:
    """Our own export of several ranks in one file is for Perfetto: ids of calls are unique in a file, not across ranks."""
    other = header.get("otherData")
    ranks = other.get(RANKS) if isinstance(other, dict) else None
    if isinstance(ranks, list) and ranks:
        draft.problems.add(
            problem(
                "two-workers",
                "stepscope export --merge wrote it, for Perfetto: calls and kernels of {count} ranks are mixed.",
                case="merged",
                count=len(ranks),
            )
        )
