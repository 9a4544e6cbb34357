"""Signing in: nothing is shown without the token, and each way of showing it lets in."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterator

import pytest
from werkzeug.test import Client, TestResponse

from stepscope.errors import StepscopeError
from stepscope.server.app import App, Settings, make_app
from stepscope.server.http import sign_in
from stepscope.server.http.guard import TOKEN_HEADER, Guard
from stepscope.server.http.sign_in import TICKET_S, VARIABLE, SignIn, sign_in_from

TOKEN = "let-me-in"
SQL = {"query": "SELECT 1"}
SECURED = ("Content-Security-Policy", "X-Content-Type-Options", "Referrer-Policy", "X-Frame-Options")


@pytest.fixture(scope="module")
def guarded(app: App) -> Iterator[App]:
    made = make_app(app.runs.places, Settings(guard=Guard(sign_in=SignIn(TOKEN))))
    yield made
    made.close()


@pytest.fixture
def client(guarded: App) -> Client:
    return Client(guarded)


def test_the_page_asks_for_the_token(client: Client) -> None:
    for path in ("/", "/index.html", "//", "/?token="):
        answer = client.get(path)
        assert answer.status_code == 200
        assert 'name="token"' in answer.text
        assert "stepscope-token" not in answer.text
        assert "Set-Cookie" not in answer.headers
        assert answer.headers["Cache-Control"] == "no-store"
        assert all(name in answer.headers for name in SECURED)
        policy = answer.headers["Content-Security-Policy"]
        assert "form-action 'self'" in policy
        assert "script-src 'self';" in policy
        assert "frame-ancestors 'self'" in policy


@pytest.mark.parametrize(
    "path",
    ["/api/state", "/api/runs", "/api/runs/x/report", "/api/docs/index", "/api/", "/api/capture", "/api/state?token=guess",
     "/api/state?token=", "/api/state?ticket=x", "/web/shell/main.js", "/vendor/plotly.min.js", "/index.js", "/nix", "/web/../x"],
)  # fmt: skip
def test_nothing_else_without_the_token(client: Client, path: str) -> None:
    for method in ("GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"):
        answer = client.open(path, method=method)
        assert answer.status_code == 403
        assert all(name in answer.headers for name in SECURED)
    assert "link" in client.get(path).get_json()["error"]["fix"]


@pytest.mark.parametrize("given", ["guess", "let-me-i", "let-me-in2", "LET-ME-IN", "l\u00e9t", "x" * 3000])
def test_a_wrong_token_is_told(client: Client, given: str) -> None:
    answers = [client.get("/", query_string={"token": given}), client.post("/", data={"token": given})]
    for answer in answers:
        assert answer.status_code == 403
        assert "That is not the token" in answer.text
        assert given not in answer.text
        assert "Set-Cookie" not in answer.headers
    assert client.get("/api/state").status_code == 403


def check_cookie(answer: TestResponse) -> None:
    cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert "Path" not in cookie, "the browser takes the folder of the page, behind whatever prefix"
    assert TOKEN not in cookie
    assert answer.headers["Cache-Control"] == "no-store"


def test_the_link_becomes_a_cookie(client: Client) -> None:
    answer = client.get(f"/?token={TOKEN}")
    assert answer.status_code == 200
    check_cookie(answer)
    assert "url=./" in answer.text
    assert "<script>" not in answer.text, "the policy of the page allows only files of this server"
    assert client.get("/api/state").status_code == 200
    assert "stepscope-token" in client.get("/").text
    assert client.get(f"/?token={TOKEN}").headers["Set-Cookie"], "the link works again"


def test_the_form_becomes_a_cookie(client: Client) -> None:
    for _ in range(2):  # also for one who is signed in already
        answer = client.post("/", data={"token": f" {TOKEN} "})
        assert answer.status_code == 303
        assert answer.headers["Location"] == "./"
        check_cookie(answer)
    assert client.get("/api/state").status_code == 200


def test_a_huge_form_is_refused(client: Client) -> None:
    assert client.post("/", data={"token": "x" * 100_000}).status_code == 413


def test_the_cookie_alone_does_not_post(client: Client) -> None:
    client.get(f"/?token={TOKEN}")
    assert client.post("/api/capture", json={"target": "1"}).status_code == 403


def test_the_cookie_and_the_page_do(client: Client, guarded: App) -> None:
    client.get(f"/?token={TOKEN}")
    headers = {TOKEN_HEADER: guarded.settings.guard.page_token}
    assert client.post("/api/runs/x/sql", json=SQL, headers=headers).status_code == 404


@pytest.mark.parametrize("value", ["guess", TOKEN, ""])
def test_a_wrong_cookie(client: Client, value: str) -> None:
    client.set_cookie("stepscope-80", value)
    assert client.get("/api/state").status_code == 403


def test_another_server_on_the_same_host_has_another_cookie(client: Client, app: App) -> None:
    other = make_app(app.runs.places, Settings(guard=Guard(sign_in=SignIn(TOKEN))))
    mine = client.get(f"/?token={TOKEN}", headers={"Host": "localhost:6007"}).headers["Set-Cookie"]
    theirs = Client(other).get(f"/?token={TOKEN}", headers={"Host": "localhost:6008"}).headers["Set-Cookie"]
    assert mine.startswith("stepscope-6007=")
    assert theirs.startswith("stepscope-6008=")
    assert mine.split("=")[1] != theirs.split("=")[1], (
        "a cookie is worth nothing to the next server with the same token"
    )
    other.close()


@pytest.mark.parametrize("scheme", ["Bearer", "token", "bearer", "Token"])
def test_scripts_send_a_header(client: Client, scheme: str) -> None:
    headers = {"Authorization": f"{scheme} {TOKEN}"}
    assert client.get("/api/state", headers=headers).status_code == 200
    assert client.post("/api/runs/x/sql", json=SQL, headers=headers).status_code == 404, "let in: no such run"
    assert client.get("/api/state").status_code == 403, "and nothing stays behind"


@pytest.mark.parametrize(
    "value", ["Bearer guess", "Bearer", "Bearer ", f"Basic {TOKEN}", TOKEN, f"Bearer{TOKEN}", ""]
)
def test_wrong_headers(client: Client, value: str) -> None:
    assert client.get("/api/state", headers={"Authorization": value}).status_code == 403


def test_a_script_may_put_it_into_the_address(client: Client) -> None:
    assert client.get(f"/api/state?token={TOKEN}").status_code == 200
    assert client.post(f"/api/runs/x/sql?token={TOKEN}", json=SQL).status_code == 403, (
        "which another site could do, too"
    )


def test_a_script_on_another_site_is_refused_even_with_the_header(client: Client) -> None:
    headers = {"Authorization": f"Bearer {TOKEN}", "Origin": "http://evil.example"}
    assert client.post("/api/runs/x/sql", json=SQL, headers=headers).status_code == 403


def test_the_token_is_never_logged(client: Client, guarded: App, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    client.get(f"/?token={TOKEN}")
    client.get(f"/api/nix?token={TOKEN}")
    client.post("/", data={"token": TOKEN})
    assert TOKEN not in caplog.text
    assert TOKEN not in repr(guarded.settings)


class TestTickets:
    """What the browser is started with, since every user can read command lines."""

    def test_lets_in_once(self, client: Client, guarded: App) -> None:
        assert guarded.settings.guard.sign_in is not None
        ticket = guarded.settings.guard.sign_in.new_ticket()
        assert client.get(f"/api/state?ticket={ticket}").status_code == 403
        check_cookie(client.get(f"/?ticket={ticket}"))
        assert client.get("/api/state").status_code == 200
        stranger = Client(guarded)
        assert "Set-Cookie" not in stranger.get(f"/?ticket={ticket}").headers
        assert stranger.get("/api/state").status_code == 403

    def test_ends(self, client: Client, guarded: App) -> None:
        assert guarded.settings.guard.sign_in is not None
        ticket = guarded.settings.guard.sign_in.new_ticket()
        guarded.settings.guard.sign_in._tickets[-1].ends -= TICKET_S
        assert "Set-Cookie" not in client.get(f"/?ticket={ticket}").headers

    def test_is_for_this_user(self, client: Client, guarded: App, monkeypatch: pytest.MonkeyPatch) -> None:
        assert guarded.settings.guard.sign_in is not None
        ticket = guarded.settings.guard.sign_in.new_ticket()
        monkeypatch.setattr(sign_in, "user_of", lambda _request: os.getuid() + 1)
        assert "Set-Cookie" not in client.get(f"/?ticket={ticket}").headers
        monkeypatch.setattr(sign_in, "user_of", lambda _request: os.getuid())
        assert "Set-Cookie" in client.get(f"/?ticket={ticket}").headers, (
            "another user's try does not use it up"
        )


class TestGiven:
    """The token of the environment."""

    def test_new_ones_differ(self) -> None:
        (one, _), (other, is_given) = sign_in_from({}), sign_in_from({VARIABLE: ""})
        assert not is_given
        assert one.token != other.token
        assert len(one.token) >= 32

    def test_is_taken(self) -> None:
        made, is_given = sign_in_from({VARIABLE: "correct-horse"})
        assert is_given
        assert made.token == "correct-horse"
        assert made.session not in (made.token, sign_in_from({VARIABLE: "correct-horse"})[0].session)

    @pytest.mark.parametrize(
        "given", ["short", "with space in it", "b\u00e4r-b\u00e4r-b\u00e4r", "x" * 201, "line\nbreak-x"]
    )
    def test_bad_ones_are_told_and_not_shown(self, given: str) -> None:
        with pytest.raises(StepscopeError, match=VARIABLE) as told:
            sign_in_from({VARIABLE: given})
        assert given not in str(told.value)


@pytest.mark.skipif(not os.path.exists("/proc/net/tcp"), reason="needs Linux")  # noqa: PTH110
@pytest.mark.parametrize(("family", "host"), [(socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1")])
def test_whose_connection_it_is(family: socket.AddressFamily, host: str) -> None:
    from werkzeug.test import EnvironBuilder
    from werkzeug.wrappers import Request

    from stepscope.server.http.peers import user_of

    try:
        server = socket.create_server((host, 0), family=family)
    except OSError:
        pytest.skip(f"no {host} here")
    with server, socket.create_connection(server.getsockname()[:2]) as made:
        address, port = made.getsockname()[:2]
        environ = EnvironBuilder().get_environ() | {"REMOTE_ADDR": address, "REMOTE_PORT": str(port)}
        assert user_of(Request(environ)) == os.getuid()
        assert user_of(Request(environ | {"REMOTE_PORT": "0"})) is None
        assert user_of(Request(environ | {"REMOTE_ADDR": "nonsense"})) is None
