"""Guests that are refused: each gets a short 4xx, and nothing changes."""

from __future__ import annotations

import json

import pytest

from stepscope.errors import StepscopeError
from stepscope.server.http.guard import TOKEN_HEADER, host_name, host_names
from stepscope.server.http.request import LARGEST_BODY
from tests.server.conftest import Asking

SQL = {"query": "SELECT COUNT(*) AS n FROM events"}


@pytest.mark.parametrize(
    "host", ["localhost", "localhost:6007", "127.0.0.1:1", "[::1]:80", "LOCALHOST.", "me.localhost:99"]
)
def test_loopback_names_are_let_in(asking: Asking, host: str) -> None:
    assert asking.client.get("/api/state", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "evil.example:6007",
        "127.0.0.1.evil.example",
        "localhost@evil.example",
        "",
        "x" * 400,
        "[::1",
        "192.168.1.2",
    ],
)
def test_other_names_are_refused(asking: Asking, host: str) -> None:
    answer = asking.client.get("/api/state", headers={"Host": host})
    assert answer.status_code == 403
    assert answer.get_json()["error"]["what"]


def test_a_post_needs_the_token(asking: Asking) -> None:
    path = f"/api/runs/{asking.id_of()}/sql"
    body = json.dumps(SQL)
    kind = "application/json"
    assert asking.client.post(path, data=body, content_type=kind).status_code == 403
    assert (
        asking.client.post(path, data=body, content_type=kind, headers={TOKEN_HEADER: "guess"}).status_code
        == 403
    )


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": "http://localhost:1"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_another_site_may_not_post_even_with_the_token(asking: Asking, headers: dict[str, str]) -> None:
    answer = asking.post(f"api/runs/{asking.id_of()}/sql", SQL, **headers)
    assert answer.status_code == 403


def test_a_form_may_not_post(asking: Asking) -> None:
    token = asking.app.settings.guard.page_token
    answer = asking.client.post(
        f"/api/runs/{asking.id_of()}/sql", data={"query": "x"}, headers={TOKEN_HEADER: token}
    )
    assert answer.status_code == 415


def test_our_own_page_may_post(asking: Asking) -> None:
    origin = {"Origin": "http://localhost", "Host": "localhost", "Sec-Fetch-Site": "same-origin"}
    asking.get(f"api/runs/{asking.id_of()}/table/tracks")
    answer = asking.post(f"api/runs/{asking.id_of()}/sql", {"query": "DROP TABLE events"}, **origin)
    assert answer.status_code == 400
    assert "a query is a SELECT" in answer.get_json()["error"]["what"]


@pytest.mark.parametrize("method", ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"])
def test_other_methods(asking: Asking, method: str) -> None:
    for path in ("/", "/api/runs", f"/api/runs/{asking.id_of()}/report", "/web/index.html"):
        assert asking.client.open(path, method=method).status_code in (403, 405)


def test_a_large_body_is_refused(asking: Asking) -> None:
    answer = asking.post(f"api/runs/{asking.id_of()}/sql", {"query": "x" * (LARGEST_BODY + 1)})
    assert answer.status_code == 413


@pytest.mark.parametrize(
    "path",
    [
        "",
        "index.html",
        "index.js",
        "api/state",
        "api/runs",
        "nix",
        "api/nix",
        "web/shell/main.js",
        "vendor/plotly.min.js",
        "web/../x",
    ],
)
def test_headers_of_every_answer(asking: Asking, path: str) -> None:
    answer = asking.get(path)
    policy = answer.headers["Content-Security-Policy"]
    assert "default-src 'self'" in policy
    assert "script-src 'self';" in policy
    assert "object-src 'none'" in policy
    assert "frame-ancestors 'self'" in policy
    assert "unsafe-eval" not in policy
    assert answer.headers["X-Content-Type-Options"] == "nosniff"
    assert answer.headers["Referrer-Policy"] == "no-referrer"
    assert answer.headers["Content-Type"]
    assert "Access-Control-Allow-Origin" not in answer.headers


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("localhost:80", "localhost"),
        ("[::1]:80", "::1"),
        ("A.b.", "a.b"),
        ("a/b", None),
        ("", None),
        ("[", None),
        ("a b", None),
    ],
)
def test_host_name(header: str, name: str | None) -> None:
    assert host_name(header) == name


@pytest.mark.parametrize(
    ("given", "names"),
    [
        (["Proxy.example"], ("proxy.example",)),
        (["a.example,b.example:8443", "https://c.example/x/"], ("a.example", "b.example", "c.example")),
        (["a.example", "a.example,", " "], ("a.example",)),
        (["[fd00::1]:80"], ("fd00::1",)),
        ([], ()),
    ],
)
def test_host_names(given: list[str], names: tuple[str, ...]) -> None:
    assert host_names(given) == names


@pytest.mark.parametrize("given", ["a b", "me@evil.example", "[", "http://", "?"])
def test_what_is_no_host_name(given: str) -> None:
    with pytest.raises(StepscopeError, match="not a host name"):
        host_names([given])
