"""`python -m tests.distributions dist`: what `make wheels` has made, installed into clean environments as users do it.

For this Python: the recorder alone, the upgrade to the whole without a compiler, both sdists with and without one; for every
other Python that can be had: the wheel that fits, or else the sdist. Prints times and sizes; fails if anything does.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

from stepscope import __version__
from tests.distributions import licences
from tests.distributions.build import RECORDER, WHOLE
from tests.versions.environments import Failed, interpreter, run
from tests.versions.pythons import find_python
from tests.versions.requirements import ROOT, read_project

SAMPLE = Path("stepscope", "samples", "tiny_gpt.pt.trace.json.gz")  # where it is installed
LOOPS = ROOT / "tests" / "capture" / "jobs" / "loops.py"
# By the name of the loop in LOOPS.
FRAMEWORKS = {"PyTorch": "loader", "Keras": "keras", "JAX": "jax_markers"}
MIB = 1 << 20
_FILES = """
import json, sysconfig
from importlib.metadata import distribution
from pathlib import Path
place = Path(sysconfig.get_path("purelib"))
owned = {Path(file.locate()) for name in %r for file in distribution(name).files}
there = {path for path in (place / "stepscope").rglob("*") if path.is_file()}
ours = {path for path in owned if path.is_relative_to(place / "stepscope")}
print(json.dumps(sorted(str(path) for path in there ^ ours if path.suffix != ".pyc")))
"""
_PLACE = "import sysconfig; print(sysconfig.get_path('purelib'))"
_INTERPRETED = "from stepscope.native import interpreted; print(len(interpreted()))"


@dataclass
class Tried:
    """An environment, made for one question."""

    folder: Path
    python: Path
    env: dict[str, str] = field(default_factory=dict)

    @property
    def place(self) -> Path:
        return Path(self.ask(_PLACE))

    def ask(self, code: str) -> str:
        """What the code prints in it."""
        return run(interpreter(self.folder), "-c", code, folder=self.folder, env=self.env).strip()

    def install(self, *what: str | Path) -> float:
        """The seconds that it takes."""
        began = time.monotonic()
        options = ("--quiet", "--disable-pip-version-check", "--no-cache-dir")
        run(
            interpreter(self.folder),
            "-m",
            "pip",
            "install",
            *options,
            *what,
            folder=self.folder,
            env=self.env,
        )
        return time.monotonic() - began

    def command(self, *words: str | Path) -> str:
        """What the installed `stepscope` prints."""
        return run(interpreter(self.folder).with_name("stepscope"), *words, folder=self.folder, env=self.env)

    def mib(self) -> float:
        """The size of all that is installed, without pip and setuptools."""
        place = self.place
        files = [path for path in place.rglob("*") if path.is_file()]
        tools = ("pip", "setuptools")
        ours = [path for path in files if path.relative_to(place).parts[0].split("-")[0] not in tools]
        return sum(path.stat().st_size for path in ours) / MIB


@dataclass
class Check:
    """Collects what was tried."""

    dist: Path
    only: str = ""
    failed: list[str] = field(default_factory=list)

    def file(self, pattern: str) -> Path | None:
        """The newest that fits, in dist/."""
        return max(self.dist.glob(pattern), key=lambda path: path.stat().st_mtime, default=None)

    def one(self, pattern: str) -> Path:
        """The same; it must be there."""
        found = self.file(pattern)
        if found is None:
            raise Failed(f"{self.dist} has no {pattern}: run make wheels")
        return found

    def attempt(self, what: str, work: Callable[[], str]) -> None:
        """Print how it ended, in a line."""
        if not re.search(self.only, what):
            return
        began = time.monotonic()
        try:
            line = f"ok      {what}: {work()}"
        except Failed as failure:
            self.failed.append(what)
            line = f"FAILED  {what}\n{failure}"
        say(f"{line} ({time.monotonic() - began:.0f} s)")


def main() -> int:
    """0 if everything works."""
    arguments = _arguments()
    check = Check(arguments.dist.resolve(), arguments.only)
    here = Path(sys.executable).resolve()
    _this_python(check, here)
    for version in read_project().pythons:
        _another_python(check, version)
    if arguments.frameworks:
        _frameworks(check, here, arguments.frameworks.absolute())
    say(f"\n{len(check.failed)} failed." if check.failed else "\nEverything works.")
    return 1 if check.failed else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser("python -m tests.distributions", description=__doc__)
    parser.add_argument("dist", type=Path, help="the folder that `make wheels` has filled")
    parser.add_argument("--frameworks", type=Path, help="an environment with PyTorch, Keras and JAX")
    parser.add_argument("--only", metavar="REGEX", default="", help="what to try, by its line in the output")
    return parser.parse_args()


def say(text: str) -> None:
    """At once: all of it takes a while."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


@contextmanager
def clean(python: Path, *, compiler: bool) -> Iterator[Tried]:
    """An empty environment; without a compiler none is on PATH, and none is named."""
    with TemporaryDirectory(prefix="stepscope-clean-") as name:
        folder = Path(name) / "env"
        run(python, "-m", "venv", folder)
        env = {"PYTHONPATH": "", "STEPSCOPE_CACHE": str(folder / "cache"), "PYTHONDONTWRITEBYTECODE": ""}
        if not compiler:
            env |= {"CC": "/bin/false", "CXX": "/bin/false", "PATH": str(folder / "bin")}
        yield Tried(folder, python, env)


def _this_python(check: Check, python: Path) -> None:
    check.attempt(
        "stepscope-capture alone, then stepscope over it, no compiler", lambda: _upgrade(check, python)
    )
    check.attempt("both sdists, no compiler", lambda: _from_sdist(check, python, compiler=False))
    check.attempt("both sdists, with a compiler", lambda: _from_sdist(check, python, compiler=True))


