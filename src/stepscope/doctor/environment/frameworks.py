"""Checks of the frameworks that record."""

from __future__ import annotations

from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.environment.facts import BRINGS, FRAMEWORKS, Environment
from stepscope.doctor.versions import parsed

CHECKS: Checks[Environment] = Checks("environment", [])


@CHECKS.add(
    "no-framework",
    "None of PyTorch, TensorFlow and JAX is installed in this Python",
    cause="The doctor examines one interpreter, by default the one that runs stepscope. The job may use another.",
    fix="stepscope doctor --python PATH, with the Python that runs the job.",
    severity="info",
)
def no_framework(environment: Environment) -> Iterator[Sign]:
    """Not one of their modules is found."""
    if not any(environment.python.modules.get(name) is not None for name in FRAMEWORKS):
        yield Sign(f"{environment.python.executable} finds no module torch, tensorflow or jax.")


@CHECKS.add(
    "framework-broken",
    "A framework is listed as installed, but its files are missing",
    cause="An uninstall or upgrade was interrupted, or two packages that bring the same module (tensorflow and tensorflow-cpu) were "
    "installed and one of them removed, which deletes the other's files.",
    fix="Reinstall it with pip install --force-reinstall.",
    severity="error",
)
def framework_broken(environment: Environment) -> Iterator[Sign]:
    """A distribution without its module."""
    for module in FRAMEWORKS:
        packages = environment.python.bringing(module)
        if packages and module in environment.python.modules and environment.python.modules[module] is None:
            name = packages[0].name
            yield Sign(
                f"pip lists {name} {packages[0].version}, and there is no module {module}.",
                f"{environment.python.executable} -m pip install --force-reinstall --no-deps {name}",
            )


@CHECKS.add(
    "duplicate-tensorflow",
    "Several packages bring TensorFlow",
    cause="They overwrite each other's files; which one is imported depends on the order of installation.",
    fix="Uninstall all of them, then install one.",
    severity="error",
)
def duplicate_tensorflow(environment: Environment) -> Iterator[Sign]:
    """More than one distribution of the module."""
    names = sorted({package.name for package in environment.python.bringing("tensorflow")})
    if len(names) > 1:
        yield Sign(
            f"Installed: {', '.join(names)}.",
            f"{environment.python.executable} -m pip uninstall -y {' '.join(names)} && "
            f"{environment.python.executable} -m pip install tensorflow",
        )


@CHECKS.add(
    "torch-empty-stacks",
    "This PyTorch records no stacks",
    cause="From 2.0 to 2.4 with_stack=True leaves key_averages() and export_stacks() without stacks unless an experimental "
    "setting is given (pytorch#117515).",
    fix="Install PyTorch 2.5 or newer; or pass experimental_config=torch._C._profiler._ExperimentalConfig(verbose=True).",
    severity="info",
)
def torch_empty_stacks(environment: Environment) -> Iterator[Sign]:
    """The versions between the fault and its fix."""
    version = environment.python.version_of("torch")
    if (2, 0) <= version < (2, 5):
        yield Sign(f"torch {'.'.join(map(str, version))}.")


@CHECKS.add(
    "torch-old-clock",
    "This PyTorch writes inconsistent times",
    cause="Before 2.4 the ends of events were rounded on their own, so that children outlive their parents and self times turn "
    "negative; before 1.12 ops and kernels are tied by ids of another meaning.",
    fix="Install PyTorch 2.4 or newer.",
    severity="info",
)
def torch_old_clock(environment: Environment) -> Iterator[Sign]:
    """PyTorch before 2.4."""
    version = environment.python.version_of("torch")
    if version and version < (2, 4):
        yield Sign(f"torch {'.'.join(map(str, version))}.")


@CHECKS.add(
    "jax-versions",
    "The versions of the JAX packages do not match",
    cause="jaxlib newer than jax is refused at import; a plugin for CUDA newer than jaxlib is ignored with a warning, and the job runs "
    "on the CPU without device events.",
    fix="Install them together: pip install -U 'jax[cuda13]', or 'jax[cuda12]'.",
)
def jax_versions(environment: Environment) -> Iterator[Sign]:
    """jax >= jaxlib >= plugin, by their version numbers."""
    python = environment.python
    jax, jaxlib = python.version_of("jax"), python.version_of("jaxlib")
    if jax and jaxlib and jaxlib > jax:
        yield Sign(f"jaxlib {_text(jaxlib)} is newer than jax {_text(jax)}.")
    for package in python.packages:
        is_plugin = package.name.startswith("jax-cuda") and package.name.endswith("plugin")
        if is_plugin and jaxlib and parsed(package.version) > jaxlib:
            extra = package.name.removeprefix("jax-").removesuffix("-plugin")
            yield Sign(
                f"{package.name} {package.version} is newer than jaxlib {_text(jaxlib)}.",
                f"{python.executable} -m pip install -U 'jax[{extra}]'",
            )


@CHECKS.add(
    "installed-twice",
    "A package is installed twice",
    cause="Two folders of sys.path hold the same package, often the user's site-packages beside a virtual environment. The first one wins, "
    "whatever pip upgrades in the other.",
    fix="Uninstall the one that you do not need.",
)
def installed_twice(environment: Environment) -> Iterator[Sign]:
    """The same name in two folders, for the packages that matter here."""
    names = {*FRAMEWORKS, *BRINGS["tensorboard"], "protobuf", "xprof", "stepscope"}
    for name in sorted(names):
        found = [each for each in environment.python.packages if each.name == name]
        if len({each.location for each in found}) > 1:
            first, second = found[0], found[1]
            yield Sign(
                f"{name} {first.version} in {first.location}, and {second.version} in {second.location}.",
                f"Remove the one that you do not need: {environment.python.executable} -m pip uninstall {name} takes the first.",
            )


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
