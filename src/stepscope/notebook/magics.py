"""The magics of a notebook."""

from __future__ import annotations

import argparse
import shlex
import sys
from typing import Any, NoReturn

from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.core.magic import Magics, line_cell_magic, magics_class
from IPython.display import IFrame, display

from stepscope.errors import StepscopeError

HEIGHT = 800
FOLDER = "stepscope-out"


class _Parser(argparse.ArgumentParser):
    """Shows what is wrong instead of ending the kernel."""

    def error(self, message: str) -> NoReturn:
        raise UsageError(f"{message}. {self.format_usage().strip()}")

    def exit(self, status: int = 0, message: str | None = None) -> NoReturn:
        raise UsageError(message or self.format_usage().strip())


def _shown_parser() -> _Parser:
    parser = _Parser("%stepscope", add_help=False)
    parser.add_argument("logdir", nargs="?")
    parser.add_argument("--height", type=int, default=HEIGHT)
    parser.add_argument("--stop", action="store_true")
    return parser


def _recorded_parser() -> _Parser:
    parser = _Parser("%%stepscope", add_help=False)
    parser.add_argument("folder", nargs="?", default=FOLDER)
    parser.add_argument("--no-stacks", action="store_true")
    parser.add_argument("--no-memory", action="store_true")
    return parser


@magics_class
class StepscopeMagics(Magics):  # type: ignore[misc, unused-ignore]
    """`%stepscope` shows profiles, `%%stepscope` makes one."""

    @line_cell_magic  # type: ignore[untyped-decorator, unused-ignore]
    def stepscope(self, line: str, cell: str | None = None) -> Any:
        """`%stepscope LOGDIR` shows the page of the profiles there; `%stepscope` alone shows it again.

        `%%stepscope [FOLDER]` records the cell and shows the report.
        """
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise UsageError(f"{error}: {line}") from None
        try:
            return self._show(words) if cell is None else self._record(words, cell)
        except StepscopeError as error:
            raise UsageError(" ".join(filter(None, (error.what, error.fix)))) from None

    def _show(self, words: list[str]) -> Any:
        from stepscope.notebook import serving

        wanted = _shown_parser().parse_args(words)
        if wanted.stop:
            serving.stop()
            return None
        height = max(200, min(wanted.height, 5000))
        shown = serving.shown(wanted.logdir)
        colab = sys.modules.get("google.colab")
        if colab is not None:  # the browser is on another machine, and only Colab knows the way
            colab.output.serve_kernel_port_as_iframe(shown.port, path=shown.path, height=str(height))
            return None
        return IFrame(shown.address, "100%", height)

    def _record(self, words: list[str], cell: str) -> None:
        """The report is shown also when the cell fails: what it did until then may be why."""
        from stepscope.capture.profiler import profile

        wanted = _recorded_parser().parse_args(words)
        shell: Any = self.shell
        with profile(wanted.folder, stacks=not wanted.no_stacks, memory=not wanted.no_memory) as prof:
            shell.run_cell(cell)
        if not prof.files:
            raise StepscopeError("Nothing was recorded.", fix=" ".join(row["title"] for row in prof.problems))
        display(prof.report())  # type: ignore[no-untyped-call, unused-ignore]


def load_ipython_extension(shell: InteractiveShell) -> None:
    """For `%load_ext stepscope`."""
    shell.register_magics(StepscopeMagics)


def unload_ipython_extension(shell: InteractiveShell) -> None:
    """For `%unload_ext stepscope`: the server ends, the magics are gone."""
    from stepscope.notebook import serving

    serving.stop()
    for kind in ("line", "cell"):
        shell.magics_manager.magics[kind].pop("stepscope", None)
