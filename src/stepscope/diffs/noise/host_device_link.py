"""Copies between host and device: their speed depends on where the host's pages are, and so on the recording.

The same bytes take 20 to 30 % longer in one process than in the next, on the same machine, and equally in all its steps: pages near
the other socket, another path over the bridge. The scatter of the pair's kernels (`scatter`) does not show that. Half the lanes, or
memory that is no longer pinned, double the time or more: that remains far outside this noise.
"""

from __future__ import annotations

from collections.abc import Sequence

import polars as pl

from stepscope.diffs.data.match import Key
from stepscope.diffs.data.samples import Samples
from stepscope.diffs.noise.judge import Ground, NoiseOf
from stepscope.registers.calibration.runs import LINK_NOISE
from stepscope.registers.policy.diffs import SAME_BYTES

# A standard error, as a share: 95 of 100 pairs of recordings differ by less than twice that.
# Bytes a step that differ by more are other copies, whose time differs for that reason.
LINK = r"(?i)(h(to|2)d|d(to|2)h)(?:[^a-z]|$)"


def make_op_noise(ground: Ground, key: Sequence[str], clock: str) -> NoiseOf:
    """The noise of ops: larger where their device time is spent in copies over the link."""
    shares = _measure_op_shares(ground, key)
    return lambda name, _: ground.runs.of_op(clock, LINK_NOISE * shares.get(name, 0.0))


def make_part_noise(ground: Ground) -> NoiseOf:
    """The noise of parts: larger for copies, as far as they use the link."""
    link = LINK_NOISE * _measure_copy_share(ground)
    return lambda key, _: ground.runs.of_part(str(key[0]), link if key[0] == "copy" else 0.0)


def _measure_op_shares(ground: Ground, key: Sequence[str]) -> dict[Key, float]:
    sums = [
        side.ops.group_by(*key).agg(
            pl.col("device_ns", "link_ns", "link_bytes").sum() / max(1, len(side.cells))
        )
        for side in (ground.a, ground.b)
    ]
    both = sums[0].join(sums[1], on=list(key), how="full", coalesce=True, nulls_equal=True, suffix="_b")
    linked = both.filter(pl.col("link_ns").fill_null(0) + pl.col("link_ns_b").fill_null(0) > 0)
    return {
        tuple(name): (ns or 0) / max(1.0, device or 0) if _move_same_bytes(moved, moved_b) else 0.0
        for *name, device, ns, moved, device_b, ns_b, moved_b in linked.iter_rows()
    }


def _measure_copy_share(ground: Ground) -> float:
    """The share of the link in the part `copy`; 0 where the runs move different amounts."""
    moved = [float(side.ops["link_bytes"].sum()) / max(1, len(side.cells)) for side in (ground.a, ground.b)]
    return max(map(_measure_named_share, (ground.a, ground.b))) if _move_same_bytes(*moved) else 0.0


def _measure_named_share(side: Samples) -> float:
    copies = side.names.filter(pl.col("part") == "copy")
    link = copies.filter(pl.col("name").str.contains(LINK))
    return float(link["ns"].sum()) / max(1.0, float(copies["ns"].sum()))


def _move_same_bytes(a: float | None, b: float | None) -> bool:
    return a is not None and b is not None and abs(a - b) <= SAME_BYTES * max(a, b)
