"""Checks of a profile, or of a folder that should hold one."""

from __future__ import annotations

from stepscope.doctor.check import Check
from stepscope.doctor.profile import folder
from stepscope.doctor.profile import problems as known
from stepscope.doctor.profile.subject import Examined

CHECKS: list[Check[Examined]] = [*folder.CHECKS.all, *known.CHECKS]
