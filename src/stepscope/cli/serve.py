"""`stepscope serve`: the page over folders of profiles."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import typer

from stepscope.cli.console import Color, session
from stepscope.cli.options import ColorOption, QuietOption
from stepscope.errors import StepscopeError

if TYPE_CHECKING:
    from stepscope.server.app import App
    from stepscope.server.http.guard import Guard
    from stepscope.server.http.sign_in import SignIn

PORT = 6007
LOOPBACK = "127.0.0.1"


def serve(
    places: Annotated[list[str] | None, typer.Argument(metavar="PATH …", help="Folders, files, patterns in quotes or URLs; the current folder by default.", show_default=False)] = None,
    port: Annotated[int, typer.Option("-p", "--port", metavar="N", min=0, max=65535, help="Where to listen; 0 for any free port.")] = PORT,
    host: Annotated[str, typer.Option("--host", metavar="ADDRESS", help="Listen there instead of on this machine alone.")] = LOOPBACK,
    allow_host: Annotated[list[str] | None, typer.Option("--allow-host", metavar="NAME", help="A name by which a proxy on this machine calls the server; may be given several times.", show_default=False)] = None,
    path_prefix: Annotated[str, typer.Option("--path-prefix", metavar="/PATH", help="For a proxy that passes on a part of the address.")] = "",
    no_token: Annotated[bool, typer.Option("--no-token", help="Require no token: for a machine that no one else uses.")] = False,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open a browser.")] = False,
    no_capture: Annotated[bool, typer.Option("--no-capture", help="Do not offer to record from running jobs.")] = False,
    capture_server: Annotated[list[str] | None, typer.Option("--capture-server", metavar="HOST:PORT", help="A profiler server of TensorFlow or JAX that the page may record from; may be given several times.", show_default=False)] = None,
    source: Annotated[list[str] | None, typer.Option("--source", metavar="FOLDER", help="Show lines of code below this folder where stacks name them; may be given several times.", show_default=False)] = None,
    about: Annotated[str | None, typer.Option("--about", metavar="HANDLE", help="Open the trace at the events behind a handle of the report, such as finding:1, of the newest profile.")] = None,
    quiet: QuietOption = False,
    color: ColorOption = Color.auto,
) -> None:  # fmt: skip
    """Show profiles on a page: what `stepscope report` says, with figures, tables and the trace itself.

    Profiles that appear while it runs are found. The link that is printed signs in; clients without its token are refused.
    STEPSCOPE_TOKEN in the environment sets the token.
    """
    with session(quiet, False, color) as talk:
        from stepscope.server.api.capture import server_addresses
        from stepscope.server.api.source import Sources, source_folders
        from stepscope.server.app import Settings, make_app
        from stepscope.server.http.guard import host_names
        from stepscope.server.http.sign_in import sign_in_from
        from stepscope.server.preload import open_ahead
        from stepscope.server.runs.watch import Place, check_place
        from stepscope.server.serve import listen

        wanted = places or ["."]
        for path in wanted:
            check_place(path)
        sign_in, is_given = (None, False) if no_token else sign_in_from(os.environ)
        settings = Settings(
            capture=not no_capture,
            capture_servers=server_addresses(capture_server or ()),
            sources=Sources(source_folders(source or ())),
            guard=_guard(host, host_names(allow_host or ()), sign_in),
        )
        app = make_app([Place(path) for path in wanted], settings)
        part = "" if about is None else _part_of_page(app, about)
        serving = listen(app, host, port, path_prefix)
        shown = sign_in is not None and not is_given  # the user's own token is not to end up in a log
        link = f"{serving.address}?token={sign_in.token}" if sign_in and shown else serving.address
        talk.out.print(f"stepscope serves {', '.join(wanted)} at {link}{part}")
        if is_given:
            talk.note("Sign in with the token of STEPSCOPE_TOKEN.")
        talk.note("Ctrl+C ends it.")
        if not no_open and _has_screen():
            _open_browser(serving.address, sign_in, part)
        open_ahead(app)
        serving.run()


def _has_screen() -> bool:
    """Where there is none, Python would open a browser for terminals in ours."""
    if os.environ.get("BROWSER") or sys.platform in ("darwin", "win32"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _part_of_page(app: App, about: str) -> str:
    """Where on the page the events of the handle are: its report says which ones these are."""
    from stepscope.assistant.behind import page_link
    from stepscope.server.preload import open_newest

    run, profile = open_newest(app)
    return page_link(profile.report(), about, run)


def _open_browser(address: str, sign_in: SignIn | None, part: str) -> None:
    """With a link that lets in once: every user of this machine can read the command line of the browser."""
    import webbrowser

    ticket = "" if sign_in is None else f"?ticket={sign_in.new_ticket()}"
    webbrowser.open(f"{address}{ticket}{part}")


def _guard(host: str, named: tuple[str, ...], sign_in: SignIn | None) -> Guard:
    """On loopback the name counts as well as the token; elsewhere the name by which clients call us is unknown."""
    from stepscope.server.http.guard import LOOPBACK as NAMES
    from stepscope.server.http.guard import Guard

    if host in NAMES:
        return Guard(named=named, sign_in=sign_in)
    if sign_in is None:
        raise StepscopeError(
            f"--no-token is for this machine alone, and {host} is reached by others.",
            fix="Leave one of --host and --no-token out.",
        )
    return Guard(hosts=None, named=named, sign_in=sign_in)
