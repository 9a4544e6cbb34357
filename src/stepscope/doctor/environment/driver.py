"""Checks of NVIDIA's driver: present, new enough, permissive, and with devices visible to this process."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.environment.cupti import needs_gpu
from stepscope.doctor.environment.facts import Environment
from stepscope.doctor.versions import parsed

CHECKS: Checks[Environment] = Checks("environment")
# The oldest driver that runs programs of a CUDA of this major version.
_OLDEST = {11: "450.80", 12: "525.60", 13: "580.65"}


def needs_driver(environment: Environment) -> str:
    """Why the driver checks do not apply."""
    return "" if environment.driver.version else "no NVIDIA driver here"


@CHECKS.add("profiling-restricted", needs=needs_driver)
def profiling_restricted(environment: Environment) -> Iterator[Sign]:
    """The driver's parameter, and no capability that lifts it."""
    if environment.driver.admin_only and not environment.may_read_counters:
        yield Sign(
            "/proc/driver/nvidia/params says RmProfilingAdminOnly: 1; CapEff in /proc/self/status lacks CAP_SYS_ADMIN and CAP_PERFMON."
        )


@CHECKS.add("devices-not-visible", needs=needs_driver)
def devices_not_visible(environment: Environment) -> Iterator[Sign]:
    """A driver without device files."""
    if not environment.driver.device_files:
        yield Sign(
            f"/proc/driver/nvidia/version says {environment.driver.version}; /dev/nvidia0 does not exist."
        )


@CHECKS.add("driver-too-old", needs=needs_driver)
def driver_too_old(environment: Environment) -> Iterator[Sign]:
    """The driver's version against the minimum for the framework's CUDA."""
    cuda = environment.cuda_of_framework
    oldest = _OLDEST.get(cuda)
    if oldest and parsed(environment.driver.version) < parsed(oldest):
        evidence = f"Driver {environment.driver.version}; CUDA {cuda} needs {oldest}."
        yield Sign(evidence, driver=oldest, cuda=str(cuda - 1))


@CHECKS.add("nvml-missing", needs=needs_driver)
def nvml_missing(environment: Environment) -> Iterator[Sign]:
    """The library does not open."""
    if environment.driver.nvml_error:
        yield Sign(environment.driver.nvml_error)


@CHECKS.add("devices-hidden", needs=needs_gpu)
def devices_hidden(environment: Environment) -> Iterator[Sign]:
    """The variable is set, and to nothing."""
    value = environment.variables.get("CUDA_VISIBLE_DEVICES")
    if value is not None and value.strip() in ("", "-1", "NoDevFiles"):
        yield Sign(f"CUDA_VISIBLE_DEVICES={value!r}")


@CHECKS.add("launch-blocking", needs=needs_gpu)
def launch_blocking(environment: Environment) -> Iterator[Sign]:
    """The variable is set to 1."""
    if environment.variables.get("CUDA_LAUNCH_BLOCKING") == "1":
        yield Sign("CUDA_LAUNCH_BLOCKING=1")
