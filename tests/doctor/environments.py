"""A healthy environment made up of facts, one change for each check, and interpreters with packages that are mere shells."""

from __future__ import annotations

import re
import sys
import venv
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path
from typing import Any

import msgspec

from stepscope.doctor.environment.facts import (
    Driver,
    Environment,
    Folder,
    Interpreter,
    Library,
    Package,
    Plugin,
    Process,
    Tensorboard,
)

PYTHON = "/venv/bin/python"
CUPTI = "/venv/lib/python3.11/site-packages/nvidia/cu13/lib/libcupti.so.13"
XPROF = Plugin("profile", "xprof.profile_plugin_loader:ProfilePluginLoader", "xprof")
HEALTHY = Environment(
    python=Interpreter(
        executable=PYTHON,
        prefix="/venv",
        version="3.11.7",
        libc="glibc 2.36",
        packages=[
            Package("torch", "2.13.0+cu130"),
            Package("tensorflow", "2.21.0", requires=["protobuf<8.0.0,>=6.31.1"]),
            Package("jax", "0.11.0"),
            Package("jaxlib", "0.11.0"),
            Package("jax-cuda13-plugin", "0.11.0"),
            Package("tensorboard", "2.21.0", requires=["protobuf!=4.24.0,>=3.19.6"]),
            Package("xprof", "2.24.1", binaries=["xprof/convert/profiler_plugin_c_api.so"]),
            Package("protobuf", "7.36.2"),
            Package("setuptools", "82.0"),
        ],
        plugins=[XPROF],
        modules={"torch": "t", "tensorflow": "t", "jax": "j", "tensorboard": "t", "pkg_resources": None},
        cupti=[CUPTI],
    ),
    driver=Driver("580.82.07", admin_only=True, device_files=("nvidia0",)),
    may_read_counters=True,
    cupti=(Library(CUPTI, "the packages of this Python", 130000),),
    processes=(Process(1, "systemd", True), Process(9, "bash", True), Process(77, "python")),
    tensorboard=Tensorboard("/venv/bin/tensorboard", PYTHON),
    folder=Folder("logs"),
    variables={"PATH": "/usr/bin", "CUDA_VISIBLE_DEVICES": "0,1", "TF_CPP_MIN_LOG_LEVEL": "1"},
)


def python(**changed: Any) -> Environment:
    """The healthy one with another interpreter."""
    return replace(HEALTHY, python=msgspec.structs.replace(HEALTHY.python, **changed))


def packages(*changed: Package, without: tuple[str, ...] = (), **more: Any) -> Environment:
    """The healthy one with other versions of these packages."""
    gone = {*without, *(package.name for package in changed)}
    kept = [package for package in HEALTHY.python.packages if package.name not in gone]
    return python(packages=[*kept, *changed], **more)


def variables(**given: str) -> Environment:
    """The healthy one with these variables."""
    return replace(HEALTHY, variables={**HEALTHY.variables, **given})


def driver(**given: Any) -> Environment:
    """The healthy one with another driver."""
    return replace(HEALTHY, driver=replace(HEALTHY.driver, **given))


def processes(*names: str, is_ancestor: bool = False) -> Environment:
    """The healthy one with these programs running."""
    found = tuple(Process(100 + place, name, is_ancestor) for place, name in enumerate(names))
    return replace(HEALTHY, processes=(*HEALTHY.processes, *found))


