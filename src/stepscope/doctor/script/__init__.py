"""Checks of a training script, which is read and never run."""

from __future__ import annotations

from stepscope.doctor.check import Check
from stepscope.doctor.script import lifetime, options, output, windows
from stepscope.doctor.script.subject import TrainingScript

CHECKS: list[Check[TrainingScript]] = [
    *lifetime.CHECKS.all,
    *windows.CHECKS.all,
    *output.CHECKS.all,
    *options.CHECKS.all,
]
