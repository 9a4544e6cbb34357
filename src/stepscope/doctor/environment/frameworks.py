"""Checks of the frameworks that record."""

from __future__ import annotations

import re
from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.environment.facts import BRINGS, FRAMEWORKS, Environment, Interpreter
from stepscope.doctor.versions import parsed

CHECKS: Checks[Environment] = Checks("environment")


@CHECKS.add("no-framework")
def no_framework(environment: Environment) -> Iterator[Sign]:
    """Not one of their modules is found."""
    if not any(environment.python.modules.get(name) is not None for name in FRAMEWORKS):
        yield Sign(f"{environment.python.executable} finds no module torch, tensorflow or jax.")


@CHECKS.add("framework-broken")
def framework_broken(environment: Environment) -> Iterator[Sign]:
    """A distribution without its module."""
    for module in FRAMEWORKS:
        packages = environment.python.bringing(module)
        if packages and module in environment.python.modules and environment.python.modules[module] is None:
            name = packages[0].name
            yield Sign(
                f"pip lists {name} {packages[0].version}, and there is no module {module}.",
                python=environment.python.executable,
                package=name,
            )


@CHECKS.add("duplicate-tensorflow")
def duplicate_tensorflow(environment: Environment) -> Iterator[Sign]:
    """More than one distribution of the module."""
    names = sorted({package.name for package in environment.python.bringing("tensorflow")})
    if len(names) > 1:
        yield Sign(
            f"Installed: {', '.join(names)}.",
            python=environment.python.executable,
            packages=" ".join(names),
        )


@CHECKS.add("torch-empty-stacks")
def torch_empty_stacks(environment: Environment) -> Iterator[Sign]:
    """The versions between the fault and its fix."""
    version = environment.python.version_of("torch")
    if (2, 0) <= version < (2, 5):
        yield Sign(f"torch {'.'.join(map(str, version))}.")


@CHECKS.add("torch-old-clock")
def torch_old_clock(environment: Environment) -> Iterator[Sign]:
    """PyTorch before 2.4."""
    version = environment.python.version_of("torch")
    if version and version < (2, 4):
        yield Sign(f"torch {'.'.join(map(str, version))}.")


@CHECKS.add("jax-versions")
def jax_versions(environment: Environment) -> Iterator[Sign]:
    """jax >= jaxlib >= plugin, by their version numbers."""
    python = environment.python
    jax, jaxlib = python.version_of("jax"), python.version_of("jaxlib")
    if jax and jaxlib and jaxlib > jax:
        evidence = f"jaxlib {_text(jaxlib)} is newer than jax {_text(jax)}."
        yield Sign(evidence, python=python.executable, extra=_extra(python))
    for package in python.packages:
        is_plugin = package.name.startswith("jax-cuda") and package.name.endswith("plugin")
        if is_plugin and jaxlib and parsed(package.version) > jaxlib:
            yield Sign(
                f"{package.name} {package.version} is newer than jaxlib {_text(jaxlib)}.",
                python=python.executable,
                extra=package.name.removeprefix("jax-").removesuffix("-plugin"),
            )


@CHECKS.add("installed-twice")
def installed_twice(environment: Environment) -> Iterator[Sign]:
    """The same name in two folders, for the packages that matter here."""
    names = {*FRAMEWORKS, *BRINGS["tensorboard"], "protobuf", "xprof", "stepscope"}
    for name in sorted(names):
        found = [each for each in environment.python.packages if each.name == name]
        if len({each.location for each in found}) > 1:
            first, second = found[0], found[1]
            yield Sign(
                f"{name} {first.version} in {first.location}, and {second.version} in {second.location}.",
                python=environment.python.executable,
                package=name,
            )


def _extra(python: Interpreter) -> str:
    """The extra that installs the JAX packages which are there."""
    plugins = [each.name for each in python.packages if re.fullmatch(r"jax-cuda\d+-plugin", each.name)]
    return plugins[0].removeprefix("jax-").removesuffix("-plugin") if plugins else "cpu"


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
