"""Other checks: protobuf, our own hot loops, and the output folder."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.environment.facts import Environment
from stepscope.doctor.environment.tensorboard import is_protobuf_error
from stepscope.doctor.versions import requirement, satisfies
from stepscope.units import size

CHECKS: Checks[Environment] = Checks("environment")
SMALL_DISK = 2 << 30
_USERS_OF_PROTOBUF = (
    "tensorflow",
    "tensorflow-cpu",
    "tensorboard",
    "tb-nightly",
    "xprof",
    "tensorboard-plugin-profile",
)


@CHECKS.add("protobuf-version")
def protobuf_version(environment: Environment) -> Iterator[Sign]:
    """The installed version against what its users require; and failed imports that mention it."""
    python = environment.python
    installed = python.package("protobuf")
    wanted = list(_required(environment))
    if installed is not None:
        for user, specifier in wanted:
            if not satisfies(installed.version, specifier):
                evidence = f"protobuf {installed.version} is installed; {user} requires {specifier}."
                yield Sign(evidence, python=python.executable, specifier=specifier)
                return
    errors = [environment.tensorboard.error, *(plugin.error for plugin in python.plugins)]
    blamed = next((error for error in errors if is_protobuf_error(error)), "")
    if blamed:
        version = installed.version if installed else "missing"
        specifier = wanted[0][1] if wanted else ""
        yield Sign(f"{blamed} (protobuf {version})", python=python.executable, specifier=specifier)


def _required(environment: Environment) -> Iterator[tuple[str, str]]:
    for package in environment.python.packages:
        if package.name in _USERS_OF_PROTOBUF:
            for line in package.requires:
                name, specifier = requirement(line)
                if name == "protobuf" and "extra ==" not in line:
                    yield f"{package.name} {package.version}", specifier


@CHECKS.add("protobuf-in-python")
def protobuf_in_python(environment: Environment) -> Iterator[Sign]:
    """The variable that asks for it."""
    if environment.variables.get("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION") == "python":
        yield Sign("PROTOCOL_BUFFERS_PYTHON_IMPLEMENTATION=python")


@CHECKS.add("slow-path")
def slow_path(environment: Environment) -> Iterator[Sign]:
    """Modules without their compiled form."""
    if environment.interpreted:
        shown = ", ".join(environment.interpreted[:6]) + (" …" if len(environment.interpreted) > 6 else "")
        yield Sign(f"{len(environment.interpreted)} modules of stepscope.native are not compiled: {shown}.")


@CHECKS.add("folder-unwritable")
def folder_unwritable(environment: Environment) -> Iterator[Sign]:
    """A file was tried."""
    if environment.folder.error:
        yield Sign(f"{environment.folder.path}: {environment.folder.error}")


@CHECKS.add("disk-nearly-full")
def disk_nearly_full(environment: Environment) -> Iterator[Sign]:
    """Less room than a few profiles take."""
    free = environment.folder.free_bytes
    if not environment.folder.error and free < SMALL_DISK:
        yield Sign(f"{size(free)} free at {environment.folder.path}.")
