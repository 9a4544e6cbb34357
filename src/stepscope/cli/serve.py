"""`stepscope serve`: the page over folders of profiles."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.console import Color, session
from stepscope.cli.options import ColorOption, QuietOption

if TYPE_CHECKING:
    from stepscope.server.app import Settings

PORT = 6007
LOOPBACK = "127.0.0.1"


def serve(
    places: Annotated[list[str] | None, typer.Argument(metavar="PATH …", help="Folders, files, patterns in quotes or URLs; the current folder by default.", show_default=False)] = None,
    port: Annotated[int, typer.Option("-p", "--port", metavar="N", min=0, max=65535, help="Where to listen; 0 for any free port.")] = PORT,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Listen there; others than this machine get in with a token.")] = LOOPBACK,
    allow_host: Annotated[list[str] | None, typer.Option("--allow-host", metavar="NAME", help="A name by which a proxy on this machine calls the server; may be given several times.", show_default=False)] = None,
    path_prefix: Annotated[str, typer.Option("--path-prefix", metavar="/PATH", help="For a proxy that passes on a part of the address.")] = "",
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    no_capture: Annotated[bool, typer.Option("--no-capture", help="Do not offer to record from running jobs.")] = False,
    quiet: QuietOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Show profiles on a page: what `stepscope report` says, with figures, tables and the trace itself.

    Profiles that appear while it runs are found. Nobody but this machine is let in, unless --host says otherwise.
    """
    with session(quiet, False, color) as talk:
        from stepscope.server.app import make_app
        from stepscope.server.preload import open_ahead
        from stepscope.server.runs.watch import Place, check_place
        from stepscope.server.serve import listen

        wanted = places or ["."]
        for path in wanted:
            check_place(path)
        settings = _settings(host, allow_host or (), capture=not no_capture)
        app = make_app([Place(path) for path in wanted], settings)
        serving = listen(app, host, port, path_prefix)
        access = settings.guard.access
        link = serving.address if access is None else f"{serving.address}?token={access}"
        talk.out.print(f"stepscope serves {', '.join(wanted)} at {link}")
        talk.note("Ctrl+C ends it.")
        if not no_open and _has_screen():
            import webbrowser

            webbrowser.open(link)
        open_ahead(app)
        serving.run()


def _has_screen() -> bool:
    """Where there is none, Python would open a browser for terminals in ours."""
    if os.environ.get("BROWSER") or sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _settings(host: str, allowed: Sequence[str], *, capture: bool) -> Settings:
    """On loopback, who calls by a loopback name is let in; elsewhere, who has the token."""
    from secrets import token_urlsafe

    from stepscope.server.app import Settings
    from stepscope.server.http.guard import LOOPBACK as NAMES
    from stepscope.server.http.guard import Guard

    if host in NAMES:
        guard = Guard((*NAMES, *(name.lower() for name in allowed)))
    else:
        guard = Guard(hosts=None, access=token_urlsafe(24))
    return Settings(capture=capture, guard=guard)
