"""Plain Python: one function takes nearly all of the step."""

from __future__ import annotations

import sys
import time

import stepscope
from tests.capture.jobs.facts import tell


def slow() -> int:
    """Works for a while, by the processor's clock: other processes do not make it shorter."""
    until, total = time.process_time() + 0.1, 0
    while time.process_time() < until:
        total += 1
    return total


def quick() -> int:
    return sum(range(1_000))


with stepscope.profile(sys.argv[1], backends=("host",)) as prof:
    for _ in range(6):
        slow()
        quick()
        prof.step()
found = prof.report().findings
tell(
    findings=[
        {"code": each.code, "detail": each.detail, "share": each.share, "saves": each.saves_ns_per_step, "most": each.speedup.high}
        for each in found
    ]
)  # fmt: skip
