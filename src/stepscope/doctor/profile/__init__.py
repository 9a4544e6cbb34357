"""Checks of a profile, or of a folder that should hold one."""

from __future__ import annotations

from stepscope.doctor.check import Check, discover
from stepscope.doctor.profile.subject import Examined

CHECKS: list[Check[Examined]] = discover(__name__, __path__)
