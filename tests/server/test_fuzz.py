"""Hostile requests at every route: whatever is asked, the answer is never a 5xx."""

from __future__ import annotations

import random
import string
from urllib.parse import quote

import pytest

from stepscope.server.api.routes import RunRoute
from stepscope.server.app import RUN_ROUTES
from stepscope.server.http.guard import TOKEN_HEADER
from tests.sample import SOAKS, pairs
from tests.server.conftest import Asking

pytestmark = pytest.mark.thorough

ROUNDS = 20_000 if SOAKS else 900
NUMBERS = [
    "0",
    "1",
    "-1",
    "99999",
    str(2**31),
    str(2**63),
    str(-(2**63)),
    str(2**64),
    "9" * 400,
    "1e9",
    "nan",
    "inf",
    "0x10",
    "1.5",
    "+3",
    " 7",
]
TEXTS = [
    "", "a", "x" * 3000, "\0", "\ud7ff", "é", "🙂" * 50, "%", "'", '"', "<script>", "../../etc/passwd", "..%2f..", "\\\\host\\x", "*", ".*", "(", "a" * 400,
    "name:", "name:\0", "dur_ns>", "dur_ns>1ms", "dur>5ms", "dur<", "stream=7", "arg:x", "merged", "path", "module", 'a"b', "true", "gpu:0", "cpu", "scope", "stack", "host", "device", "csv", "name", "dur_ns",
    "start_ns", "shapes,scope", "1,2,3", "1:2", "3:", ",", ",,,", "0,1,2,99999999999",
    "kernel:", "op:aten::mm", "step:3", "step:-1", "event:99", "finding:1", "account:input", "memory:unknown", "idle:0", '{"start": 1, "end": 2}', '{"op": null}', "{",
]  # fmt: skip
PARAMETERS = [
    "rank", "step", "step_name", "sort", "desc", "filter", "offset", "limit", "as", "by", "measure", "device", "start", "end", "at", "points", "a", "b",
    "key", "event", "track", "tracks", "level", "from", "to", "query", "q", "width", "rows", "buckets", "token", "first", "count", "direction", "name",
    "groups", "ranks", "kind", "text", "after", "before", "pixels", "tile", "tiles", "version", "of", "with", "file", "line", "id", "beside", "moved", "layer", "level",
]  # fmt: skip
TABLES = [
    "steps",
    "ops",
    "kernels",
    "events",
    "memory",
    "trace.memory",
    "nix",
    "traces",
    "links",
    "..",
    "%00",
]
BODIES = [
    b"",
    b"{}",
    b"[]",
    b"{",
    b"\xff",
    b'{"query": 1}',
    b'{"query": ""}',
    b'{"query": "DROP"}',
    b'{"target": 1}',
    b'{"target": "x"}',
    b"0" * 5000,
    b"null",
]
METHODS = ["GET"] * 12 + ["POST"] * 3 + ["HEAD", "PUT", "DELETE", "OPTIONS", "PATCH", "TRACE", "FOO"]


class Hostile:
    """Requests, the same ones every time."""

    def __init__(self, seed: int, runs: list[str]) -> None:
        self.random = random.Random(seed)
        self.runs = runs

    def value(self) -> str:
        choices = [
            lambda: self.random.choice(NUMBERS),
            lambda: self.random.choice(TEXTS),
            lambda: str(
                self.random.randint(-(10 ** self.random.randint(0, 25)), 10 ** self.random.randint(0, 25))
            ),
            lambda: "".join(self.random.choices(string.printable, k=self.random.randint(0, 40))),
            lambda: "".join(chr(self.random.randint(1, 0xD7FF)) for _ in range(self.random.randint(1, 10))),
        ]
        return self.random.choice(choices)()

    def query(self) -> str:
        names = self.random.sample(PARAMETERS, self.random.randint(0, 6))
        pairs = [f"{name}={quote(self.value(), errors='replace')}" for name in names]
        if self.random.random() < 0.05:
            pairs += [f"p{number}=1" for number in range(100)]
        return "&".join(pairs)

    def path(self) -> str:
        run = self.random.choice([*self.runs, "nix", "0" * 16, "..", "%00"])
        route = self.random.choice(RUN_ROUTES).path.replace("*", self.random.choice(TABLES))
        choices = [
            f"api/runs/{run}/{route}",
            f"api/runs/{run}/{route}",
            f"api/runs/{run}/{route}",
            f"api/runs/{run}/{quote(self.value(), errors='replace')}",
            self.random.choice(
                [
                    "api/state",
                    "api/runs",
                    "api/compare",
                    "api/doctor/x",
                    "api/docs/report/ops",
                    "api/capture",
                    "api/capture/x",
                    "api/",
                    "api",
                ]
            ),
            quote(self.value(), errors="replace"),
            f"web/{quote(self.value(), errors='replace')}",
            f"api/docs/{quote(self.value(), errors='replace')}",
        ]
        return self.random.choice(choices)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_no_request_breaks_the_server(asking: Asking, seed: int) -> None:
    runs = [str(run["id"]) for run in asking.runs().values()]
    hostile = Hostile(seed, runs)
    token = asking.app.settings.guard.page_token
    statuses: dict[int, int] = {}
    for _ in range(ROUNDS // 3):
        path, query = hostile.path(), hostile.query()
        method = hostile.random.choice(METHODS)
        is_change = method not in ("GET", "HEAD")
        headers = {TOKEN_HEADER: token} if is_change and hostile.random.random() < 0.7 else {}
        answer = asking.client.open(
            f"/{path}?{query}",
            method=method,
            data=hostile.random.choice(BODIES) if is_change else None,
            content_type="application/json",
            headers=headers,
        )
        statuses[answer.status_code] = statuses.get(answer.status_code, 0) + 1
        assert answer.status_code < 500, (method, path, query, answer.get_data()[:300])
        assert answer.get_data() or method == "HEAD"
        if answer.status_code >= 400 and method != "HEAD":
            assert answer.get_json()["error"]["what"], (method, path, query)
    assert statuses.get(200, 0) > 5, statuses
    assert statuses.get(400, 0) > 10, statuses


@pytest.mark.parametrize("route", RUN_ROUTES, ids=lambda route: route.path)
def test_one_wrong_parameter_at_a_time(asking: Asking, route: RunRoute) -> None:
    path = f"/api/runs/{asking.id_of()}/{route.path.replace('*', 'ops')}"
    headers = {TOKEN_HEADER: asking.app.settings.guard.page_token}
    for name, value in pairs(PARAMETERS, ("99999999999999999999999", "-1", "\0", "x" * 2500, "nan", "<b>")):
        answer = asking.client.open(
            f"{path}?{name}={quote(value)}",
            method=route.method,
            content_type="application/json",
            headers=headers,
        )
        assert answer.status_code < 500, (path, name, value, answer.get_data()[:300])
