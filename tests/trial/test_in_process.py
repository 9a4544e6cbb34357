"""Variants of a step, in one process."""

from __future__ import annotations

import time

import stepscope


def test_a_variant_that_waits_half_as_long_is_faster() -> None:
    found = stepscope.try_(
        lambda: time.sleep(0.02),
        {"half": lambda: time.sleep(0.01), "same": lambda: time.sleep(0.02)},
        rounds=3,
        steps=3,
        least_s=0.0,
    )
    half, same = found.changes["half"], found.changes["same"]
    assert half.mid > 1.3 * same.mid
    assert "half" in str(found)
    assert "Unchanged runs in a row differ by up to" in str(found)
