"""Checks of the environment: what is installed and running here, and what it does to a profile."""

from __future__ import annotations

from stepscope.doctor.check import Check
from stepscope.doctor.environment import clients, cupti, driver, frameworks, host, tensorboard
from stepscope.doctor.environment.facts import Environment

CHECKS: list[Check[Environment]] = [
    *frameworks.CHECKS.all,
    *driver.CHECKS.all,
    *cupti.CHECKS.all,
    *clients.CHECKS.all,
    *tensorboard.CHECKS.all,
    *host.CHECKS.all,
]
