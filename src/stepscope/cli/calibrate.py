"""`stepscope calibrate`: what the device of this machine reaches, for reports of profiles from it."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.console import Color, session
from stepscope.cli.options import ColorOption, QuietOption, VerboseOption
from stepscope.cli.output import send

if TYPE_CHECKING:
    from stepscope.analysis.kernels.measured_peaks import MeasuredDevice


def calibrate(
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Measure and print, but keep nothing.")] = False,
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    color: ColorOption = Color.auto,
) -> None:
    """Measure the peaks of this machine's device, with torch or jax, in less than a minute.

    Matrix products by number format, memory, L2, copies from the host and launches. Reports of profiles from a device of this name use
    them instead of the data sheet. The exit code is 1 where there is no device.
    """
    with session(quiet, verbose, color) as talk:
        from stepscope.analysis.kernels.measured_peaks import save
        from stepscope.calibrate.measure import measure

        found = measure(lambda what: talk.note(f"Measuring: {what}"))
        kept = "" if dry_run else f"\nKept in {save(found)}\n"
        send("".join(f"{line}\n" for line in _lines(found)) + kept, sys.stdout.buffer)


def _lines(found: MeasuredDevice) -> Iterator[str]:
    yield f"{found.name}, with {found.by}"
    for name, rate in found.flops_per_s.items():
        yield f"  {name:<22}{rate / 1e12:>10.1f} TFLOP/s"
    rates = {
        "memory": found.bytes_per_s,
        "L2": found.l2_bytes_per_s,
        "copies, pinned": found.pinned_bytes_per_s,
        "copies, pageable": found.pageable_bytes_per_s,
    }
    for name, reached in rates.items():
        if reached is not None:
            yield f"  {name:<22}{reached / 1e9:>10.1f} GB/s"
    if found.launch_ns is not None:
        yield f"  {'launch':<22}{found.launch_ns / 1e3:>10.1f} µs"
