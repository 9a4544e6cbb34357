"""From this machine to its facts: files below a root, environment variables, and what the probe says of an interpreter.

Nothing here judges, nothing needs a device, and whatever cannot be read is left at its default.
"""

from __future__ import annotations

import glob
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from stepscope.doctor.environment import probe
from stepscope.doctor.environment.facts import (
    Driver,
    Environment,
    Folder,
    Interpreter,
    Library,
    Plugin,
    Process,
    Tensorboard,
)
from stepscope.errors import StepscopeError
from stepscope.native import interpreted

PROBE_SECONDS = 120
CAP_SYS_ADMIN = 21
CAP_PERFMON = 38
PROCESSES_LOOKED_AT = 20_000
_SYSTEM_FOLDERS = (
    "usr/local/cuda*/extras/CUPTI/lib64",
    "usr/local/cuda*/lib64",
    "usr/local/cuda*/targets/*/lib",
    "usr/lib/x86_64-linux-gnu",
    "usr/lib/aarch64-linux-gnu",
    "usr/lib64",
)
T = TypeVar("T")


@dataclass(frozen=True)
class Machine:
    """Where to look. Tests give a root of their own and variables that they made up."""

    root: Path = Path("/")
    variables: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    pid: int = field(default_factory=os.getpid)

    def text(self, path: str) -> str:
        """The content of a small file below the root; empty if there is none."""
        try:
            return (self.root / path).read_text("utf-8", "replace")
        except OSError:
            return ""


def survey(python: str | None = None, folder: str = ".", machine: Machine | None = None) -> Environment:
    """The facts of this machine and of an interpreter, our own by default."""
    machine = machine or Machine()
    inside = _Inside(python or sys.executable, machine)
    facts = inside.facts()
    return Environment(
        python=facts,
        driver=_driver(machine, inside),
        may_read_counters=_may_read_counters(machine),
        cupti=tuple(_cupti(machine, facts, inside)),
        processes=tuple(_processes(machine)),
        tensorboard=_tensorboard(machine, facts, inside),
        folder=_folder(folder),
        variables=machine.variables,
        interpreted=tuple(interpreted()) if python is None else (),
    )


@dataclass(frozen=True)
class _Inside:
    """Asks the probe inside an interpreter."""

    python: str
    machine: Machine

    def facts(self) -> Interpreter:
        answer = self._ask("facts")
        if not isinstance(answer, dict):
            raise StepscopeError(
                f"{self.python} cannot be examined: {answer}", fix="Name a Python 3.8 or newer with --python."
            )
        found = msgspec.convert(answer, Interpreter)
        if found.modules.get("tensorboard") is None:
            return found
        return msgspec.structs.replace(found, plugins=[self._tried(plugin) for plugin in found.plugins])

    def _tried(self, plugin: Plugin) -> Plugin:
        return msgspec.structs.replace(plugin, **self.failure("plugin", plugin.name, plugin.value))

    def failure(self, *what: str) -> dict[str, Any]:
        """`error` and `where`, both empty if all went well."""
        answer = self._ask(*what)
        return answer if isinstance(answer, dict) else {"error": answer, "where": ""}

    def opened(self, library: str) -> tuple[int, str]:
        """The version of the library, and why it cannot be opened."""
        answer = self._ask("load", library)
        return (answer["version"], answer["error"]) if isinstance(answer, dict) else (0, answer)

    def _ask(self, *what: str) -> dict[str, Any] | str:
        """The probe's answer, or in words why there is none."""
        source = Path(probe.__file__).read_text("utf-8")
        try:
            ended = subprocess.run(
                [self.python, "-c", source, *what],
                capture_output=True, text=True, errors="replace", timeout=PROBE_SECONDS, check=False,
                stdin=subprocess.DEVNULL, env=dict(self.machine.variables),
            )  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"no answer within {PROBE_SECONDS} s"
        except (OSError, ValueError) as error:
            return f"it cannot be started ({getattr(error, 'strerror', None) or error})"
        for line in reversed(ended.stdout.splitlines()):
            if line.startswith(probe.MARK):
                answer: dict[str, Any] = msgspec.json.decode(line.removeprefix(probe.MARK))
                return answer
        if ended.returncode < 0:
            return f"it was ended by signal {-ended.returncode}"
        last = ended.stderr.strip().splitlines()
        return last[-1] if last else f"it ended with status {ended.returncode}"


