"""The commands of the command line, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from stepscope import __version__
from stepscope.cli.calibrate import calibrate
from stepscope.cli.capture import capture
from stepscope.cli.check import check
from stepscope.cli.demo import demo
from stepscope.cli.diff import diff
from stepscope.cli.doctor import doctor
from stepscope.cli.export import export
from stepscope.cli.info import info
from stepscope.cli.mcp import mcp
from stepscope.cli.query import query
from stepscope.cli.report import report
from stepscope.cli.run import SETTINGS as RUN_SETTINGS
from stepscope.cli.run import run
from stepscope.cli.serve import serve
from stepscope.cli.skill import skill
from stepscope.cli.try_ import SETTINGS as TRY_SETTINGS
from stepscope.cli.try_ import try_

app = typer.Typer(
    name="stepscope",
    help="Where every microsecond and every byte of a training step went, and what to change.",
    epilog="Start with: stepscope run -- python train.py, then stepscope report stepscope-out. Without a job: stepscope demo.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"]},
)
# As people need them: record, read, look, compare; then what is for special cases.
app.command(context_settings=RUN_SETTINGS)(run)
app.command()(report)
app.command()(serve)
app.command()(diff)
app.command()(check)
app.command("try", context_settings=TRY_SETTINGS)(try_)
app.command()(doctor)
app.command()(capture)
app.command()(info)
app.command()(query)
app.command()(export)
app.command()(calibrate)
app.command()(demo)
app.command()(mcp)
app.command()(skill)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"stepscope {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool,
        typer.Option("-V", "--version", is_eager=True, callback=_show_version, help="Show version and exit."),
    ] = False,
) -> None:
    """Options that all commands share."""
