"""What an event waited for, and what waited for it: launches, streams, host waits, and the critical path.

The rules are those of the replay: work of a device begins when it was launched and the work before it on its stream is done;
a host wait ends with the work that it waits for.
"""

from __future__ import annotations

from typing import Any

import msgspec
import polars as pl

from stepscope.analysis.host.causes import is_wait
from stepscope.registers.calibration.launches import LAUNCH_LATENCY_NS
from stepscope.server.timeline.details import row_of
from stepscope.server.timeline.layers import PATH, layer_of
from stepscope.server.timeline.view import View
from stepscope.trace.trace import Trace

MOST_EVENTS_WITH_PATH = 4_000_000  # beyond that the path is worked out only when it is asked for
MOST_WAITS = 16
_WORK = ("kernel", "copy", "memset")


class Wait(msgspec.Struct):
    """The other event. `ns` is how long before (or after) it ended; `decides` where nothing else held the event up as long."""

    why: str
    id: int
    name: str
    track: int
    row: int
    after_ns: int
    dur_ns: int
    ns: int
    decides: bool


def waits_of(view: View, number: int) -> dict[str, Any]:
    """`before`: what it waited for; `after`: what waited for it; `path`: its place on the critical path, where it is on one."""
    event = view.trace.events.row(number, named=True)
    if event["kind"] in _WORK:
        before, after = _before_work(view, event), _after_work(view, event)
    else:
        before, after = _before_host(view, event), _launched(view, event)
    return {"before": before, "after": after, "path": _on_path(view, number)}


def _work_of(view: View) -> pl.DataFrame:
    """id, track, start_ns, end_ns, launch, launched_ns of all device work, by track and start."""
    return view.run.later(f"timeline work {view.name}", lambda: _work(view.trace), "finding waits")


def _work(trace: Trace) -> pl.DataFrame:
    events = trace.events
    work = events.lazy().filter(pl.col("kind").cast(pl.String).is_in(_WORK)).collect()
    launches = trace.links.filter(pl.col("why") == "launch").unique("to", keep="first")
    launched = launches.select(
        id="to", launch="from", launched_ns=events["start_ns"].gather(launches["from"])
    )
    return work.select("id", "track", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns")).join(
        launched, on="id", how="left", maintain_order="left"
    )


def _host_waits(view: View) -> pl.DataFrame:
    """id, start_ns, end_ns of the host's waits for the device."""

    def make() -> pl.DataFrame:
        waits = view.trace.events.filter(is_wait(view.trace))
        return waits.select("id", "track", "start_ns", end_ns=pl.col("start_ns") + pl.col("dur_ns"))

    return view.run.later(f"timeline host waits {view.name}", make, "finding waits")


def _before_work(view: View, event: dict[str, Any]) -> list[Wait]:
    """The launch, and the work before it on its stream: the later of them decided when it began."""
    work = _work_of(view)
    place = int(work["id"].search_sorted(event["id"]))
    own = work.row(place, named=True)
    start = own["start_ns"]
    found = []
    previous = work.row(place - 1, named=True) if place else None
    queued = previous is not None and previous["track"] == own["track"]
    is_held = bool(
        queued and previous and previous["end_ns"] > (own["launched_ns"] or -(2**62)) + LAUNCH_LATENCY_NS
    )
    if own["launch"] is not None:
        found.append(_wait(view, "launch", own["launch"], start - own["launched_ns"], not is_held))
    if queued and previous:
        found.append(_wait(view, "stream", previous["id"], start - previous["end_ns"], is_held))
    found += [_wait(view, "event", other, 0, False) for other in _linked(view, event["id"], "to", "from")]
    return sorted(found, key=lambda each: not each.decides)


def _after_work(view: View, event: dict[str, Any]) -> list[Wait]:
    """The work behind it on its stream, and the host's waits that ended with it."""
    work = _work_of(view)
    place = int(work["id"].search_sorted(event["id"]))
    own = work.row(place, named=True)
    end = own["end_ns"]
    found = [_wait(view, "sync", each["id"], each["end_ns"] - end, True) for each in _ended_by(view, own)]
    following = work.row(place + 1, named=True) if place + 1 < len(work) else None
    if following and following["track"] == own["track"]:
        is_held = end > (following["launched_ns"] or -(2**62)) + LAUNCH_LATENCY_NS
        found.append(_wait(view, "stream", following["id"], following["start_ns"] - end, is_held))
    found += [_wait(view, "event", other, 0, False) for other in _linked(view, event["id"], "from", "to")]
    return found


