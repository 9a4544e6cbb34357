"""Output to the user: data goes to stdout, messages to stderr, and errors say what to do next."""

from __future__ import annotations

import os
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import field
from enum import Enum
from typing import TYPE_CHECKING, Any

from stepscope.errors import StepscopeError
from stepscope.lazy import dataclass
from stepscope.plugins import PluginWarning
from stepscope.safe import safe_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

INTERRUPTED = 130
OUR_ERROR = 1
SHOW_PROGRESS_AFTER_S = 1.0


class Color(str, Enum):
    """When to use colours."""

    auto = "auto"
    always = "always"
    never = "never"


@dataclass
class Talk:
    """Output settings of this run of the program. NO_COLOR applies unless --color says otherwise."""

    quiet: bool = False
    verbose: bool = False
    color: Color = Color.auto
    _consoles: dict[bool, Console] = field(default_factory=dict)

    @property
    def out(self) -> Console:
        """For results as text."""
        return self._console(False)

    @property
    def err(self) -> Console:
        """For everything else."""
        return self._console(True)

    def result(self, text: str) -> None:
        """Print a line that was asked for."""
        self.out.print(safe_lines(text))

    def note(self, text: str, style: str = "") -> None:
        """Print a note, unless -q was given."""
        if not self.quiet:
            self.err.print(safe_lines(text), style=style or None)

    def warn(self, text: str) -> None:
        """Print a warning, even with -q."""
        self.err.print(safe_lines(text), style="yellow")

    def fail(self, text: str, fix: str | None = None) -> None:
        """Print why the program ends without a result, and the fix."""
        from rich.text import Text

        self.err.print(Text.assemble(("error: ", "bold red"), safe_lines(text)))
        if fix:
            self.err.print(safe_lines(fix))

    @contextmanager
    def progress(self, what: str) -> Iterator[Callable[[int, int], None]]:
        """Yields a function to call with the bytes done and in all; a bar appears if it takes long."""
        if self.quiet or not sys.stderr.isatty():
            yield _nothing
            return
        bar = _Bar(self, what)
        try:
            yield bar.update
        finally:
            bar.close()

    @contextmanager
    def working(self, what: str) -> Iterator[None]:
        """Shows that work of unknown length goes on, if it takes long. The work inside must print nothing."""
        if self.quiet or not sys.stderr.isatty():
            yield
            return
        line = _WorkLine(self, what)
        try:
            yield
        finally:
            line.close()

    def _console(self, stderr: bool) -> Console:
        if stderr not in self._consoles:
            self._consoles[stderr] = _console(stderr, self.color)
        return self._consoles[stderr]


def _nothing(_done: int, _total: int) -> None:
    return None


def _console(stderr: bool, color: Color) -> Console:
    from rich.console import Console

    class Quiet(Console):
        """Leaves the handling of a closed pipe to us."""

        def on_broken_pipe(self) -> None:
            raise

    return Quiet(
        stderr=stderr,
        force_terminal=True if color is Color.always else None,
        no_color={Color.auto: None, Color.always: False, Color.never: True}[color],
        color_system=None if color is Color.never else "auto",
        markup=False,
        highlight=False,
        emoji=False,
        soft_wrap=True,
    )


class _Bar:
    """A progress bar on stderr that first appears when the work has taken a while."""

    def __init__(self, talk: Talk, what: str) -> None:
        self.talk = talk
        self.what = what
        self.started = time.monotonic()
        self.shown: Progress | None = None

    def update(self, done: int, total: int) -> None:
        """Show the bytes done and the total."""
        if self.shown is None and time.monotonic() - self.started > SHOW_PROGRESS_AFTER_S:
            self.shown = _progress(self.talk.err)
            self.shown.add_task(self.what, total=total or None)
            self.shown.start()
        if self.shown is not None:
            self.shown.update(self.shown.task_ids[0], completed=done, total=total or None)

    def close(self) -> None:
        """Remove the bar."""
        if self.shown is not None:
            self.shown.stop()


