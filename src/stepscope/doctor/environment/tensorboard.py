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

CHECKS: Checks[Environment] = Checks("environment", [])
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


@CHECKS.add(
    "tensorboard-other-python",
    "The command `tensorboard` belongs to another Python",
    cause="Plugins are found in the Python that runs TensorBoard. A plugin installed elsewhere never shows, and the Profile tab says "
    "that it has moved, or is missing.",
    fix="Start it as python -m tensorboard.main with the Python that has the plugin.",
)
def tensorboard_other_python(environment: Environment) -> Iterator[Sign]:
    """The shebang of the command against the interpreter that is examined."""
    found = environment.tensorboard
    theirs, ours = _interpreter(found.command_python, environment), environment.python.executable
    if not found.command or not theirs or Path(theirs).parent == Path(ours).parent:
        return
    has_own = environment.python.modules.get("tensorboard") is not None
    start = f"{ours} -m tensorboard.main --logdir DIR"
    fix = (
        start
        if has_own
        else f"{theirs} -m pip install stepscope xprof, or {ours} -m pip install tensorboard and {start}"
    )
    yield Sign(
        f"{found.command} runs {theirs}; the Python examined here is {ours}.",
        fix,
        severity=None if has_own else "info",
    )


def _interpreter(shebang: str, environment: Environment) -> str:
    """The Python that a shebang means; `env python3` goes through PATH."""
    words = shebang.split()
    if not words or "python" not in shebang:
        return ""
    if Path(words[0]).name == "env":
        return shutil.which(words[-1], path=environment.variables.get("PATH", "")) or ""
    return shebang if os.path.exists(shebang) else words[0]  # noqa: PTH110


@CHECKS.add(
    "no-profile-plugin",
    "TensorBoard has no plugin that shows profiles",
    cause="TensorBoard itself shows no profiles: its Profile tab only says that the plugin has moved. The plugin must be installed "
    "in the Python that runs TensorBoard.",
    fix="pip install stepscope into that Python, which adds its own tab (XProf's is another); or open the profile with stepscope serve.",
    needs=needs_tensorboard,
)
def no_profile_plugin(environment: Environment) -> Iterator[Sign]:
    """None of the known packages registers an entry point."""
    packages = [normal(plugin.package) for plugin in environment.python.plugins]
    if not set(packages) & set(SHOWS_PROFILES):
        others = f" (only {', '.join(sorted(set(packages)))})" if packages else ""
        yield Sign(
            f"No plugin for profiles among the entry points tensorboard_plugins of {environment.python.executable}{others}.",
            f"{environment.python.executable} -m pip install stepscope",
        )


@CHECKS.add(
    "plugin-broken",
    "A plugin of TensorBoard cannot be imported",
    cause="TensorBoard loads every plugin at its start. One that fails stops TensorBoard, or is skipped with one line in the log: the tab is "
    "missing without an explanation.",
    fix="Fix or uninstall the plugin.",
    severity="error",
    needs=needs_tensorboard,
)
def plugin_broken(environment: Environment) -> Iterator[Sign]:
    """Each plugin was imported in a process of its own. Other checks report what TensorBoard itself lacks."""
    if environment.tensorboard.error:
        return
    for plugin in environment.python.plugins:
        if plugin.error:
            where = f" ({plugin.where})" if plugin.where else ""
            yield Sign(
                f"{plugin.name} of {plugin.package}: {plugin.error}{where}",
                f"{environment.python.executable} -m pip install --force-reinstall {plugin.package}, or uninstall it.",
            )


@CHECKS.add(
    "plugin-name-twice",
    "Two plugins of TensorBoard have the same name",
    cause="TensorBoard refuses to start: `Duplicate plugins for name`. tensorboard-plugin-profile and xprof both call themselves profile.",
    fix="Uninstall one of the packages.",
    severity="error",
    needs=needs_tensorboard,
)
def plugin_name_twice(environment: Environment) -> Iterator[Sign]:
    """Names of entry points, and the packages that they come from."""
    names = Counter(plugin.name for plugin in environment.python.plugins)
    for name in sorted(name for name, times in names.items() if times > 1):
        packages = [plugin.package for plugin in environment.python.plugins if plugin.name == name]
        yield Sign(
            f"{name} comes from {' and '.join(packages)}.",
            f"{environment.python.executable} -m pip uninstall {packages[0]}",
        )


