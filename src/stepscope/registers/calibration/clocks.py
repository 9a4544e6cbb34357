"""Clocks of machines, and how exactly the ends of collectives show them."""

from __future__ import annotations

from stepscope.registers.entry import CHOSEN, measured

MOST_DRIFT = measured(
    "MOST_DRIFT",
    2e-4,
    unit="s/s between two clocks",
    device="quartz oscillators",
    how="specified to 100 ppm; two may be off either way",
)
USUAL_DRIFT = measured(
    "USUAL_DRIFT", 1e-4, unit="s/s", device="quartz oscillators", how="specified to 100 ppm"
)
SAME_BOOT_NS = measured(
    "SAME_BOOT_NS",
    1_000_000,
    unit="ns",
    device="any host",
    how=CHOSEN + "; boot times of one machine agree within ns, those of two differ by seconds",
)
SHARED_CLOCK_NS = measured(
    "SHARED_CLOCK_NS",
    100_000,
    unit="ns",
    device="any host",
    how=CHOSEN + "; by one clock no rank leaves a collective this long before another arrives",
)
LEAST_END_SIGMA_NS = measured(
    "LEAST_END_SIGMA_NS",
    100.0,
    unit="ns",
    device="NCCL",
    how=CHOSEN + "; ends of a collective are never known better",
)
LEAST_END_SPREAD_NS = measured(
    "LEAST_END_SPREAD_NS",
    200.0,
    unit="ns",
    device="NCCL",
    how=CHOSEN + "; differences of two ends, each off by LEAST_END_SIGMA_NS",
)
