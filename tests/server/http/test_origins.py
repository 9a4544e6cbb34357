"""Every combination of name and origin that a browser can send, against each way in which the app is mounted.

A page of another site that points its own name at this machine (DNS rebinding) sends that name as Host and as Origin; one
that posts across sites (CSRF) sends our name as Host and its own as Origin. Browsers name no origin in a GET of the same one.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest
from werkzeug.test import Client, TestResponse

from stepscope.server.app import App, Settings, make_app
from stepscope.server.http.guard import LOOPBACK, TOKEN_HEADER, Guard
from stepscope.server.http.sign_in import SignIn
from tests.server.conftest import Asking

TOKEN = "let-me-in"
PROXY = "proxy.example"
TAB = Guard(hosts=None, orders_as=(*LOOPBACK, "10.0.0.7"), flag="--stepscope_allow_host", may_be_framed=True)
GUARDS = {
    "serve": Guard(sign_in=SignIn(TOKEN)),
    "serve, proxy named": Guard(sign_in=SignIn(TOKEN), named=(PROXY,)),
    "serve --no-token": Guard(),
    "serve --host": Guard(hosts=None, sign_in=SignIn(TOKEN)),
    "tensorboard": TAB,
    "tensorboard, proxy named": replace(TAB, named=(PROXY,)),
}
ALL = tuple(GUARDS)
SERVE = ALL[:3]
TENSORBOARD = ALL[4:]
NAMED = ("serve, proxy named", "tensorboard, proxy named")
# Host, Origin (None: not sent), Sec-Fetch-Site, and where a POST is answered. Where it is not, it is refused.
ORDERS: list[tuple[str, str | None, str | None, tuple[str, ...]]] = [
    # The page itself.
    ("localhost:6007", "http://localhost:6007", "same-origin", ALL),
    ("127.0.0.1:6007", "http://127.0.0.1:6007", None, ALL),
    ("[::1]:6007", "http://[::1]:6007", "same-origin", ALL),
    ("LOCALHOST:6007", "http://localhost:6007", None, ALL),
    ("me.localhost:6007", "http://me.localhost:6007", "same-origin", ALL),
    # The name that TensorBoard was bound to. `serve --host` takes any name, since its token is bound to none.
    ("10.0.0.7:6006", "http://10.0.0.7:6006", "same-origin", ("serve --host", *TENSORBOARD)),
    # A proxy that keeps its name, and one that puts ours in its place.
    (PROXY, f"https://{PROXY}", "same-origin", ("serve --host", *NAMED)),
    (f"{PROXY}:8443", f"https://{PROXY}:8443", "same-origin", ("serve --host", *NAMED)),
    ("127.0.0.1:6007", f"https://{PROXY}", "same-origin", ("serve --host", *NAMED)),
    # A script without a browser: TensorBoard, which has no token to tell it by, refuses it.
    ("localhost:6007", None, None, (*SERVE, "serve --host")),
    # DNS rebinding. Only the cookie's absence would stop it at `serve --host`; here the client has it.
    ("evil.example:6007", "http://evil.example:6007", "same-origin", ("serve --host",)),
    ("evil.example", None, None, ("serve --host",)),
    ("localhost.evil.example", "http://localhost.evil.example", "same-origin", ("serve --host",)),
    (f"{PROXY}.evil.example", f"http://{PROXY}.evil.example", "same-origin", ("serve --host",)),
    ("0.0.0.0:6007", "http://0.0.0.0:6007", "same-origin", ("serve --host",)),
    # CSRF.
    ("localhost:6007", "http://evil.example", "cross-site", ()),
    ("localhost:6007", "http://evil.example", None, ("serve --host",)),
    ("localhost:6007", "http://localhost:8888", "same-site", ()),
    ("localhost:6007", "http://localhost:8888", None, ("serve --host",)),
    ("localhost:6007", "null", "cross-site", ()),
    ("localhost:6007", "null", None, ()),
    ("localhost:6007", f"https://{PROXY}", "cross-site", ()),
    ("localhost:6007", f"https://{PROXY}@evil.example", None, ("serve --host",)),
    ("localhost:6007", f"https://evil.example/{PROXY}", None, ("serve --host",)),
    (PROXY, "http://evil.example", None, ("serve --host",)),
    # What no browser sends.
    ("", "http://localhost:6007", None, ("serve --host",)),
    ("localhost@evil.example", "http://localhost", None, ("serve --host",)),
    ("localhost:6007", "http://[", None, ("serve --host",)),
]  # fmt: skip
# Host, Origin, and where a page and its figures are answered: TensorBoard answers its own under any name.
PAGES: list[tuple[str, str | None, tuple[str, ...]]] = [
    ("localhost:6007", None, ALL),
    ("me.localhost", None, ALL),
    ("10.0.0.7:6006", None, ("serve --host", *TENSORBOARD)),
    (PROXY, None, ("serve --host", "serve, proxy named", *TENSORBOARD)),
    ("evil.example", None, ("serve --host", *TENSORBOARD)),
    ("", None, ("serve --host", *TENSORBOARD)),
]


@pytest.fixture(scope="module")
def apps(app: App) -> Iterator[dict[str, App]]:
    made = {name: make_app(app.runs.places, Settings(guard=guard)) for name, guard in GUARDS.items()}
    yield made
    for each in made.values():
        each.close()


def signed_in(app: App, host: str) -> Client:
    """A browser that has the cookie under this very name: what is refused is refused by name and origin."""
    client = Client(app)
    if app.settings.guard.sign_in is not None:
        answer = client.get(f"/?token={TOKEN}", headers={"Host": host})
        cookie = answer.headers.get("Set-Cookie", "none=none").split(";")[0].split("=", 1)
        client.set_cookie(*cookie)
    return client


def headers(app: App, host: str, origin: str | None, site: str | None) -> dict[str, str]:
    sent = {
        "Host": host,
        "Origin": origin,
        "Sec-Fetch-Site": site,
        TOKEN_HEADER: app.settings.guard.page_token,
    }
    return {name: value for name, value in sent.items() if value is not None}


def post(app: App, path: str, host: str, origin: str | None, site: str | None) -> TestResponse:
    client = signed_in(app, host)
    return client.post(path, json={"target": "nonsense"}, headers=headers(app, host, origin, site))


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("host", "origin", "site", "answered"), ORDERS)
def test_orders(
    apps: dict[str, App],
    name: str,
    host: str,
    origin: str | None,
    site: str | None,
    answered: tuple[str, ...],
) -> None:
    """SQL and capture. What is let in is refused as wrong (400): the query is none, and so is the target."""
    run = Asking(apps["serve --no-token"]).id_of()
    expected = 400 if name in answered else 403
    for path in ("/api/capture", f"/api/runs/{run}/sql"):
        answer = post(apps[name], path, host, origin, site)
        assert answer.status_code in (expected, 202 if expected == 400 else expected), answer.text
        if expected == 403 and name in TENSORBOARD and site in (None, "same-origin") and origin != "null":
            assert "--stepscope_allow_host" in answer.get_json()["error"]["fix"]


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(("host", "origin", "answered"), PAGES)
def test_pages(
    apps: dict[str, App], name: str, host: str, origin: str | None, answered: tuple[str, ...]
) -> None:
    client = signed_in(apps[name], host)
    for path in ("/", "/web/shell/main.js", "/api/state", "/api/runs"):
        answer = client.get(path, headers=headers(apps[name], host, origin, None))
        assert answer.status_code == (200 if name in answered else 403), path


@pytest.mark.parametrize(
    ("host", "origin", "status"),
    [
        ("localhost", None, 200),
        ("10.0.0.7:6006", None, 200),
        (PROXY, None, 403),
        ("evil.example", None, 403),
        ("localhost", "http://evil.example", 403),
        ("localhost", "http://localhost", 200),
    ],
)
def test_what_can_be_recorded_from_is_told_under_known_names_only(
    apps: dict[str, App], host: str, origin: str | None, status: int
) -> None:
    """It has the command lines of jobs."""
    app = apps["tensorboard"]
    answer = Client(app).get("/api/capture", headers=headers(app, host, origin, None))
    assert answer.status_code == status


def test_the_refusal_says_what_to_do(apps: dict[str, App]) -> None:
    answer = post(apps["tensorboard"], "/api/capture", PROXY, f"https://{PROXY}", "same-origin")
    told = answer.get_json()["error"]
    assert told["what"] == f"SQL and capture are not answered to a page that is opened as {PROXY}."
    assert f"--stepscope_allow_host={PROXY}" in told["fix"]
