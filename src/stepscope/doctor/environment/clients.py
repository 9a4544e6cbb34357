"""Checks for other clients of CUPTI: before CUDA 13.2 it serves only one at a time."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.environment.facts import Environment

CHECKS: Checks[Environment] = Checks("environment")
_INJECTED = re.compile(
    r"(?i)^(CUDA_INJECTION(32|64)_PATH|NVTX_INJECTION(32|64)_PATH|NSYS_.+|QUADD_.+|NV_NSIGHT_.+|NVPROF_.+)$"
)
_PRELOADED = re.compile(r"(?i)libToolsInjection|libcupti_trace|nsight|libnvperf|libdcgm|librocprof")
_PROFILERS = re.compile(
    r"^(nsys|nsys-launcher|ncu|nv-nsight-cu-cli|nvprof|dlprof|cuda-gdb|compute-sanitiz.*)$"
)
_DCGM = re.compile(r"^(nv-hostengine|dcgm-exporter|dcgmproftester.*|nvsm.*)$")
_DYNOLOG = re.compile(r"^dynolog")


@CHECKS.add("another-profiler")
def another_profiler(environment: Environment) -> Iterator[Sign]:
    """Variables by which tools inject themselves, preloaded libraries, and ancestors that are profilers."""
    injected = [name for name, value in environment.variables.items() if _INJECTED.match(name) and value]
    if injected:
        values = ", ".join(f"{name}={environment.variables[name]}" for name in sorted(injected)[:3])
        yield Sign(values, "injected", variables=" ".join(sorted(injected)))
    preloaded = environment.variables.get("LD_PRELOAD", "")
    if _PRELOADED.search(preloaded):
        yield Sign(f"LD_PRELOAD={preloaded}", "injected", variables="LD_PRELOAD")
    for process in environment.processes:
        if process.is_ancestor and _PROFILERS.match(process.command):
            yield Sign(
                f"This process was started by {process.command} (pid {process.pid}).",
                tool=process.command,
            )


@CHECKS.add("dcgm-running")
def dcgm_running(environment: Environment) -> Iterator[Sign]:
    """Its host engine or exporter is among the processes."""
    found = [process for process in environment.processes if _DCGM.match(process.command)]
    if found:
        yield Sign(", ".join(f"{process.command} (pid {process.pid})" for process in found[:3]))


@CHECKS.add("profilers-beside")
def profilers_beside(environment: Environment) -> Iterator[Sign]:
    """Profilers that did not start this process."""
    found = [
        each for each in environment.processes if _PROFILERS.match(each.command) and not each.is_ancestor
    ]
    if found:
        yield Sign(", ".join(f"{process.command} (pid {process.pid})" for process in found[:3]))


@CHECKS.add("kineto-daemon-absent")
def kineto_daemon_absent(environment: Environment) -> Iterator[Sign]:
    """The variable is set and no dynolog is among the processes."""
    value = environment.variables.get("KINETO_USE_DAEMON", "")
    if value not in ("", "0") and not any(_DYNOLOG.match(each.command) for each in environment.processes):
        yield Sign(f"KINETO_USE_DAEMON={value}, and no process here is called dynolog.")


@CHECKS.add("errors-hidden")
def errors_hidden(environment: Environment) -> Iterator[Sign]:
    """The level that also hides errors."""
    value = environment.variables.get("TF_CPP_MIN_LOG_LEVEL", "")
    if value.isdigit() and int(value) >= 3:
        yield Sign(f"TF_CPP_MIN_LOG_LEVEL={value}")
