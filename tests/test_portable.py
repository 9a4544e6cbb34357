"""Other systems: every module can be imported where the modules and signals of POSIX are missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# What Windows lacks, as far as it can be taken away here.
WITHOUT = """
import os, signal, socket, sys
import asyncio, multiprocessing.connection, multiprocessing.resource_tracker, random, subprocess, tempfile, uuid  # these know their system
MODULES = {"fcntl", "resource", "termios", "tty", "pty", "pwd", "grp", "syslog", "curses", "readline"}
NAMES = {
    os: ("fork", "forkpty", "getuid", "geteuid", "getgid", "uname", "register_at_fork", "posix_fallocate",
         "sched_getaffinity", "killpg", "getloadavg", "setsid", "sysconf", "statvfs", "O_NOFOLLOW", "O_DIRECTORY"),
    signal: ("SIGUSR1", "SIGUSR2", "SIGHUP", "SIGQUIT", "SIGKILL", "SIGCHLD", "SIGALRM", "pthread_sigmask", "sigwaitinfo",
             "setitimer"),
    socket: ("AF_UNIX", "SO_PEERCRED"),
}

class Refuses:
    def find_spec(self, name, path=None, target=None):
        if name in MODULES:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

def take_away():
    for name in MODULES:
        sys.modules.pop(name, None)
    sys.meta_path.insert(0, Refuses())
    for module, names in NAMES.items():
        for name in names:
            if hasattr(module, name):
                delattr(module, name)
"""
IMPORT_ALL = """
from importlib import import_module
from pathlib import Path
failed = []
for path in sorted(Path("src/stepscope").rglob("*.py")):
    if "hook" in path.parts or path.name == "__main__.py" or "tensorboard" in path.parts:
        continue
    name = ".".join(path.relative_to("src").with_suffix("").parts).removesuffix(".__init__")
    try:
        import_module(name)
    except Exception as error:
        if getattr(error, "name", None) not in ("torch", "jax", "keras", "lightning", "transformers", "tensorflow", "IPython"):
            failed.append(f"{name}: {type(error).__name__}: {error}")
print("\\n".join(failed))
"""
# They are not ours, and find their own way on each system.
OTHERS = "import duckdb, fsspec, msgspec, plotly, polars, pytest, rich.console, rich.progress, typer, waitress, werkzeug.serving\n"


def without_posix(code: str) -> str:
    """What the code prints in a process without all that."""
    ended = subprocess.run(
        [sys.executable, "-c", f"{OTHERS}{WITHOUT}\ntake_away()\n{code}"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.strip()


def test_every_module_can_be_imported_without_posix() -> None:
    assert without_posix(IMPORT_ALL) == ""


def test_what_is_taken_away_is_gone() -> None:
    code = "try: import fcntl\nexcept ImportError: print('gone', hasattr(os, 'fork'))"
    assert without_posix(code) == "gone False"


def test_listening_says_that_it_needs_sockets_of_unix() -> None:
    code = "import stepscope, warnings\nwarnings.simplefilter('always')\nprint(stepscope.listen())"
    assert without_posix(code) == "None"


def test_capture_says_that_it_needs_sockets_of_unix() -> None:
    code = "from stepscope.capture.command.app import run_command\nsys.stderr = sys.stdout\nprint(run_command(['capture', '4711']))"
    said = without_posix(code)
    assert said.endswith("\n1")
    assert "needs unix sockets" in said.lower()
