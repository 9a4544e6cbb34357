"""Checks of a training script, which is read and never run."""

from __future__ import annotations

from stepscope.doctor.check import Check, discover
from stepscope.doctor.script.subject import TrainingScript

CHECKS: list[Check[TrainingScript]] = discover(__name__, __path__)
