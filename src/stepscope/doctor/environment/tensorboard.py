"""Checks of TensorBoard: which Python it runs in, whether it starts, and whether its plugins do."""

from __future__ import annotations

import os
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.environment.facts import Environment
from stepscope.doctor.versions import normal, parsed

CHECKS: Checks[Environment] = Checks("environment")
SHOWS_PROFILES = (
    "xprof",
    "xprof-nightly",
    "tensorboard-plugin-profile",
    "tbp-nightly",
    "torch-tb-profiler",
    "stepscope",
)


def needs_tensorboard(environment: Environment) -> str:
    """Why the TensorBoard checks do not apply."""
    has = environment.python.modules.get("tensorboard") is not None or environment.python.bringing(
        "tensorboard"
    )
    return "" if has else "TensorBoard is not installed in this Python"


@CHECKS.add("tensorboard-other-python")
def tensorboard_other_python(environment: Environment) -> Iterator[Sign]:
    """The shebang of the command against the interpreter that is examined."""
    found = environment.tensorboard
    theirs, ours = _interpreter(found.command_python, environment), environment.python.executable
    if not found.command or not theirs or Path(theirs).parent == Path(ours).parent:
        return
    has_own = environment.python.modules.get("tensorboard") is not None
    yield Sign(
        f"{found.command} runs {theirs}; the Python examined here is {ours}.",
        "" if has_own else "none-here",
        python=ours,
        other=theirs,
    )


def _interpreter(shebang: str, environment: Environment) -> str:
    """The Python that a shebang means; `env python3` goes through PATH."""
    words = shebang.split()
    if not words or "python" not in shebang:
        return ""
    if Path(words[0]).name == "env":
        return shutil.which(words[-1], path=environment.variables.get("PATH", "")) or ""
    return shebang if os.path.exists(shebang) else words[0]  # noqa: PTH110


@CHECKS.add("no-profile-plugin", needs=needs_tensorboard)
def no_profile_plugin(environment: Environment) -> Iterator[Sign]:
    """None of the known packages registers an entry point."""
    packages = [normal(plugin.package) for plugin in environment.python.plugins]
    if not set(packages) & set(SHOWS_PROFILES):
        others = f" (only {', '.join(sorted(set(packages)))})" if packages else ""
        yield Sign(
            f"No plugin for profiles among the entry points tensorboard_plugins of {environment.python.executable}{others}.",
            python=environment.python.executable,
        )


@CHECKS.add("plugin-broken", needs=needs_tensorboard)
def plugin_broken(environment: Environment) -> Iterator[Sign]:
    """Each plugin was imported in a process of its own. Other checks report what TensorBoard itself lacks."""
    if environment.tensorboard.error:
        return
    for plugin in environment.python.plugins:
        if plugin.error:
            where = f" ({plugin.where})" if plugin.where else ""
            yield Sign(
                f"{plugin.name} of {plugin.package}: {plugin.error}{where}",
                python=environment.python.executable,
                package=plugin.package,
            )


@CHECKS.add("plugin-name-twice", needs=needs_tensorboard)
def plugin_name_twice(environment: Environment) -> Iterator[Sign]:
    """Names of entry points, and the packages that they come from."""
    names = Counter(plugin.name for plugin in environment.python.plugins)
    for name in sorted(name for name, times in names.items() if times > 1):
        packages = [plugin.package for plugin in environment.python.plugins if plugin.name == name]
        yield Sign(
            f"{name} comes from {' and '.join(packages)}.",
            python=environment.python.executable,
            package=packages[0],
        )


@CHECKS.add("duplicate-tensorboard", needs=needs_tensorboard)
def duplicate_tensorboard(environment: Environment) -> Iterator[Sign]:
    """More than one distribution of the module."""
    names = sorted({package.name for package in environment.python.bringing("tensorboard")})
    if len(names) > 1:
        yield Sign(
            f"Installed: {', '.join(names)}.",
            python=environment.python.executable,
            packages=" ".join(names),
        )


@CHECKS.add("pkg-resources-missing", needs=needs_tensorboard)
def pkg_resources_missing(environment: Environment) -> Iterator[Sign]:
    """The module is not there, and TensorBoard is of a version that wants it."""
    python = environment.python
    versions = [package.version for package in python.bringing("tensorboard")]
    old = [version for version in versions if parsed(version) < (2, 21)]
    blamed = "pkg_resources" in environment.tensorboard.error
    if blamed or (old and python.modules.get("pkg_resources") is None):
        setuptools = python.package("setuptools")
        installed = f"setuptools {setuptools.version}" if setuptools else "no setuptools"
        yield Sign(
            f"tensorboard {', '.join(versions)} with {installed}; no module pkg_resources.",
            python=python.executable,
        )


@CHECKS.add("tensorboard-broken", needs=needs_tensorboard)
def tensorboard_broken(environment: Environment) -> Iterator[Sign]:
    """Any failure that no other check explains."""
    error = environment.tensorboard.error
    if error and "pkg_resources" not in error and not is_protobuf_error(error):
        where = f" ({environment.tensorboard.where})" if environment.tensorboard.where else ""
        yield Sign(f"{error}{where}", python=environment.python.executable)


@CHECKS.add("wrong-platform-wheel")
def wrong_platform_wheel(environment: Environment) -> Iterator[Sign]:
    """Binaries of Windows, and none of this system."""
    if environment.python.platform == "win32":
        return
    for package in environment.python.packages:
        foreign = [name for name in package.binaries if name.endswith(".pyd")]
        if foreign and len(foreign) == len(package.binaries):
            libc = f" This system has {environment.python.libc}." if environment.python.libc else ""
            yield Sign(f"{package.name} {package.version} brings only {foreign[0]}.{libc}")


@CHECKS.add("torch-tb-profiler")
def torch_tb_profiler(environment: Environment) -> Iterator[Sign]:
    """It is installed."""
    package = environment.python.package("torch-tb-profiler")
    if package is not None:
        yield Sign(f"torch-tb-profiler {package.version} in {package.location or environment.python.prefix}.")


@CHECKS.add("notebook-proxy", needs=needs_tensorboard)
def notebook_proxy(environment: Environment) -> Iterator[Sign]:
    """Variables that hosted notebooks set."""
    names = ("JUPYTERHUB_SERVICE_PREFIX", "COLAB_RELEASE_TAG", "COLAB_GPU", "KAGGLE_KERNEL_RUN_TYPE")
    found = [name for name in names if name in environment.variables]
    if found:
        yield Sign(f"{', '.join(found)} in the environment.")


def is_protobuf_error(error: str) -> bool:
    """Whether a failed import complains of protobuf."""
    words = ("protobuf", "Descriptors cannot be created", "gencode", "_pb2", "descriptor pool")
    return any(word in error for word in words)
