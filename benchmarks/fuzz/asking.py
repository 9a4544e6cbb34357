"""The server's routes over one profile, asked as the page asks: every answer is 200, whatever is in the files."""

from __future__ import annotations

import logging
import random
import time
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from werkzeug.test import Client, TestResponse

from stepscope.analysis.flames.costs import MEASURES
from stepscope.reports.model.report import Report
from stepscope.server.api.flame import WAYS
from stepscope.server.api.report import WHOLE
from stepscope.server.api.tables import OPS_BY, OWN, SECTIONS
from stepscope.server.app import App, Settings, make_app
from stepscope.server.http.guard import Guard
from stepscope.server.runs.watch import Place
from stepscope.server.timeline.layers import LAYERS
from stepscope.server.timeline.tiles import BUCKET_BITS, DEEPEST_LEVEL
from stepscope.trace.schema import TABLES

_PATIENCE_S = 120
_FAULT = 500
# What takes longest is asked for in some of the cases.
_SELDOM = 0.08


class Fault(AssertionError):
    """An answer that the page cannot do anything with."""


class _Heard(logging.Handler):
    """What the server logs of its faults: the answer only names them."""

    def __init__(self) -> None:
        super().__init__()
        self.last = ""

    def emit(self, record: logging.LogRecord) -> None:
        self.last = self.format(record)


_HEARD = _Heard()
_LOGGER = logging.getLogger("stepscope.server.app")
_LOGGER.addHandler(_HEARD)
_LOGGER.propagate = False


def ask_server(folder: Path, dice: random.Random, report: Report | None) -> None:
    """All routes of the run in the folder; `report` is its report with all rows, None if it cannot be read."""
    app = make_app([Place(str(folder))], Settings(capture=False, guard=Guard(hosts=None)))
    try:
        app.runs.look_now()
        asked = Asked(app, dice)
        for run in asked.json("api/runs")["runs"]:
            if report is None or dice.random() < _SELDOM:  # it reads the file once more
                asked.get(f"api/runs/{run['id']}/doctor", may_refuse=True)
            if report is None:
                asked.get(f"api/runs/{run['id']}/report", may_refuse=True)
        if report is not None:
            asked.run(report)
    finally:
        app.close()


