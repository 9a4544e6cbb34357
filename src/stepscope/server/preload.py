"""The newest run opened before anyone asks: most people come for the profile that they have just recorded."""

from __future__ import annotations

import logging
import threading
import time

from stepscope.errors import StepscopeError
from stepscope.profiles.profile import Profile
from stepscope.server.app import App
from stepscope.server.http.static import prepare_page
from stepscope.server.runs.listed import ListedRun
from stepscope.server.runs.opened import NotYet, OpenedRun
from stepscope.server.timeline.view import view_at

# Reading more than this costs more than a guess is worth; what is in the cache is only mapped.
MOST_BYTES = 64 << 20
PATIENCE_S = 60.0
ASK_EVERY_S = 0.05


def open_ahead(app: App) -> threading.Thread:
    """Begin with it in the background, after what the page itself is made of."""
    thread = threading.Thread(target=_prepare, args=(app,), name="stepscope-ahead", daemon=True)
    thread.start()
    return thread


def _prepare(app: App) -> None:
    prepare_page()
    _open_newest(app)


def _open_newest(app: App) -> None:
    try:
        if not app.runs.has_any(PATIENCE_S):
            return
        newest = next(iter(app.runs.found().runs.values()))
        if not _is_worth_it(newest):
            return
        run = _opened(app, newest)
        if run is not None:
            _ = view_at(run, run.profile.ranks[0]).extent
    except StepscopeError:  # whoever asks for it is told
        pass
    except Exception:  # a guess that went wrong is no reason to end the server
        logging.getLogger(__name__).debug("stepscope could not open a run ahead", exc_info=True)


def open_newest(app: App) -> tuple[str, Profile]:
    """The newest run, as links name it, and its profile: for a link to a place in it."""
    newest = next(iter(app.runs.found().runs.values()), None) if app.runs.has_any(PATIENCE_S) else None
    run = None if newest is None else _opened(app, newest)
    if newest is None or run is None:
        raise StepscopeError(
            "No profile could be read yet.", fix="Leave --about out, and choose it on the page."
        )
    return newest.id, run.profile


def _is_worth_it(listed: ListedRun) -> bool:
    if listed.is_remote:
        return False
    return listed.run.size <= MOST_BYTES or listed.is_stored()


def _opened(app: App, listed: ListedRun) -> OpenedRun | None:
    end = time.monotonic() + PATIENCE_S
    while time.monotonic() < end:
        try:
            return app.opened.get(listed)
        except NotYet:
            time.sleep(ASK_EVERY_S)
    return None