@CHECKS.add(
    "duplicate-tensorboard",
    "Several packages bring TensorBoard",
    cause="tensorboard and tb-nightly overwrite each other's files. TensorBoard detects it and exits: `Found more than one`.",
    fix="Uninstall all of them, then install one.",
    severity="error",
    needs=needs_tensorboard,
)
def duplicate_tensorboard(environment: Environment) -> Iterator[Sign]:
    """More than one distribution of the module."""
    names = sorted({package.name for package in environment.python.bringing("tensorboard")})
    if len(names) > 1:
        pip = f"{environment.python.executable} -m pip"
        yield Sign(
            f"Installed: {', '.join(names)}.",
            f"{pip} uninstall -y {' '.join(names)} && {pip} install tensorboard",
        )


@CHECKS.add(
    "pkg-resources-missing",
    "TensorBoard needs pkg_resources, which setuptools no longer includes",
    cause="TensorBoard up to 2.20 imports pkg_resources at its start; setuptools 82 removed it: `No module named 'pkg_resources'`.",
    fix="pip install 'setuptools<81', or TensorBoard 2.21 or newer.",
    severity="error",
    needs=needs_tensorboard,
)
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
            f"{python.executable} -m pip install 'setuptools<81'",
        )


@CHECKS.add(
    "tensorboard-broken",
    "TensorBoard cannot be imported",
    cause="A dependency is missing or has the wrong version.",
    fix="Reinstall it with pip install --force-reinstall tensorboard.",
    severity="error",
    needs=needs_tensorboard,
)
def tensorboard_broken(environment: Environment) -> Iterator[Sign]:
    """Any failure that no other check explains."""
    error = environment.tensorboard.error
    if error and "pkg_resources" not in error and not is_protobuf_error(error):
        where = f" ({environment.tensorboard.where})" if environment.tensorboard.where else ""
        yield Sign(
            f"{error}{where}", f"{environment.python.executable} -m pip install --force-reinstall tensorboard"
        )


@CHECKS.add(
    "wrong-platform-wheel",
    "XProf was installed from a wheel for another system",
    cause="Some wheels of xprof hold a binary for Windows only and are tagged for any system. pip takes them where no other fits, and the "
    "import ends in `_pywrap_profiler_plugin (unknown location)`.",
    fix="pip install 'xprof>=2.24' on glibc 2.35 or newer; elsewhere uninstall it and use stepscope.",
    severity="error",
)
def wrong_platform_wheel(environment: Environment) -> Iterator[Sign]:
    """Binaries of Windows, and none of this system."""
    if environment.python.platform == "win32":
        return
    for package in environment.python.packages:
        foreign = [name for name in package.binaries if name.endswith(".pyd")]
        if foreign and len(foreign) == len(package.binaries):
            libc = f" This system has {environment.python.libc}." if environment.python.libc else ""
            yield Sign(f"{package.name} {package.version} brings only {foreign[0]}.{libc}")


@CHECKS.add(
    "torch-tb-profiler",
    "The PyTorch plugin of TensorBoard is no longer maintained",
    cause="torch-tb-profiler was removed from its project in 2026; it stops at large traces and leaves out the input pipeline of new formats.",
    fix="Open the same files with stepscope report.",
    severity="info",
)
def torch_tb_profiler(environment: Environment) -> Iterator[Sign]:
    """It is installed."""
    package = environment.python.package("torch-tb-profiler")
    if package is not None:
        yield Sign(f"torch-tb-profiler {package.version} in {package.location or environment.python.prefix}.")


@CHECKS.add(
    "notebook-proxy",
    "TensorBoard behind a notebook's proxy may stay blank",
    cause="Hosted notebooks serve other ports through a proxy; XProf's pages ask for absolute addresses and get 403 or 404.",
    fix="Write a page instead: stepscope report PATH -o report.html, or stepscope.report(PATH) in a cell.",
    severity="info",
    needs=needs_tensorboard,
)
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
