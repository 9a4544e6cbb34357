"""Checks of NVIDIA's driver: present, new enough, permissive, and with devices visible to this process."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.environment.cupti import needs_gpu
from stepscope.doctor.environment.facts import Environment
from stepscope.doctor.versions import parsed

CHECKS: Checks[Environment] = Checks("environment", [])
# The oldest driver that runs programs of a CUDA of this major version.
_OLDEST = {11: "450.80", 12: "525.60", 13: "580.65"}


def needs_driver(environment: Environment) -> str:
    """Why the driver checks do not apply."""
    return "" if environment.driver.version else "no NVIDIA driver here"


@CHECKS.add(
    "profiling-restricted",
    "The driver lets only administrators profile",
    cause="RmProfilingAdminOnly is 1 and this process has neither CAP_SYS_ADMIN nor CAP_PERFMON. Hardware counters are refused "
    "(ERR_NVGPUCTRPERM), and older drivers refuse traces as well: CUPTI_ERROR_INSUFFICIENT_PRIVILEGES, and a profile without device rows.",
    fix="As root: echo 'options nvidia NVreg_RestrictProfilingToAdminUsers=0' > /etc/modprobe.d/nvidia-profiling.conf, then reboot. "
    "In a container: run it with --cap-add SYS_ADMIN, as root inside; --privileged is more than needed.",
    needs=needs_driver,
)
def profiling_restricted(environment: Environment) -> Iterator[Sign]:
    """The driver's parameter, and no capability that lifts it."""
    if environment.driver.admin_only and not environment.may_read_counters:
        yield Sign(
            "/proc/driver/nvidia/params says RmProfilingAdminOnly: 1; CapEff in /proc/self/status lacks CAP_SYS_ADMIN and CAP_PERFMON."
        )


@CHECKS.add(
    "devices-not-visible",
    "The driver is loaded, but its devices are not visible",
    cause="The container was started without devices: the driver's files are visible, /dev/nvidia0 is not. The framework then "
    "trains on the CPU, and profiles have no device events.",
    fix="Start the container with --gpus all (Docker), or --nv (Apptainer).",
    severity="error",
    needs=needs_driver,
)
def devices_not_visible(environment: Environment) -> Iterator[Sign]:
    """A driver without device files."""
    if not environment.driver.device_files:
        yield Sign(
            f"/proc/driver/nvidia/version says {environment.driver.version}; /dev/nvidia0 does not exist."
        )


@CHECKS.add(
    "driver-too-old",
    "The driver is older than the framework's CUDA",
    cause="A framework built for a newer CUDA than the driver supports falls back to the CPU, or fails at its first kernel; CUPTI returns "
    "CUPTI_ERROR_NOT_COMPATIBLE.",
    fix="Update the driver, or install the framework's build for an older CUDA.",
    severity="error",
    needs=needs_driver,
)
def driver_too_old(environment: Environment) -> Iterator[Sign]:
    """The driver's version against the minimum for the framework's CUDA."""
    cuda = environment.cuda_of_framework
    oldest = _OLDEST.get(cuda)
    if oldest and parsed(environment.driver.version) < parsed(oldest):
        fix = f"Update the driver to {oldest} or newer, or install the framework's build for CUDA {cuda - 1}."
        yield Sign(f"Driver {environment.driver.version}; CUDA {cuda} needs {oldest}.", fix)


@CHECKS.add(
    "nvml-missing",
    "NVML cannot be loaded",
    cause="libnvidia-ml.so.1 is part of the driver and provides utilisation, power, clocks and temperature. Without it a profile has no "
    "telemetry; usually a container has the compute capability but not utility.",
    fix="Start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility; on a host, reinstall the driver.",
    needs=needs_driver,
)
def nvml_missing(environment: Environment) -> Iterator[Sign]:
    """The library does not open."""
    if environment.driver.nvml_error:
        yield Sign(environment.driver.nvml_error)


@CHECKS.add(
    "devices-hidden",
    "CUDA_VISIBLE_DEVICES hides all devices",
    cause="With an empty value or -1 the framework sees no device, trains on the CPU, and the profile has host events only.",
    fix="unset CUDA_VISIBLE_DEVICES, or set it to the numbers of the devices to use.",
    needs=needs_gpu,
)
def devices_hidden(environment: Environment) -> Iterator[Sign]:
    """The variable is set, and to nothing."""
    value = environment.variables.get("CUDA_VISIBLE_DEVICES")
    if value is not None and value.strip() in ("", "-1", "NoDevFiles"):
        yield Sign(f"CUDA_VISIBLE_DEVICES={value!r}")


@CHECKS.add(
    "launch-blocking",
    "CUDA_LAUNCH_BLOCKING makes every launch wait",
    cause="The host waits for each kernel: steps are slower, nothing overlaps, and a profile shows synchronisation that "
    "the job does not have otherwise.",
    fix="unset CUDA_LAUNCH_BLOCKING before profiling.",
    needs=needs_gpu,
)
def launch_blocking(environment: Environment) -> Iterator[Sign]:
    """The variable is set to 1."""
    if environment.variables.get("CUDA_LAUNCH_BLOCKING") == "1":
        yield Sign("CUDA_LAUNCH_BLOCKING=1")