OTHER_CUPTI = Library("/usr/local/cuda-12.4/extras/CUPTI/lib64/libcupti.so.12", "LD_LIBRARY_PATH", 22)
SICK: dict[str, list[Environment]] = {
    "no-framework": [python(modules={"torch": None, "tensorflow": None, "jax": None}, packages=[])],
    "framework-broken": [python(modules={**HEALTHY.python.modules, "tensorflow": None})],
    "duplicate-tensorflow": [packages(Package("tensorflow-cpu", "2.21.0"))],
    "torch-empty-stacks": [packages(Package("torch", "2.1.2+cu121"))],
    "torch-old-clock": [packages(Package("torch", "2.3.0"))],
    "jax-versions": [packages(Package("jaxlib", "0.12.0")), packages(Package("jax-cuda13-plugin", "0.11.2"))],
    "installed-twice": [packages(Package("torch", "2.13.0", "/a"), Package("torch", "2.12.0", "/b"))],
    "profiling-restricted": [replace(HEALTHY, may_read_counters=False)],
    "devices-not-visible": [driver(device_files=())],
    "driver-too-old": [driver(version="550.54.15")],
    "nvml-missing": [driver(nvml_error="libnvidia-ml.so.1: cannot open shared object file")],
    "devices-hidden": [variables(CUDA_VISIBLE_DEVICES=""), variables(CUDA_VISIBLE_DEVICES="-1")],
    "launch-blocking": [variables(CUDA_LAUNCH_BLOCKING="1")],
    "cupti-missing": [replace(HEALTHY, cupti=())],
    "cupti-unloadable": [replace(HEALTHY, cupti=(Library(CUPTI, "the packages of this Python", error="file too short"),))],
    "cupti-versions": [replace(HEALTHY, cupti=(*HEALTHY.cupti, OTHER_CUPTI))],
    "another-profiler": [
        variables(CUDA_INJECTION64_PATH="/opt/nsight/libToolsInjection64.so"),
        variables(NSYS_PROFILING_SESSION_ID="7"),
        variables(LD_PRELOAD="/opt/nsight/libToolsInjectionProxy64.so"),
        processes("nsys", is_ancestor=True),
    ],
    "dcgm-running": [processes("nv-hostengine")],
    "profilers-beside": [processes("ncu")],
    "kineto-daemon-absent": [variables(KINETO_USE_DAEMON="1")],
    "errors-hidden": [variables(TF_CPP_MIN_LOG_LEVEL="3")],
    "tensorboard-other-python": [replace(HEALTHY, tensorboard=Tensorboard("/usr/local/bin/tensorboard", "/usr/bin/python3"))],
    "no-profile-plugin": [packages(without=("xprof",), plugins=[])],
    "plugin-broken": [python(plugins=[msgspec.structs.replace(XPROF, error="ImportError: no GLIBC_2.35", where="a.py:3")])],
    "plugin-name-twice": [python(plugins=[XPROF, Plugin("profile", "t:P", "tensorboard-plugin-profile")])],
    "duplicate-tensorboard": [packages(Package("tb-nightly", "2.22.0a0"))],
    "pkg-resources-missing": [
        packages(Package("tensorboard", "2.20.0")),
        replace(HEALTHY, tensorboard=Tensorboard(error="ModuleNotFoundError: No module named 'pkg_resources'")),
    ],
    "tensorboard-broken": [replace(HEALTHY, tensorboard=Tensorboard(error="ImportError: numpy.core failed", where="b.py:9"))],
    "wrong-platform-wheel": [packages(Package("xprof", "2.22.1", binaries=["xprof/convert/_pywrap_profiler_plugin.pyd"]))],
    "torch-tb-profiler": [packages(Package("torch-tb-profiler", "0.4.3"))],
    "notebook-proxy": [variables(JUPYTERHUB_SERVICE_PREFIX="/user/me/")],
    "protobuf-version": [
        packages(Package("protobuf", "3.20.3")),
        replace(HEALTHY, tensorboard=Tensorboard(error="TypeError: Descriptors cannot be created directly.")),
    ],
    "protobuf-in-python": [variables(PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION="python")],
    "slow-path": [replace(HEALTHY, interpreted=("wire", "events"))],
    "folder-unwritable": [replace(HEALTHY, folder=Folder("/logs", "Read-only file system"))],
    "disk-nearly-full": [replace(HEALTHY, folder=Folder("/logs", free_bytes=100 << 20))],
}  # fmt: skip


def interpreter(folder: Path) -> tuple[str, Path]:
    """A Python of its own without packages, and where they would be."""
    venv.create(folder, with_pip=False, symlinks=True)
    version = f"python{sys.version_info.major}.{sys.version_info.minor}"
    return str(folder / "bin" / "python"), folder / "lib" / version / "site-packages"


def link_installed(place: Path, name: str) -> None:
    """A package that is installed here, with all that it needs: no copies, and nothing to download."""
    try:
        found = distribution(name)
    except PackageNotFoundError:  # needed on other systems only
        return
    new = [top for top in _tops(found) if not (place / top).exists()]
    if not new:
        return
    for top in new:
        (place / top).symlink_to(str(found.locate_file(top)))
    for line in found.requires or ():
        if "extra ==" not in line:
            link_installed(place, re.split(r"[^\w.-]", line)[0])


def _tops(found: Distribution) -> set[str]:
    """What the package put into the folder of packages."""
    return {file.parts[0] for file in found.files or ()} - {"..", "__pycache__"}


def shell(
    place: Path, name: str, version: str, files: Mapping[str, str], entry: str = "", requires: str = ""
) -> None:
    """A package with these files, as pip would have installed it. `entry` is a plugin of TensorBoard."""
    facts = place / f"{name.replace('-', '_')}-{version}.dist-info"
    facts.mkdir(parents=True)
    needs = f"Requires-Dist: {requires}\n" if requires else ""
    (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n{needs}")
    if entry:
        (facts / "entry_points.txt").write_text(f"[tensorboard_plugins]\n{entry}\n")
    lines = []
    for path, content in files.items():
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_text(content)
        lines.append(f"{path},,")
    (facts / "RECORD").write_text("\n".join(lines))
