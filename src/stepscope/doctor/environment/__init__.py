"""Checks of the environment: what is installed and running here, and what it does to a profile."""

from __future__ import annotations

from stepscope.doctor.check import Check, discover
from stepscope.doctor.environment.facts import Environment

CHECKS: list[Check[Environment]] = discover(__name__, __path__)