def _ended_by(view: View, own: dict[str, Any]) -> list[dict[str, Any]]:
    """The host's waits for which this work was the last to end."""
    end = own["end_ns"]
    waits = _host_waits(view).filter(pl.col("start_ns") < end, pl.col("end_ns") + LAUNCH_LATENCY_NS >= end)
    rows = waits.head(MOST_WAITS).iter_rows(named=True)
    return [each for each in rows if _waited_for(view, each["start_ns"], each["end_ns"]) == own["id"]]


def _waited_for(view: View, start: int, end: int) -> int | None:
    """Of the work that was launched before a wait and ran during it, the one that ended last with it."""
    candidates = _work_of(view).filter(
        pl.col("start_ns") < end,
        pl.col("end_ns") > start,
        pl.col("end_ns") <= end + LAUNCH_LATENCY_NS,
        pl.col("launched_ns") < start,
    )
    return None if candidates.is_empty() else int(candidates["id"][int(candidates["end_ns"].arg_max() or 0)])


def _before_host(view: View, event: dict[str, Any]) -> list[Wait]:
    """Of the waits in it (or of itself, if it is one) the longest, and the work that they ended with."""
    low, high = event["start_ns"], event["start_ns"] + event["dur_ns"]
    inside = _host_waits(view).filter(
        pl.col("track") == event["track"], pl.col("start_ns") >= low, pl.col("end_ns") <= high
    )
    longest = inside.sort(pl.col("end_ns") - pl.col("start_ns"), descending=True).head(MOST_WAITS)
    found = []
    for each in longest.iter_rows(named=True):
        other = _waited_for(view, each["start_ns"], each["end_ns"])
        if other is not None:
            found.append(_wait(view, "device", other, each["end_ns"] - each["start_ns"], True))
    found += [_wait(view, "event", other, 0, False) for other in _linked(view, event["id"], "to", "from")]
    return found


def _launched(view: View, event: dict[str, Any]) -> list[Wait]:
    """The work that a launch started."""
    links = view.trace.links.filter(pl.col("from") == event["id"], pl.col("why") == "launch")
    started = view.trace.events["start_ns"].gather(links["to"].head(MOST_WAITS)).to_list()
    rows = zip(links["to"].head(MOST_WAITS), started, strict=True)
    return [_wait(view, "launch", other, start - event["start_ns"], True) for other, start in rows]


def _linked(view: View, number: int, here: str, there: str) -> list[int]:
    """Waits for events that the file itself records."""
    links = view.trace.links.filter(pl.col(here) == number, pl.col("why") == "record-wait")
    return [int(other) for other in links[there].head(MOST_WAITS)]


def _wait(view: View, why: str, number: int, ns: int, decides: bool) -> Wait:
    other = view.trace.events.row(number, named=True)
    return Wait(
        why=why,
        id=number,
        name=other["name"] or "",
        track=other["track"],
        row=row_of(view, other),
        after_ns=other["start_ns"] - view.extent.start_ns,
        dur_ns=other["dur_ns"],
        ns=max(0, ns),
        decides=decides,
    )


def _on_path(view: View, number: int) -> dict[str, Any] | None:
    """How much of a step's length it decides, and what comes before and after it on the path."""
    if len(view.trace.events) > MOST_EVENTS_WITH_PATH:
        return None
    spans = layer_of(view, PATH).spans
    mine = (spans["named_by"] == number).fill_null(False) & ~spans["before"]
    places = mine.arg_true()
    if places.is_empty():
        return None
    first, last = int(places[0]), int(places[-1])
    names = layer_of(view, PATH).store.names
    near = {"before": first - 1, "after": last + 1}
    found: dict[str, Any] = {
        key: {"id": at, "name": names[spans["name"][at]]} if 0 <= at < len(spans) else None
        for key, at in near.items()
    }
    return {
        "ns": int(spans["dur_ns"].gather(places).sum()),
        "step": spans["step"][first],
        "id": first,
        **found,
    }
