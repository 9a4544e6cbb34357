"""The token that lets a visitor in: as a link, as a form, as a cookie, or as a header for scripts.

Every user of this machine reaches a port on loopback, so a token is asked for there too. The cookie holds a secret of this
process and not the token: browsers send cookies to every port of a host name, and a cookie that outlived the server would
go to the process that listens on its port next.
"""

from __future__ import annotations

import os
import re
import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from hmac import compare_digest
from secrets import token_urlsafe
from urllib.parse import urlsplit

from werkzeug.wrappers import Request, Response

from stepscope.errors import StepscopeError
from stepscope.server.http.peers import user_of
from stepscope.server.http.request import Refused

VARIABLE = "STEPSCOPE_TOKEN"
SHORTEST = 8
TICKET_S = 120.0
_WEEK_S = 7 * 24 * 3600
_LARGEST_FORM = 4 << 10
_TOKEN = re.compile(r"[!-~]{1,200}")  # visible ASCII: anything else does not survive headers and addresses
_FIX = "Open the link that stepscope serve printed, or open the page again and sign in."
_HEAD = '<!doctype html><html lang="en"><meta charset="utf-8"><title>stepscope</title><link rel="icon" href="data:,">'
# A navigation that our own page begins: a redirect would still count as coming from wherever the link was clicked, and
# strict cookies are not sent along then. A script, since a refresh loses the part of the address after #, which names a view.
_LET_IN = f'{_HEAD}<script src="web/shell/enter.js"></script><noscript><meta http-equiv="refresh" content="0; url=./"></noscript>'
_STYLE = (
    ":root { color-scheme: light dark } body { font: 16px/1.5 system-ui, sans-serif; max-width: 34em; margin: 12vh auto; "
    "padding: 0 1em } input { font: inherit; width: 100%; box-sizing: border-box; margin: .4em 0 } button { font: inherit }"
)
_FORM = (
    f'{_HEAD}<meta name="viewport" content="width=device-width, initial-scale=1"><style>{_STYLE}</style>'
    "<h1>stepscope</h1>{said}"
    '<form method="post"><label for="token">Token</label>'
    '<input id="token" name="token" type="password" autocomplete="off" required autofocus>'
    '<button type="submit">Sign in</button></form>'
    "<p>The token is in the link that <code>stepscope serve</code> printed when it started, or in "
    f"<code>{VARIABLE}</code> of its environment. If you are signed in already, reload this page.</p>"
)
_WRONG = '<p role="alert"><strong>That is not the token.</strong></p>'


class FormPage(Response):
    """A page whose form may be sent to this server; no other page of ours has one."""


@dataclass
class Ticket:
    """Lets one browser in, once and for a short while. Command lines are public, and a browser is started with a link."""

    text: str
    ends: float
    is_used: bool = False


@dataclass(frozen=True)
class SignIn:
    """`token` is what visitors show; `session` is what their cookie holds afterwards."""

    token: str = field(default_factory=lambda: token_urlsafe(24), repr=False)
    session: str = field(default_factory=lambda: token_urlsafe(24), repr=False)
    _tickets: list[Ticket] = field(default_factory=list, repr=False)
    _lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def check(self, request: Request) -> Response | None:
        """None for a visitor who is signed in; otherwise the page that signs in, or a refusal."""
        is_page = request.path.lstrip("/") in ("", "index.html")
        if is_page and request.method == "POST":
            return self._after_form(request)
        shown = request.args.get("token")
        is_right = shown is not None and same(shown, self.token)
        if self.has_header(request) or (self._has_cookie(request) and not (is_page and is_right)):
            return None
        if not is_page:
            if is_right:
                return None
            raise Refused("Sign in first: this server asks for its token.", status=403, fix=_FIX)
        if is_right or self._takes_ticket(request):
            return self._with_cookie(request, _html(Response(_LET_IN)))
        return _form(is_wrong=bool(shown))

    def has_header(self, request: Request) -> bool:
        """Whether the request has `Authorization: Bearer TOKEN`, or `token TOKEN` as Jupyter has it."""
        scheme, _, given = request.headers.get("Authorization", "").partition(" ")
        return scheme.lower() in ("token", "bearer") and same(given.strip(), self.token)

    def new_ticket(self) -> str:
        """A ticket for a browser that is about to be opened."""
        ticket = Ticket(token_urlsafe(24), time.monotonic() + TICKET_S)
        with self._lock:
            self._tickets.append(ticket)
        return ticket.text

    def _has_cookie(self, request: Request) -> bool:
        return any(same(value, self.session) for value in request.cookies.getlist(cookie_name(request)))

    def _takes_ticket(self, request: Request) -> bool:
        shown = request.args.get("ticket", "")
        with self._lock:
            for ticket in self._tickets:
                if not same(shown, ticket.text) or ticket.is_used or time.monotonic() > ticket.ends:
                    continue
                # Another user may have read the browser's command line.
                if user_of(request) in (None, _own_user()):
                    ticket.is_used = True
                    return True
        return False

    def _after_form(self, request: Request) -> Response:
        request.max_content_length = _LARGEST_FORM
        if not same(request.form.get("token", "").strip(), self.token):
            return _form(is_wrong=True)
        # The browser keeps the part of the address after #, so a link to a view still leads to it.
        return self._with_cookie(request, Response(status=303, headers={"Location": "./"}))

    def _with_cookie(self, request: Request, response: Response) -> Response:
        """Without a path the cookie is for the folder of the page as the browser sees it, behind whatever proxy."""
        response.headers["Cache-Control"] = "no-store"
        response.set_cookie(
            cookie_name(request), self.session, max_age=_WEEK_S, path=None, httponly=True, samesite="Strict"
        )
        return response


def sign_in_from(environ: Mapping[str, str]) -> tuple[SignIn, bool]:
    """With the token of the environment, or a new one; and whether it is the environment's."""
    given = environ.get(VARIABLE)
    if not given:
        return SignIn(), False
    if len(given) < SHORTEST or _TOKEN.fullmatch(given) is None:
        raise StepscopeError(
            f"{VARIABLE} must have {SHORTEST} to 200 letters, digits and signs, and no spaces.",
            fix="""Make one: python -c "import secrets; print(secrets.token_urlsafe())".""",
        )
    return SignIn(given), True


def cookie_name(request: Request) -> str:
    """Cookies do not distinguish ports: the name has the port that the browser sees, or ours where a proxy hides it."""
    try:
        seen = urlsplit(f"//{request.headers.get('Host', '')}").port
    except ValueError:
        seen = None
    return f"stepscope-{seen or request.environ.get('SERVER_PORT', '')}"


def same(given: str, expected: str) -> bool:
    """Whether two secrets are equal, in a time that does not depend on where they differ."""
    return compare_digest(given.encode("utf-8", "replace"), expected.encode())


def _form(*, is_wrong: bool) -> Response:
    said = _WRONG if is_wrong else ""
    return _html(FormPage(_FORM.replace("{said}", said), 403 if is_wrong else 200))


def _html(response: Response) -> Response:
    response.content_type = "text/html; charset=utf-8"
    response.headers["Cache-Control"] = "no-store"
    return response


def _own_user() -> int | None:
    return os.getuid() if hasattr(os, "getuid") else None