class _WorkLine:
    """A line with a spinner and the time so far, which a timer shows: the work itself reports nothing."""

    def __init__(self, talk: Talk, what: str) -> None:
        self.talk = talk
        self.what = what
        self.shown: Progress | None = None
        self.is_over = False
        self.lock = threading.Lock()
        self.timer = threading.Timer(SHOW_PROGRESS_AFTER_S, self._show)
        self.timer.daemon = True
        self.timer.start()

    def _show(self) -> None:
        from rich import progress

        columns = (
            progress.SpinnerColumn(),
            progress.TextColumn("{task.description}", markup=False),
            progress.TimeElapsedColumn(),
        )
        with self.lock:
            if not self.is_over:
                self.shown = progress.Progress(*columns, console=self.talk.err, transient=True)
                self.shown.add_task(self.what, total=None)
                self.shown.start()

    def close(self) -> None:
        """Remove the line."""
        self.timer.cancel()
        with self.lock:
            self.is_over = True
            if self.shown is not None:
                self.shown.stop()


def _progress(console: Console) -> Progress:
    from rich import progress

    columns = (
        progress.TextColumn("{task.description}", markup=False),
        progress.BarColumn(),
        progress.DownloadColumn(),
        progress.TransferSpeedColumn(),
        progress.TimeRemainingColumn(),
    )
    return progress.Progress(*columns, console=console, transient=True)


@contextmanager
def session(quiet: bool, verbose: bool, color: Color) -> Iterator[Talk]:
    """Run a command: every failure inside ends with one message and an exit code, never with a traceback."""
    talk = Talk(quiet, verbose, color)
    try:
        with _show_plugin_warnings(talk):
            yield talk
        sys.stdout.flush()
    except BrokenPipeError:
        _forget_stdout()
        raise SystemExit(0) from None
    except KeyboardInterrupt:
        talk.note("\nInterrupted.")
        raise SystemExit(INTERRUPTED) from None
    except StepscopeError as error:
        talk.fail(error.what, error.fix)
        _trace_if(talk)
        raise SystemExit(error.exit_code) from None
    except BaseException as error:
        if not _is_fault(error):
            raise
        talk.fail(*_words_for(error))
        _trace_if(talk)
        raise SystemExit(OUR_ERROR) from None


@contextmanager
def _show_plugin_warnings(talk: Talk) -> Iterator[None]:
    """Warnings of plug-ins as our own, without a place in the code; all others as Python shows them."""
    usual = warnings.showwarning

    def show(message: Warning | str, category: type[Warning], *place: Any, **more: Any) -> None:
        if issubclass(category, PluginWarning):
            talk.warn(f"warning: {message}")
        else:
            usual(message, category, *place, **more)

    warnings.showwarning = show
    try:
        yield
    finally:
        warnings.showwarning = usual


def _is_fault(error: BaseException) -> bool:
    """Polars reports its own faults as a PanicException, which is not an Exception; SystemExit is not a fault."""
    is_usage = type(error).__module__.partition(".")[0] in ("click", "typer")
    return not is_usage and (isinstance(error, Exception) or type(error).__name__ == "PanicException")


def _words_for(error: BaseException) -> tuple[str, str]:
    if isinstance(error, MemoryError):
        return (
            "Not enough memory for this profile.",
            "Open a single rank with --rank, or use a machine with more memory.",
        )
    if isinstance(error, OSError) and error.strerror:
        where = f" ({error.filename})" if error.filename else ""
        return f"{error.strerror}{where}.", "Check the disk and its permissions, then try again."
    line = f"{type(error).__name__}: {error}".split("\n", maxsplit=1)[0]
    return line, "This is a bug in stepscope; run again with -v for the traceback, and please report it."


def _trace_if(talk: Talk) -> None:
    if talk.verbose:
        import traceback

        talk.err.print(safe_lines(traceback.format_exc()))


def _forget_stdout() -> None:
    """The reader of the pipe is gone: discard the interpreter's last flush."""
    sink = os.open(os.devnull, os.O_WRONLY)
    os.dup2(sink, sys.stdout.fileno())
    os.close(sink)
