"""Checks of CUPTI, from which PyTorch, TensorFlow and JAX get the events of NVIDIA devices."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.environment.facts import Environment, Library

CHECKS: Checks[Environment] = Checks("environment", [])
_WHEEL = {11: "nvidia-cuda-cupti-cu11", 12: "nvidia-cuda-cupti-cu12", 13: "nvidia-cuda-cupti"}
_ON_THE_PATH = ("the packages of this Python", "LD_LIBRARY_PATH")


def needs_gpu(environment: Environment) -> str:
    """Why the device checks do not apply."""
    return "" if environment.uses_gpu else "no NVIDIA driver here, and no framework that needs one"


@CHECKS.add(
    "cupti-missing",
    "CUPTI is not installed",
    cause="Without libcupti the profilers of PyTorch, TensorFlow and JAX record the host only: no kernels, no copies. "
    "TensorFlow says `could not load dynamic library 'libcupti.so'`, JAX `CUPTI could not be loaded`.",
    fix="pip install nvidia-cuda-cupti-cu12 (nvidia-cuda-cupti for CUDA 13), or install the CUDA toolkit and add its "
    "extras/CUPTI/lib64 to LD_LIBRARY_PATH.",
    severity="error",
    needs=needs_gpu,
)
def cupti_missing(environment: Environment) -> Iterator[Sign]:
    """No library anywhere. PyTorch with CUDA has CUPTI linked into itself."""
    if environment.cupti or _is_linked_in(environment):
        return
    wheel = _WHEEL.get(environment.cuda_of_framework, _WHEEL[12])
    where = "the packages of this Python, LD_LIBRARY_PATH or /usr/local/cuda*"
    yield Sign(f"No libcupti.so in {where}.", f"{environment.python.executable} -m pip install {wheel}")


def _is_linked_in(environment: Environment) -> bool:
    """Whether PyTorch is the only framework: its builds for CUDA carry CUPTI or bring its package."""
    torch = environment.python.package("torch")
    others = environment.python.bringing("tensorflow") or environment.python.package("jax")
    return torch is not None and "+cpu" not in torch.version and not others


@CHECKS.add(
    "cupti-unloadable",
    "CUPTI cannot be loaded",
    cause="The library exists, but the dynamic linker rejects it: it was built for another machine, is truncated, or needs a library "
    "that is missing. Profiles then have host events only.",
    fix="Reinstall CUPTI, with the same major version as the framework's CUDA.",
    severity="error",
    needs=needs_gpu,
)
def cupti_unloadable(environment: Environment) -> Iterator[Sign]:
    """Every library that a framework would find fails to open."""
    tried = [each for each in environment.cupti if each.found_by in _ON_THE_PATH] or list(environment.cupti)
    if tried and all(each.error for each in tried):
        wheel = _WHEEL.get(environment.cuda_of_framework, _WHEEL[12])
        fix = f"{environment.python.executable} -m pip install --force-reinstall {wheel}"
        yield Sign("; ".join(f"{each.path}: {each.error}" for each in tried[:3]), fix)


@CHECKS.add(
    "cupti-versions",
    "Several versions of CUPTI are on the path",
    cause="LD_LIBRARY_PATH comes before the library that the framework was built with. A CUPTI of another CUDA version then returns "
    "CUPTI_ERROR_NOT_INITIALIZED, or no events.",
    fix="Remove the other CUPTI from LD_LIBRARY_PATH in the shell that starts the job.",
    needs=needs_gpu,
)
def cupti_versions(environment: Environment) -> Iterator[Sign]:
    """Libraries of different versions, of which LD_LIBRARY_PATH offers at least one."""
    usable = [each for each in environment.cupti if each.found_by in _ON_THE_PATH]
    offered = [each for each in usable if each.found_by == "LD_LIBRARY_PATH"]
    if not offered or len({_identity(each) for each in usable}) < 2:
        return
    evidence = "; ".join(f"{_named(each)} by {each.found_by}" for each in usable)
    folders = ", ".join(sorted({os.path.dirname(each.path) for each in offered}))  # noqa: PTH120
    yield Sign(evidence, f"Remove {folders} from LD_LIBRARY_PATH in the shell that starts the job.")


def _identity(library: Library) -> tuple[str, int]:
    """Libraries with the same name and version, or the same size if the version is unknown, are the same."""
    return _soname(library.path), library.version or library.size


def _soname(path: str) -> str:
    found = re.search(r"libcupti\.so(?:\.(\d+))?", path)
    return found[1] or "" if found else ""


def _named(library: Library) -> str:
    return f"{library.path} (API {library.version})" if library.version else library.path
