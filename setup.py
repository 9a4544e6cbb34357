"""Builds the hot loops of stepscope.native; where they cannot be built, the same sources run interpreted."""

import os
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

NATIVE = Path("src/stepscope/native")
# Compiling takes a fifth longer with debug information; who sets CFLAGS decides for themselves.
FLAGS = [] if "CFLAGS" in os.environ or os.name == "nt" else ["-g0"]


class FreshBuild(build_ext):
    """Forgets earlier builds first: a stale extension would be imported instead of its changed source."""

    def run(self) -> None:
        for extension in self.extensions:
            Path(self.get_ext_fullpath(extension.name)).unlink(missing_ok=True)
            Path(self.build_lib, self.get_ext_filename(extension.name)).unlink(missing_ok=True)
        self.force = True
        self.parallel = self.parallel or os.cpu_count()
        super().run()


def extensions() -> list[Extension]:
    """The hot loops as optional extensions: without Cython or a C compiler the install still succeeds."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    hot = [path for path in sorted(NATIVE.glob("*.py")) if "cython.compiled" in path.read_text("utf-8")]
    found = [
        Extension(f"stepscope.native.{path.stem}", [str(path)], extra_compile_args=FLAGS) for path in hot
    ]
    built: list[Extension] = cythonize(found, build_dir="build/cython", language_level=3, quiet=True)
    for extension in built:
        extension.optional = True
    return built


setup(ext_modules=extensions(), cmdclass={"build_ext": FreshBuild})
