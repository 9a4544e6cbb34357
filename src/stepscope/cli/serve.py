"""`stepscope serve`: the page over folders of profiles."""

from __future__ import annotations

import webbrowser
from typing import Annotated

import typer

from stepscope.cli.console import Color, session
from stepscope.cli.options import ColorOption, QuietOption

PORT = 6007


def serve(
    places: Annotated[list[str] | None, typer.Argument(metavar="PATH …", help="Folders, files, patterns in quotes or URLs; the current folder by default.", show_default=False)] = None,
    port: Annotated[int, typer.Option("-p", "--port", metavar="N", min=0, max=65535, help="Where to listen; 0 for any free port.")] = PORT,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    quiet: QuietOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Show profiles on a page: what `stepscope report` says, with figures, tables and the trace itself.

    Profiles that appear while it runs are found. Nobody but this machine is let in.
    """
    with session(quiet, False, color) as talk:
        from stepscope.server.app import make_app
        from stepscope.server.runs import Place
        from stepscope.server.serve import listen

        serving = listen(make_app([Place(path) for path in places or ["."]]), "127.0.0.1", port)
        talk.out.print(f"stepscope serves {', '.join(places or ['.'])} at {serving.address}", highlight=False)
        talk.note("Ctrl+C ends it.")
        if not no_open:
            webbrowser.open(serving.address)
        serving.run()