def _driver(machine: Machine, inside: _Inside) -> Driver:
    told = re.search(r"NVRM version:.*?(\d{3,}\.\d+(?:\.\d+)?)", machine.text("proc/driver/nvidia/version"))
    restricted = re.search(r"RmProfilingAdminOnly:\s*(\d)", machine.text("proc/driver/nvidia/params"))
    files = sorted(glob.glob(str(machine.root / "dev" / "nvidia[0-9]*")))  # noqa: PTH207
    version = told[1] if told else ""
    return Driver(
        version=version,
        admin_only=restricted[1] == "1" if restricted else None,
        device_files=tuple(Path(file).name for file in files),
        nvml_error=inside.opened("libnvidia-ml.so.1")[1] if version else "",
    )


def _may_read_counters(machine: Machine) -> bool:
    """CAP_SYS_ADMIN or CAP_PERFMON among the effective capabilities; without that information, no problem is assumed."""
    found = re.search(r"^CapEff:\s*([0-9a-fA-F]+)", machine.text("proc/self/status"), re.MULTILINE)
    return found is None or bool(
        int(found[1], 16) >> CAP_SYS_ADMIN & 1 or int(found[1], 16) >> CAP_PERFMON & 1
    )


def _cupti(machine: Machine, python: Interpreter, inside: _Inside) -> list[Library]:
    """Those of the interpreter's packages, of LD_LIBRARY_PATH and of the system, each file once."""
    places = [("the packages of this Python", path) for path in python.cupti]
    for folder in machine.variables.get("LD_LIBRARY_PATH", "").split(":"):
        places += [("LD_LIBRARY_PATH", path) for path in _libcupti(folder)] if folder else []
    for pattern in _SYSTEM_FOLDERS:
        for folder in sorted(glob.glob(str(machine.root / pattern))):  # noqa: PTH207
            places += [("the system", path) for path in _libcupti(folder)]
    found: dict[str, Library] = {}
    for found_by, path in places:
        real = os.path.realpath(path)
        if real not in found:
            version, error = inside.opened(path)
            found[real] = Library(
                path, found_by, version, error, Path(real).stat().st_size if Path(real).exists() else 0
            )
    return list(found.values())


def _libcupti(folder: str) -> list[str]:
    return sorted(glob.glob(f"{glob.escape(folder)}/libcupti.so*"))  # noqa: PTH207


def _processes(machine: Machine) -> list[Process]:
    """Our ancestors, and every process whose name a profiler has."""
    parents = _ancestors(machine)
    found = []
    try:
        numbers = [int(each.name) for each in (machine.root / "proc").iterdir() if each.name.isdigit()]
    except OSError:
        return []
    for pid in sorted(numbers)[:PROCESSES_LOOKED_AT]:
        command = machine.text(f"proc/{pid}/comm").strip()
        if command:
            found.append(Process(pid, command, pid in parents))
    return found


def _ancestors(machine: Machine) -> set[int]:
    seen: set[int] = set()
    pid = machine.pid
    while pid > 1:
        parent = re.search(r"^PPid:\s*(\d+)", machine.text(f"proc/{pid}/status"), re.MULTILINE)
        if parent is None or int(parent[1]) in seen:
            break
        pid = int(parent[1])
        seen.add(pid)
    return seen


def _tensorboard(machine: Machine, python: Interpreter, inside: _Inside) -> Tensorboard:
    command = shutil.which("tensorboard", path=machine.variables.get("PATH", "")) or ""
    if python.modules.get("tensorboard") is None:
        return Tensorboard(command, _shebang(command))
    failure = inside.failure("import", "tensorboard.main")
    return Tensorboard(command, _shebang(command), failure["error"], failure["where"])


def _shebang(command: str) -> str:
    """The Python that a script names in its first lines; also behind `exec`, as pip writes where paths are long."""
    try:
        with Path(command).open("rb") as file:
            head = file.read(1024).decode(errors="replace")
    except OSError:
        return ""
    long_way = re.search(r"^'{3}exec' [\"']?(.+?)[\"']? \"\$0\"", head, re.MULTILINE)
    found = long_way or re.match(r"#!\s*(\S.*)", head)
    return found[1].strip() if found else ""


def _folder(path: str) -> Folder:
    """Tried on the nearest folder that exists: what the job would do first."""
    nearest = Path(path).absolute()
    while not nearest.exists() and nearest != nearest.parent:
        nearest = nearest.parent
    try:
        with tempfile.TemporaryFile(dir=nearest):
            pass
        return Folder(str(path), "", shutil.disk_usage(nearest).free)
    except OSError as error:
        return Folder(str(path), f"{error.strerror or error} ({nearest})")
