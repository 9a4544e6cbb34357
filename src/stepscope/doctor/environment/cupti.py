"""Checks of CUPTI, from which PyTorch, TensorFlow and JAX get the events of NVIDIA devices."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.environment.facts import Environment, Library

CHECKS: Checks[Environment] = Checks("environment")
_WHEEL = {11: "nvidia-cuda-cupti-cu11", 12: "nvidia-cuda-cupti-cu12", 13: "nvidia-cuda-cupti"}
_ON_THE_PATH = ("the packages of this Python", "LD_LIBRARY_PATH")


def needs_gpu(environment: Environment) -> str:
    """Why the device checks do not apply."""
    return "" if environment.uses_gpu else "no NVIDIA driver here, and no framework that needs one"


@CHECKS.add("cupti-missing", needs=needs_gpu)
def cupti_missing(environment: Environment) -> Iterator[Sign]:
    """No library anywhere. PyTorch with CUDA has CUPTI linked into itself."""
    if environment.cupti or _is_linked_in(environment):
        return
    wheel = _WHEEL.get(environment.cuda_of_framework, _WHEEL[12])
    where = "the packages of this Python, LD_LIBRARY_PATH or /usr/local/cuda*"
    yield Sign(f"No libcupti.so in {where}.", python=environment.python.executable, wheel=wheel)


def _is_linked_in(environment: Environment) -> bool:
    """Whether PyTorch is the only framework: its builds for CUDA carry CUPTI or bring its package."""
    torch = environment.python.package("torch")
    others = environment.python.bringing("tensorflow") or environment.python.package("jax")
    return torch is not None and "+cpu" not in torch.version and not others


@CHECKS.add("cupti-unloadable", needs=needs_gpu)
def cupti_unloadable(environment: Environment) -> Iterator[Sign]:
    """Every library that a framework would find fails to open."""
    tried = [each for each in environment.cupti if each.found_by in _ON_THE_PATH] or list(environment.cupti)
    if tried and all(each.error for each in tried):
        wheel = _WHEEL.get(environment.cuda_of_framework, _WHEEL[12])
        evidence = "; ".join(f"{each.path}: {each.error}" for each in tried[:3])
        yield Sign(evidence, python=environment.python.executable, wheel=wheel)


@CHECKS.add("cupti-versions", needs=needs_gpu)
def cupti_versions(environment: Environment) -> Iterator[Sign]:
    """Libraries of different versions, of which LD_LIBRARY_PATH offers at least one."""
    usable = [each for each in environment.cupti if each.found_by in _ON_THE_PATH]
    offered = [each for each in usable if each.found_by == "LD_LIBRARY_PATH"]
    if not offered or len({_identity(each) for each in usable}) < 2:
        return
    evidence = "; ".join(f"{_named(each)} by {each.found_by}" for each in usable)
    folders = ", ".join(sorted({os.path.dirname(each.path) for each in offered}))  # noqa: PTH120
    yield Sign(evidence, folders=folders)


def _identity(library: Library) -> tuple[str, int]:
    """Libraries with the same name and version, or the same size if the version is unknown, are the same."""
    return _soname(library.path), library.version or library.size


def _soname(path: str) -> str:
    found = re.search(r"libcupti\.so(?:\.(\d+))?", path)
    return found[1] or "" if found else ""


def _named(library: Library) -> str:
    return f"{library.path} (API {library.version})" if library.version else library.path