def _another_python(check: Check, version: str) -> None:
    found = find_python(version)
    if found is None:
        say(f"NOT TRIED Python {version}: not found here")
    elif version != f"{sys.version_info[0]}.{sys.version_info[1]}":
        check.attempt(f"Python {found[1]}", lambda: _installs(check, found[0], version))


def _upgrade(check: Check, python: Path) -> str:
    """The recorder records and says what it lacks; the whole over it leaves no file that nobody owns."""
    recorder, wheel = check.one(f"{RECORDER}-*.whl"), _wheel_for(check, python)
    with clean(python, compiler=False) as tried:
        light_s = tried.install("--no-index", recorder)
        light_mib = tried.mib()
        _expect("(stepscope-capture)" in tried.command("--version"), "the recorder gives another version")
        _expect_owned(tried, "stepscope-capture")
        whole_s = tried.install(recorder, wheel)
        _expect(tried.command("--version") == f"stepscope {__version__}\n", "the whole gives another version")
        _expect_owned(tried, "stepscope-capture", "stepscope")
        _expect(tried.ask(_INTERPRETED) == "0", "the wheel has no compiled loops")
        first_s = _first_report(tried)
        _check_licences(tried)
        return f"recorder {light_s:.1f} s, {light_mib:.1f} MiB; whole {whole_s:.0f} s, {tried.mib():.0f} MiB; first report {first_s:.1f} s"


def _expect_owned(tried: Tried, *names: str) -> None:
    """Every file of ours belongs to one of these distributions, and every file of theirs is there."""
    stray = tried.ask(_FILES % (names,))
    _expect(stray == "[]", f"stale or missing files: {stray}")


def _wheel_for(check: Check, python: Path) -> Path:
    """A compiled one, else the sdist."""
    major, minor = run(python, "-c", "import sys; print(*sys.version_info[:2])").split()
    exact = check.file(f"{WHOLE}-*-cp{major}{minor}-*.whl")
    stable = check.file(f"{WHOLE}-*-cp311-abi3-*.whl") if int(minor) >= 11 else None
    return exact or stable or check.one(f"{WHOLE}-*.tar.gz")


def _installs(check: Check, python: Path, version: str) -> str:
    wheel = _wheel_for(check, python)
    with clean(python, compiler=wheel.suffix != ".whl") as tried:
        seconds = tried.install(check.one(f"{RECORDER}-*.whl"), wheel)
        report_s = _first_report(tried)
        return f"{wheel.name}: installed in {seconds:.0f} s, first report {report_s:.1f} s"


def _from_sdist(check: Check, python: Path, *, compiler: bool) -> str:
    with clean(python, compiler=compiler) as tried:
        seconds = tried.install(check.one(f"{RECORDER}-*.tar.gz"), check.one(f"{WHOLE}-*.tar.gz"))
        interpreted = int(tried.ask(_INTERPRETED))
        expected = bool(interpreted) != (compiler and shutil.which("cc") is not None)
        _expect(expected, f"{interpreted} hot loops run interpreted")
        report_s = _first_report(tried)
        return f"installed in {seconds:.0f} s, {interpreted} loops interpreted, first report {report_s:.1f} s"


def _first_report(tried: Tried) -> float:
    """Of the sample that ships with stepscope, in a fresh process."""
    began = time.monotonic()
    text = tried.command("report", tried.place / SAMPLE)
    _expect("step" in text, "the report is empty")
    return time.monotonic() - began


def _check_licences(tried: Tried) -> None:
    packages = licences.parse(json.loads(tried.ask(licences.LIST)))
    found = licences.faults(packages)
    _expect(not found, "; ".join(found))
    say(f"        licences of {len(packages)} packages: all permissive")


def _frameworks(check: Check, python: Path, environment: Path) -> None:
    """The recorder alone beside each framework: what it writes is read by the stepscope that runs this."""
    frameworks = Path(run(interpreter(environment), "-c", _PLACE).strip())
    for title, loop in FRAMEWORKS.items():
        check.attempt(f"the recorder alone with {title}", partial(_records, check, python, frameworks, loop))


def _records(check: Check, python: Path, frameworks: Path, loop: str) -> str:
    with clean(python, compiler=True) as tried:
        tried.install("--no-index", "--no-deps", check.one(f"{RECORDER}-*.whl"))
        (tried.place / "frameworks.pth").write_text(f"{frameworks}\n")
        _expect(
            tried.ask("import stepscope, importlib.util as u; print(u.find_spec('stepscope.cli'))") == "None",
            "not only the recorder is there",
        )
        tried.env |= {"CUDA_VISIBLE_DEVICES": "", "TF_CPP_MIN_LOG_LEVEL": "3"}
        words = (interpreter(tried.folder), LOOPS, loop, "12")
        tried.command("run", "--steps", "4:7", "-o", tried.folder / "out", "--", *words)
        text = run(
            sys.executable, "-m", "stepscope", "report", tried.folder / "out", "--format", "json", env=_own()
        )
        steps = json.loads(text[text.index("{") :])["steps"]["count"]
        _expect(steps == 4, f"{steps} steps instead of 4")
        return f"{steps} steps recorded"


def _own() -> dict[str, str]:
    return {"PYTHONPATH": os.pathsep.join((str(ROOT / "src"), os.environ.get("PYTHONPATH", "")))}


def _expect(condition: bool, otherwise: str) -> None:
    if not condition:
        raise Failed(otherwise)


if __name__ == "__main__":
    sys.exit(main())
