"""Builds the hot loops of stepscope.native; where they cannot be built, the same sources run interpreted."""

from pathlib import Path

from setuptools import Extension, setup

HOT = ("events", "wire", "intervals", "order")


def extensions() -> list[Extension]:
    """The hot loops as optional extensions: without Cython or a C compiler the install still succeeds."""
    try:
        from Cython.Build import cythonize
    except ImportError:
        return []
    found = [
        Extension(f"stepscope.native.{name}", [path], optional=True)
        for name in HOT
        if Path(path := f"src/stepscope/native/{name}.py").exists()
    ]
    built: list[Extension] = cythonize(found, language_level=3, quiet=True, show_all_warnings=False)
    for extension in built:
        extension.optional = True
    return built


setup(ext_modules=extensions())
