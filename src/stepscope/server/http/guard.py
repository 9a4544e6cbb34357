"""Who is let in, and what a browser may do with the answers.

Three checks, one after the other: the name by which the server is called, since a page of another site that points its own
name here sends that name; the token, if one is asked for; and for what changes something or costs much, that it is our own
page that asks.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from secrets import token_urlsafe
from urllib.parse import urlsplit

from werkzeug.wrappers import Request, Response

from stepscope.errors import StepscopeError
from stepscope.server.http.request import Refused
from stepscope.server.http.sign_in import FormPage, SignIn, same

TOKEN_HEADER = "X-Stepscope-Token"
LOOPBACK = ("localhost", "127.0.0.1", "::1")
_POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; "
    "font-src 'self' data:; connect-src 'self'; worker-src 'self'; object-src 'none'; base-uri 'none'"
)


@dataclass(frozen=True)
class Guard:
    """How visitors are checked.

    `hosts` are the names by which the server may be called, None for any; `orders_as` the same for SQL and capture alone, where
    everything else is answered under any name. `named` are the names that the user gave with the option `flag`: a proxy that
    hides its own name from us still sends it as the origin. Without `sign_in` no token is asked for.
    """

    hosts: tuple[str, ...] | None = LOOPBACK
    orders_as: tuple[str, ...] | None = None
    named: tuple[str, ...] = ()
    flag: str = "--allow-host"
    sign_in: SignIn | None = None
    may_be_framed: bool = False
    page_token: str = field(default_factory=lambda: token_urlsafe(24), repr=False)

    def check(self, request: Request) -> Response | None:
        """Refuse who may not ask. A response is the whole answer: the page that signs in, or what follows on it."""
        if self.hosts is not None:
            self._check_host(request, self.hosts)
        shown = None if self.sign_in is None else self.sign_in.check(request)
        if shown is None and request.method not in ("GET", "HEAD"):
            self._check_change(request)
        return shown

    def check_order(self, request: Request) -> None:
        """For SQL and all of capture, besides `check`: is it asked for under a name that the user knows of?"""
        if self.orders_as is None:
            return
        name = host_name(request.headers.get("Host", ""))
        if not _is_among(name, (*self.orders_as, *self.named)):
            raise self._not_ordered_by(f"a page that is opened as {name or 'nothing'}", name)
        origin = request.headers.get("Origin")
        if origin is None and request.method in ("GET", "HEAD"):
            return  # browsers name the origin of a GET only when it is another one
        if not self._is_own(request):
            asker = host_name(_netloc(origin or ""))
            raise self._not_ordered_by(
                f"a page of {asker}" if asker else "a request that names no origin", asker
            )

    def protect(self, response: Response) -> Response:
        """The headers of every answer."""
        forms = "'self'" if isinstance(response, FormPage) else "'none'"
        frames = "" if self.may_be_framed else "; frame-ancestors 'self'"
        response.headers["Content-Security-Policy"] = f"{_POLICY}; form-action {forms}{frames}"
        response.headers["X-Content-Type-Options"] = "nosniff"
        response.headers["Referrer-Policy"] = "no-referrer"
        response.headers["Cross-Origin-Resource-Policy"] = "same-origin"
        if not self.may_be_framed:
            response.headers["X-Frame-Options"] = "SAMEORIGIN"
        return response

    def _check_host(self, request: Request, hosts: tuple[str, ...]) -> None:
        if not _is_among(host_name(request.headers.get("Host", "")), (*hosts, *self.named)):
            raise Refused(
                "The server is not known by this name.",
                status=403,
                fix=f"Open it as localhost, or name the host with {self.flag}.",
            )

    def _check_change(self, request: Request) -> None:
        """Only our own page may ask for a change; or a script that has the token, which no other page can send as a header."""
        site = request.headers.get("Sec-Fetch-Site", "same-origin")
        is_script = self.sign_in is not None and self.sign_in.has_header(request)
        if site not in ("same-origin", "none") or not (self._is_own(request) or self._is_any_name(request)):
            raise Refused("Another site may not ask for this.", status=403)
        if not is_script and not same(request.headers.get(TOKEN_HEADER, ""), self.page_token):
            raise Refused("The page's token is missing or old.", status=403, fix="Reload the page.")
        if request.mimetype != "application/json":
            raise Refused("The body must be JSON.", status=415)

    def _is_own(self, request: Request) -> bool:
        """Whether the page that asks is where it asks, or has a name that the user gave."""
        netloc = _netloc(request.headers.get("Origin", ""))
        return netloc != "" and (
            netloc == request.headers.get("Host", "").lower() or host_name(netloc) in self.named
        )

    def _is_any_name(self, request: Request) -> bool:
        """Whether the origin does not matter: none is named, or names differ behind proxies and the token is what counts."""
        origin = request.headers.get("Origin")
        return origin is None or (self.hosts is None and origin != "null")

    def _not_ordered_by(self, asker: str, name: str | None) -> Refused:
        return Refused(
            f"SQL and capture are not answered to {asker}.",
            status=403,
            fix=f"Open TensorBoard as localhost, or start it with {self.flag}={name or 'NAME'}.",
        )


def host_name(header: str) -> str | None:
    """The name in a Host header without its port; None where it is malformed."""
    if not header or len(header) > 300 or any(letter in header for letter in "/\\@?# "):
        return None
    try:
        name = urlsplit(f"//{header}").hostname
    except ValueError:
        return None
    return name.lower().rstrip(".") if name else None


def host_names(given: Iterable[str]) -> tuple[str, ...]:
    """The names in what a user gave: names, names with ports, or addresses of pages, several with commas between them."""
    words = [word.strip() for text in given for word in text.split(",") if word.strip()]
    found = [(word, host_name(_netloc(word) or word)) for word in words]
    for word, name in found:
        if name is None:
            raise StepscopeError(
                f"This is not a host name: {word}", fix="Give a name such as profiles.example.com."
            )
    return tuple(dict.fromkeys(name for _, name in found if name is not None))


def _netloc(address: str) -> str:
    """The name and port of http://name:port, empty where there is none."""
    try:
        return urlsplit(address).netloc.lower()
    except ValueError:
        return ""


def _is_among(name: str | None, names: Iterable[str]) -> bool:
    return name is not None and (name in names or name.endswith(".localhost"))
