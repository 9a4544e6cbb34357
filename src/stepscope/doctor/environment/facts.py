"""What is known of a machine and an interpreter before anything is judged: plain data, so that a test can make it up."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

import msgspec

from stepscope.doctor.versions import Version, parsed

FRAMEWORKS = ("torch", "tensorflow", "jax")
# Packages that bring the module of that name.
BRINGS: Mapping[str, tuple[str, ...]] = {
    "tensorflow": (
        "tensorflow",
        "tensorflow-cpu",
        "tensorflow-gpu",
        "tf-nightly",
        "tf-nightly-cpu",
        "intel-tensorflow",
        "tensorflow-rocm",
    ),
    "tensorboard": ("tensorboard", "tb-nightly", "tensorflow-tensorboard"),
}


class Package(msgspec.Struct, frozen=True):
    """An installed distribution."""

    name: str
    version: str
    location: str = ""
    requires: list[str] = []
    binaries: list[str] = []


class Plugin(msgspec.Struct, frozen=True):
    """An entry point of TensorBoard, and why it cannot be imported."""

    name: str
    value: str
    package: str
    error: str = ""
    where: str = ""


class Interpreter(msgspec.Struct, frozen=True):
    """A Python, as the probe saw it from inside."""

    executable: str
    prefix: str
    version: str
    platform: str = "linux"
    machine: str = "x86_64"
    libc: str = ""
    packages: list[Package] = []
    plugins: list[Plugin] = []
    modules: dict[str, str | None] = {}
    cupti: list[str] = []

    def package(self, name: str) -> Package | None:
        """The installed distribution of this name."""
        return next((each for each in self.packages if each.name == name), None)

    def version_of(self, name: str) -> Version:
        """Its version; () if it is not installed."""
        found = self.package(name)
        return parsed(found.version) if found else ()

    def bringing(self, module: str) -> list[Package]:
        """The distributions that bring this module."""
        return [each for each in self.packages if each.name in BRINGS.get(module, (module,))]


@dataclass(frozen=True)
class Library:
    """A shared library of CUPTI: where it is, who would find it there, and what came of opening it."""

    path: str
    found_by: str
    version: int = 0
    error: str = ""
    size: int = 0


@dataclass(frozen=True)
class Driver:
    """NVIDIA's driver. `version` is empty where there is none; `admin_only` is None if unknown."""

    version: str = ""
    admin_only: bool | None = None
    device_files: tuple[str, ...] = ()
    nvml_error: str = ""


@dataclass(frozen=True)
class Process:
    """A running program that may hold CUPTI; `is_ancestor` if it started us."""

    pid: int
    command: str
    is_ancestor: bool = False


@dataclass(frozen=True)
class Tensorboard:
    """TensorBoard: the command that the shell would start with the Python behind it, and whether the package imports."""

    command: str = ""
    command_python: str = ""
    error: str = ""
    where: str = ""


@dataclass(frozen=True)
class Folder:
    """Where profiles will be written."""

    path: str
    error: str = ""
    free_bytes: int = 1 << 40


@dataclass(frozen=True)
class Environment:
    """All of it."""

    python: Interpreter
    driver: Driver = Driver()
    may_read_counters: bool = True
    cupti: tuple[Library, ...] = ()
    processes: tuple[Process, ...] = ()
    tensorboard: Tensorboard = Tensorboard()
    folder: Folder = Folder(".")
    variables: Mapping[str, str] = field(default_factory=dict)
    interpreted: tuple[str, ...] = ()

    @property
    def uses_gpu(self) -> bool:
        """Whether an NVIDIA device is there to be profiled, or a framework was installed that wants one."""
        return bool(self.driver.version or self.driver.device_files or self.cuda_of_framework)

    @property
    def cuda_of_framework(self) -> int:
        """The CUDA that the framework was built for (12, 13); 0 if for none."""
        for package in self.python.packages:
            digits = _cuda_in(package)
            if digits:
                return digits
        return 0


def _cuda_in(package: Package) -> int:
    """torch 2.11.0+cu130, jax-cuda13-plugin, nvidia-cuda-runtime-cu12 and nvidia-cuda-runtime 13.0 say it."""
    if package.name == "torch":
        found = re.search(r"\+cu(\d\d)", package.version)
    elif package.name.startswith("jax-cuda"):
        found = re.search(r"cuda(\d\d)", package.name)
    elif package.name.startswith("nvidia-cuda-"):
        found = re.search(r"-cu(\d\d)$", package.name) or re.match(r"(\d\d)\.", package.version)
    else:
        found = None
    return int(found[1]) if found else 0