class Asked:
    """One app, and the dice that choose what to ask where there is too much."""

    def __init__(self, app: App, dice: random.Random) -> None:
        self.app = app
        self.client = Client(app)
        self.dice = dice
        self.place = ""

    def get(self, path: str, may_refuse: bool = False, **query: Any) -> TestResponse:
        """The answer, waited for."""
        address = f"/{path}" + (f"?{urlencode(query)}" if query else "")
        end = time.monotonic() + _PATIENCE_S
        while (answer := self.client.get(address)).status_code == 202:
            if time.monotonic() > end:
                raise Fault(f"no answer to {address}")
        body = answer.get_data()
        if answer.status_code >= _FAULT or (answer.status_code != 200 and not may_refuse):
            raise Fault(f"{answer.status_code} from {address}: {body[:500]!r} {_HEARD.last}")
        return answer

    def json(self, path: str, **query: Any) -> Any:
        """The answer as the page takes it apart."""
        return self.get(path, **query).get_json()

    def of_run(self, path: str, **query: Any) -> Any:
        """Of the run that is looked at."""
        return self.json(f"{self.place}/{path}", **query)

    def run(self, report: Report) -> None:
        """Every route of the newest run, which is the one that the folder loads as."""
        listed = self.json("api/runs")["runs"]
        known = {run["name"]: run["id"] for run in listed}
        run_id = next((known[name] for name in known if report.profile.path.endswith(name)), listed[0]["id"])
        self.place = f"api/runs/{run_id}"
        ranks = self.of_run("ranks")["ranks"]
        if len(listed) == 1:  # else it might be another run's
            run = self.app.opened.get(self.app._listed(run_id))
            run.kept(WHOLE, lambda: report)
        self._tables()
        rank = self.dice.choice(ranks)
        if self.dice.random() < _SELDOM:
            self._other_reports(rank)
        self.of_run("flame", by=self.dice.choice(WAYS), measure=self.dice.choice(MEASURES), rank=rank)
        memory = self.of_run("memory", rank=rank)
        if memory["timeline"]:
            self.of_run(
                "memory", rank=rank, device=memory["device"], at=self.dice.choice(memory["timeline"])[0]
            )
        if self.dice.random() < _SELDOM:
            self.get(f"{self.place}/chrome", rank=rank)
        self._timeline(rank, ranks)

    def _tables(self) -> None:
        names = [*SECTIONS, *(f"{OWN}{name}" for name in TABLES)]
        for name in self.dice.sample(names, 6):
            found = self.of_run(f"table/{name}")
            if found["columns"] and self.dice.random() < 0.5:
                column = self.dice.choice(found["columns"])["name"]
                filtered = self.dice.choice(("a", "name:a", "!x"))
                self.get(f"{self.place}/table/{name}", may_refuse=True, sort=column, desc=1, filter=filtered)
        as_csv: dict[str, Any] = {"as": "csv"}
        self.get(f"{self.place}/table/{self.dice.choice(names)}", **as_csv)

    def _other_reports(self, rank: int) -> None:
        ways: tuple[dict[str, Any], ...] = ({}, {"rank": rank}, {"step": "0:2"}, {"step_name": "train_step"})
        self.get(f"{self.place}/report", may_refuse=True, **self.dice.choice(ways))
        self.of_run("table/ops", by=",".join(self.dice.sample(OPS_BY, 2)))

    def _timeline(self, rank: int, ranks: list[int]) -> None:
        beside = {"beside": ranks[0]} if len(ranks) > 1 else {}
        layout = self.of_run("timeline/layout", rank=rank, **beside)
        same: dict[str, Any] = {"rank": rank} | (
            {} if layout["moved"] is None else {"moved": layout["moved"]}
        )
        keyed = {**same, "key": layout["key"]}
        self.of_run("timeline/names", **keyed, page=0)
        start, end = layout["start_ns"], max(layout["start_ns"] + 1, layout["end_ns"])
        places = list(self._places(start, end))
        blocks = ",".join(map(str, range(min(4, layout["rows"] // 8 + 1))))
        for level, index in places:
            self.get(f"{self.place}/timeline/tiles", **keyed, level=level, index=index, blocks=blocks)
        for counter in self.of_run("timeline/counters", **same)["counters"][:2]:
            level, index = places[0]
            self.get(
                f"{self.place}/timeline/counter", **keyed, counter=counter["id"], level=level, index=index
            )
        self._layer(self.dice.choice(LAYERS), same, keyed, places[0])
        for number in self._some(layout["events"]):
            self.of_run("timeline/event", **same, id=number)
            self.of_run("timeline/arguments", **same, id=number)
            self.of_run("timeline/neighbour", **same, id=number, by=self.dice.choice((-1, 1)))
        text = self.dice.choice(("a", "aten", "#1", "\ufffd", "."))
        self.of_run("timeline/search", **same, q=text)
        self.of_run("timeline/hits", q=text)
        self.get(f"{self.place}/timeline/found", may_refuse=True, **same, q=text, at=start, by=1)
        tracks = ",".join(map(str, range(3)))
        middle = (start + end) // 2
        self.of_run("timeline/range", **same, start=start, end=end, tracks=tracks)
        self.of_run("timeline/parts", **same, start=start, end=max(start + 1, middle))

    def _layer(self, layer: str, same: dict[str, Any], keyed: dict[str, Any], place: tuple[int, int]) -> None:
        rows = self.of_run("timeline/layer", **same, layer=layer)["rows"]
        level, index = place
        self.get(f"{self.place}/timeline/tiles", **keyed, layer=layer, level=level, index=index, blocks="0")
        if rows:
            self.get(f"{self.place}/timeline/event", may_refuse=True, **same, layer=layer, id=0)

    def _places(self, start: int, end: int) -> list[tuple[int, int]]:
        """A tile that holds the whole trace, as far as there is one, and a narrow one somewhere in it."""
        wide = min(DEEPEST_LEVEL, max(0, (end - start).bit_length() - BUCKET_BITS + 1))
        narrow = self.dice.randrange(wide + 1)
        return [
            (level, at >> (level + BUCKET_BITS))
            for level, at in ((wide, start), (narrow, self.dice.randrange(start, end)))
        ]

    def _some(self, count: int) -> list[int]:
        return self.dice.sample(range(count), min(count, 3))
