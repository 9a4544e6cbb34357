"""The viewer's routes over the app of tests/server, and the tables of the same profiles."""

from __future__ import annotations

import gzip
from array import array
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from werkzeug.test import TestResponse

import stepscope
from stepscope.server.app import make_app
from stepscope.server.runs.watch import Place
from stepscope.trace.trace import Trace
from tests.builders.jobs.gloo_ranks import recorded
from tests.server.conftest import PROFILES, Asking

Item = tuple[int, int, int, int, int]  # start, duration, id, label, count


@dataclass
class Viewer:
    """One run as the page asks about it."""

    asking: Asking
    id: str
    key: str
    trace: Trace

    def answer(self, route: str, **query: Any) -> TestResponse:
        """The answer as it is."""
        path = f"api/runs/{self.id}/timeline/{route}"
        return self.asking.get(path, query_string={name: str(value) for name, value in query.items()})

    def get(self, route: str, **query: Any) -> Any:
        """JSON of a route."""
        answer = self.answer(route, **query)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        return answer.get_json()

    def bytes(self, route: str, **query: Any) -> bytes:
        """The body of a route that is kept by browsers."""
        answer = self.answer(route, key=self.key, **query)
        assert answer.status_code == 200, answer.get_data(as_text=True)
        assert "immutable" in answer.headers["Cache-Control"]
        data = answer.get_data()
        return gzip.decompress(data) if answer.headers.get("Content-Encoding") == "gzip" else data

    def tile(self, level: int, index: int, blocks: list[int], **query: Any) -> dict[int, list[Item]]:
        """The items of each row."""
        return decode(
            self.bytes("tiles", level=level, index=index, blocks=",".join(map(str, blocks)), **query)
        )


def decode(data: bytes) -> dict[int, list[Item]]:
    """A tile as web/timeline/decode.js reads it."""
    numbers = array("I", data)
    assert numbers[0] == 1
    count = numbers[1]
    heads = [(numbers[2 + 2 * at], numbers[3 + 2 * at]) for at in range(count)]
    total = sum(items for _, items in heads)
    first = 2 + 2 * count
    assert len(numbers) == first + 5 * total
    columns = [numbers[first + column * total : first + (column + 1) * total] for column in range(5)]
    starts = array("i", columns[0].tobytes())
    items = list(zip(starts, *columns[1:], strict=True))
    found, at = {}, 0
    for row, length in heads:
        found[row] = items[at : at + length]
        at += length
    return found


@pytest.fixture(scope="session")
def viewer(asking: Asking) -> Callable[[str], Viewer]:
    """A viewer of one of the profiles by its file name."""
    made: dict[str, Viewer] = {}

    def of(name: str = "gpt.pt.trace.json.gz") -> Viewer:
        if name not in made:
            run = next(run["id"] for shown, run in asking.runs().items() if shown.endswith(name))
            layout = asking.get(f"api/runs/{run}/timeline/layout").get_json()
            made[name] = Viewer(asking, run, layout["key"], stepscope.load(PROFILES[name]).traces[0])
        return made[name]

    return of


@pytest.fixture(scope="module")
def ranks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Viewer]:
    """Of four ranks whose clocks are up to 51 ms and 60 ppm apart."""
    folder = recorded(tmp_path_factory.mktemp("ranks") / "job")
    app = make_app([Place(str(folder))])
    asking = Asking(app)
    (run,) = asking.runs().values()
    layout = asking.get(f"api/runs/{run['id']}/timeline/layout").get_json()
    yield Viewer(asking, run["id"], layout["key"], stepscope.load(folder).traces[0])
    app.close()
