"""Who is let in, and what a browser may do with the answers.

On loopback everyone on this machine is, but only by a loopback name: a page of another site that points its own name here
sends that name. Elsewhere a token is asked for. Whatever changes something needs the page's own token as well.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from hashlib import blake2b
from hmac import compare_digest
from secrets import token_urlsafe
from urllib.parse import urlsplit

from werkzeug.wrappers import Request, Response

from stepscope.server.http.request import Refused

TOKEN_HEADER = "X-Stepscope-Token"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_WEEK_S = 7 * 24 * 3600
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self'; worker-src 'self'; object-src 'none'; base-uri 'none'; form-action 'none'"
)
# A navigation that our own page begins: a redirect would still count as coming from wherever the link was clicked.
_LET_IN = b'<!doctype html><meta charset="utf-8"><meta http-equiv="refresh" content="0; url=./"><title>stepscope</title>'


@dataclass(frozen=True)
class Guard:
    """`hosts`: the names by which the server may be called, None for any. `access`: the token that lets in, if one is needed."""

    hosts: tuple[str, ...] | None = LOOPBACK
    access: str | None = None
    may_be_framed: bool = False
    page_token: str = field(default_factory=lambda: token_urlsafe(24))

    def check(self, request: Request) -> Response | None:
        """Refuse who may not ask. The answer to whoever shows the token in the address is a cookie."""
        if self.hosts is not None:
            self._check_host(request)
        if self.access is not None:
            letting_in = self._check_access(request, self.access)
            if letting_in is not None:
                return letting_in
        if request.method not in ("GET", "HEAD"):
            self._check_change(request)
        return None

    def protect(self, response: Response) -> Response:
        """The headers of every answer."""
        policy = _POLICY if self.may_be_framed else f"{_POLICY}; frame-ancestors 'self'"
        response.headers["Content-Security-Policy"] = policy
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        if not self.may_be_framed:
            response.headers["X-Frame-Options"] = "SAMEORIGIN"
        return response

    def _check_host(self, request: Request) -> None:
        name = host_name(request.headers.get("Host", ""))
        if name is None or (name not in (self.hosts or ()) and not name.endswith(".localhost")):
            raise Refused(
                "The server is not known by this name.",
                status=403,
                fix="Open it as localhost, or name the host with --allow-host.",
            )

    def _check_access(self, request: Request, access: str) -> Response | None:
        if _same(request.cookies.get(self.cookie_name, ""), access):
            return None
        shown = request.args.get("token", "")
        if not _same(shown, access):
            raise Refused(
                "This page needs its token.", status=401, fix="Open the link that stepscope serve printed."
            )
        response = Response(
            _LET_IN, content_type="text/html; charset=utf-8", headers={"Cache-Control": "no-store"}
        )
        response.set_cookie(self.cookie_name, access, max_age=_WEEK_S, httponly=True, samesite="Strict")
        return response

    @property
    def cookie_name(self) -> str:
        """Cookies do not tell ports apart: another server on this machine has another token and another name."""
        return f"stepscope-{blake2b((self.access or '').encode(), digest_size=4).hexdigest()}"

    def _check_change(self, request: Request) -> None:
        """Only our own page may ask for a change."""
        site = request.headers.get("Sec-Fetch-Site", "same-origin")
        if site not in ("same-origin", "none") or not self._is_own(request):
            raise Refused("Another site may not ask for this.", status=403)
        if not _same(request.headers.get(TOKEN_HEADER, ""), self.page_token):
            raise Refused("The page's token is missing or old.", status=403, fix="Reload the page.")
        if request.mimetype != "application/json":
            raise Refused("The body must be JSON.", status=415)

    def _is_own(self, request: Request) -> bool:
        origin = request.headers.get("Origin")
        if origin is None or self.hosts is None:  # behind proxies names differ; the token is what counts
            return origin != "null"
        return urlsplit(origin).netloc.lower() == request.headers.get("Host", "").lower()


def host_name(header: str) -> str | None:
    """The name in a Host header without its port; None where it is malformed."""
    if not header or len(header) > 300 or any(letter in header for letter in "/\\@?# "):
        return None
    try:
        name = urlsplit(f"//{header}").hostname
    except ValueError:
        return None
    return name.lower().rstrip(".") if name else None


def _same(given: str, expected: str) -> bool:
    return compare_digest(given.encode("utf-8", "replace"), expected.encode())
