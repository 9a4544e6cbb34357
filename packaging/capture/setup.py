"""Builds stepscope-capture: what files.txt names of the project's src/, and nothing else.

In a checkout those files are copied here first, so that sdist and wheel are made as of any other project; an sdist has them
already. An editable install leads to the project's src/ itself.
"""

import re
import shutil
import sys
from pathlib import Path

from setuptools import find_packages, setup

HERE = Path(__file__).resolve().parent
PROJECT = HERE.parent.parent
IS_CHECKOUT = (PROJECT / "packaging" / "capture").resolve() == HERE and (PROJECT / "src").is_dir()
COPIES = HERE / "src" / "stepscope"
LEFT_OUT = shutil.ignore_patterns("__pycache__", "*.so", "*.pyd")


def copy_sources() -> None:
    """Fresh copies: what has left the project leaves them, too."""
    shutil.rmtree(HERE / "src", ignore_errors=True)
    shutil.rmtree(HERE / "build", ignore_errors=True)
    COPIES.mkdir(parents=True)
    for name in names():
        source = PROJECT / "src" / "stepscope" / name
        if source.is_dir():
            shutil.copytree(source, COPIES / name, ignore=LEFT_OUT)
        else:
            shutil.copy2(source, COPIES / name)
    shutil.copy2(PROJECT / "LICENSE", HERE / "LICENSE")


def names() -> list[str]:
    """The lines of files.txt."""
    lines = (HERE / "files.txt").read_text("utf-8").splitlines()
    return [line for line in lines if line and not line.startswith("#")]


def version() -> str:
    """As `import stepscope` says it: the one place."""
    text = (COPIES / "__init__.py").read_text("utf-8")
    return re.findall(r'^__version__ = "([^"]+)"', text, re.MULTILINE)[0]


if IS_CHECKOUT:
    copy_sources()
setup(
    version=version(),
    packages=find_packages(str(HERE / "src")),
    package_dir={"": "../../src" if IS_CHECKOUT and "editable_wheel" in sys.argv else "src"},
)
