"""Builds the hot loops of stepscope.native; where they cannot be built, the same sources run interpreted."""

import os
import re
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path

from setuptools import Extension, find_packages, setup
from setuptools.command.build_ext import build_ext
from setuptools.command.build_py import build_py

SOURCE = Path("src/stepscope")
NATIVE = SOURCE / "native"
# What is in stepscope-capture, and therefore not here.
RECORDER = Path("packaging/capture/files.txt")
BUILD = Path("build/cython")
DOCS = Path("docs")
# What Cython needs for memoryviews, compiled once instead of in every hot loop: that saves more than half the time.
SHARED = "stepscope.native._shared"
# Translating to C takes a while: metadata and sdist do without.
COMPILES = {"build", "build_ext", "bdist_wheel", "editable_wheel", "install", "develop"}
# A compiled wheel serves every Python from here on, at the same speed (docs/development.md): the stable ABI has had buffers since.
STABLE_SINCE = (3, 11)
# Compiling takes a fifth longer with debug information; who sets CFLAGS decides for themselves.
FLAGS = [] if "CFLAGS" in os.environ or os.name == "nt" else ["-g0"]


class FreshBuild(build_ext):
    """Forgets earlier builds first: a stale extension would be imported instead of its changed source."""

    def run(self) -> None:
        self._forget()
        self.force = True
        self.parallel = self.parallel or os.cpu_count()
        super().run()
        if not all(path.exists() for path in self._places()):
            self._forget()  # they need each other: all are compiled, or none

    def _places(self) -> list[Path]:
        return [Path(self.get_ext_fullpath(extension.name)) for extension in self.extensions]

    def _forget(self) -> None:
        before_copying = [Path(self.build_lib, self.get_ext_filename(each.name)) for each in self.extensions]
        # Also those of modules that have moved since: they would be imported from where they no longer belong.
        stale = (
            [path for ending in ("*.so", "*.pyd") for path in NATIVE.rglob(ending)] if self.inplace else []
        )
        for path in self._places() + before_copying + stale:
            path.unlink(missing_ok=True)


class TheRest(build_py):
    """Leaves out what stepscope-capture has, and puts the documentation in: the page shows it beside its figures."""

    def find_package_modules(self, package: str, package_dir: str) -> list[tuple[str, str, str]]:
        found: list[tuple[str, str, str]] = super().find_package_modules(package, package_dir)
        if package != "stepscope":
            return found
        return [module for module in found if f"{module[1]}.py" not in recorder()]

    def run(self) -> None:
        super().run()
        if not self.editable_mode:  # an editable install finds docs/ where it is
            for page in sorted(DOCS.rglob("*.md")):
                target = Path(self.build_lib, "stepscope", "docs", page.relative_to(DOCS))
                self.mkpath(str(target.parent))
                self.copy_file(str(page), str(target))


def extensions() -> list[Extension]:
    """The hot loops as optional extensions: without Cython or a C compiler the install still succeeds."""
    if not COMPILES & set(sys.argv):
        return []
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    if not can_compile():
        return []
    hot = [path for path in sorted(NATIVE.rglob("*.py")) if "cython.compiled" in path.read_text("utf-8")]
    found = [Extension(module_of(path), [str(path)]) for path in hot]
    options = {
        "build_dir": str(BUILD),
        "language_level": 3,
        "quiet": True,
        "compiler_directives": {"show_performance_hints": False},
        "shared_utility_qualified_name": SHARED,
    }
    built: list[Extension] = [*cythonize(found, **options), Extension(SHARED, [shared_source()])]
    for extension in built:
        extension.optional = True
        extension.extra_compile_args = FLAGS
        if is_for_stable_abi():
            extension.py_limited_api = True
            extension.define_macros.append(("Py_LIMITED_API", "0x{:02X}{:02X}0000".format(*STABLE_SINCE)))
    return built


def is_for_stable_abi() -> bool:
    """Of wheels; what is built in place is for one Python. A Python without its lock has no stable ABI."""
    is_locked = not sysconfig.get_config_var("Py_GIL_DISABLED")
    return "bdist_wheel" in sys.argv and sys.version_info >= STABLE_SINCE and is_locked


def module_of(path: Path) -> str:
    """The dotted name of a source below src/."""
    return ".".join(path.relative_to("src").with_suffix("").parts)


def can_compile() -> bool:
    """Whether there is a C compiler that finds Python's headers: if not, translating to C would take its time for nothing."""
    from distutils.ccompiler import new_compiler
    from distutils.errors import CCompilerError, DistutilsError
    from distutils.sysconfig import customize_compiler

    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "probe.c")
        source.write_text("#include <Python.h>\n", "utf-8")
        try:
            compiler = new_compiler()
            customize_compiler(compiler)
            compiler.compile([str(source)], folder, include_dirs=[sysconfig.get_path("include")])
        except (CCompilerError, DistutilsError) as error:
            sys.stderr.write(f"the hot loops will run interpreted: {error}\n")
            return False
    return True


def shared_source() -> str:
    """The C source that all hot loops share, made by Cython."""
    path = BUILD / NATIVE / "_shared.c"
    path.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run([sys.executable, "-m", "cython", f"--generate-shared={path}"], check=True)
    return str(path)


def version() -> str:
    """As `import stepscope` says it: the one place."""
    text = (SOURCE / "__init__.py").read_text("utf-8")
    return re.findall(r'^__version__ = "([^"]+)"', text, re.MULTILINE)[0]


def recorder() -> set[str]:
    """Names of files and folders below src/stepscope."""
    return set(lines_of(RECORDER))


def requirements() -> list[str]:
    """What is needed to run: the recorder of the same version, and others."""
    return [f"stepscope-capture=={version()}", *lines_of(Path("requirements.txt"))]


def lines_of(path: Path) -> list[str]:
    """Without comments."""
    lines = [line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines()]
    return [line for line in lines if line]


setup(
    version=version(),
    install_requires=requirements(),
    packages=find_packages(
        "src", exclude=[f"stepscope.{name}{more}" for name in recorder() for more in ("", ".*")]
    ),
    package_dir={"": "src"},
    ext_modules=extensions(),
    cmdclass={"build_ext": FreshBuild, "build_py": TheRest},
    options={"bdist_wheel": {"py_limited_api": "cp{}{}".format(*STABLE_SINCE)}}
    if is_for_stable_abi()
    else {},
)
