"""The changes that make room, with the bytes that each frees."""

from __future__ import annotations

from collections.abc import Iterator

import polars as pl

from stepscope.analysis.host.place import Place
from stepscope.analysis.snapshot.change import Change
from stepscope.analysis.snapshot.fragments import Fragments
from stepscope.analysis.snapshot.growth import Growing
from stepscope.analysis.snapshot.kept import Kept
from stepscope.registers.policy.snapshot import EIGHT_BIT, RECOMPUTED, SHARDED_OVER, SITE_SHARE


def list_changes(
    live: pl.DataFrame,
    kept: list[Kept],
    growing: list[Growing],
    fragments: Fragments,
    asked: int,
    expandable: bool,
) -> list[Change]:
    """The cheapest that suffice first, then the others; none that is nothing beside the request."""
    least = SITE_SHARE * max(int(live["bytes"].sum()), asked)
    found = [
        Change(code, text, size, asked > 0 and size >= asked, where)
        for code, text, size, where in _offers(live, kept, growing, fragments, asked, expandable)
        if size >= least
    ]
    return sorted(found, key=lambda change: not change.fits)


_Offer = tuple[str, str, int, Place | None]


def _offers(
    live: pl.DataFrame,
    kept: list[Kept],
    growing: list[Growing],
    fragments: Fragments,
    asked: int,
    expandable: bool,
) -> Iterator[_Offer]:
    """In the order of the effort that they take."""
    for each in kept:
        yield "release-kept", _release(each), each.bytes, Place(each.file, each.line, each.function)
    for grown in growing:
        yield (
            "bound-growing",
            "Bound what grows: a fixed length, a window, or fewer sequences at once.",
            grown.bytes // 2,
            Place(*grown.lines[0]),
        )
    if fragments.pinned_free and not expandable:
        yield (
            "expandable-segments",
            "Set PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True, so that free pieces can be joined.",
            fragments.pinned_free,
            None,
        )
    by_kind = dict(live.group_by("kind").agg(pl.col("bytes").sum()).iter_rows())
    current = by_kind.get("activation", 0) - sum(each.bytes for each in kept if each.kind == "activation")
    yield "smaller-batch", "Halve the batch, and accumulate two for the same step.", current // 2, None
    yield (
        "recompute",
        "Recompute the blocks in the backward pass: torch.utils.checkpoint.checkpoint.",
        int(current * RECOMPUTED),
        None,
    )
    state, weights = by_kind.get("optimizer state", 0), by_kind.get("parameter", 0)
    yield "eight-bit-optimizer", "Keep the optimizer's state in 8 bits.", int(state * EIGHT_BIT), None
    yield "half-precision", "Hold the weights in bf16; frozen models need no more.", weights // 2, None
    yield (
        "shard-optimizer",
        f"Shard the optimizer's state over {SHARDED_OVER} ranks: ZeroRedundancyOptimizer or fully_shard.",
        state - state // SHARDED_OVER,
        None,
    )


def _release(kept: Kept) -> str:
    if kept.kind == "activation":
        return "Keep results without their graph: detach() or item(), torch.no_grad() for evaluation, and no retain_graph."
    return "Bound what is kept, move it to the host with cpu(), or delete it after use."
