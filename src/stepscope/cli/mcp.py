"""`stepscope mcp`: the tools of an assistant."""

from __future__ import annotations

from typing import Annotated

import typer

from stepscope.cli.console import Color, session
from stepscope.cli.options import ColorOption, QuietOption, VerboseOption


def mcp(
    folders: Annotated[list[str], typer.Argument(metavar="FOLDER...", help="Folders with profiles and source code; nothing outside them is read.")],
    quiet: QuietOption = False,
    verbose: VerboseOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Serve reports to a coding assistant over the Model Context Protocol, on standard input and output.

    Read-only. The tools are profiles, report, findings, about, events, query, diff, source and doctor. Needs the extra mcp:
    pip install 'stepscope[mcp]'.
    """
    with session(quiet, verbose, color):
        from stepscope.assistant.mcp_server import serve_tools

        serve_tools(folders)
