"""Damage inside JSON documents that leaves them JSON: the scanner is passed, and what comes behind it is reached."""

from __future__ import annotations

import copy
import json
import math
import random
from collections.abc import Callable
from typing import Any

Event = dict[str, Any]
# Stands for bytes that no JSON writer makes; put in when the text is made.
_RAW = "@RAW@"
_RAW_BYTES = (b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xf0\x9f\x94", b"\xfe\xff", b"\x7f")
_DEEP: Any = 0
for _ in range(60):
    _DEEP = [_DEEP]
STRANGE: tuple[Any, ...] = (
    None, True, False, "", " ", "x" * 3000, -1, 0, 1, 0.5, -0.0, 2**31, 2**32, 2**53 + 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1,
    2**64, -(2**31), -(2**63), -(2**63) - 1, 10**30, 1e15, 1e308, -1e308, 5e-324, math.nan, math.inf, -math.inf, [], {}, [[]],
    [None], {"a": 1}, "NaN", "1e400", "-1", "0x10", "18446744073709551616", "99999999999", "\u0661\u0662", "\ud800", "\0", "\u202e<b>&\"'",
    "🙂" * 40, _RAW, f"aten::{_RAW}mm", "[1,2", "[[1,2],[3", '["float"', "[[-1,99999999999999999999]]", [1, 2], [2**32] * 3, [-1, -1, -1],
    [1.5, 0, "x"], [2**64] * 3, [0, 0, 0], list(range(300)), _DEEP, "a/b/c", "ProfilerStep#9", "ProfilerStep#", "ProfilerStep#99999999999999999999",
    "Optimizer.step#", "ncclDevKernel_AllReduce", "Memcpy HtoD (", "hipLaunchKernel", "[memory]", "$a.py:99999999999999999999 f", "a.py(-1): f",
)  # fmt: skip
_KEYS = ("name", "ph", "cat", "pid", "tid", "ts", "dur", "id", "args", "s", "bp")


def damaged(dice: random.Random, data: bytes) -> tuple[bytes, int | None]:
    """The document with something wrong inside, and how many of its events may suffer; None where that cannot be said."""
    document = json.loads(data)
    events: list[Any] = document["traceEvents"] if isinstance(document, dict) else document
    if dice.random() < 0.5 and events:
        some = dice.choice((1, 1, 1, 3))
        for _ in range(some):
            dice.choice(_OF_ROW)(dice, dice.choice(events))
        return _text(dice, document), some
    if isinstance(document, dict) and dice.random() < 0.3:
        dice.choice((_alter_header, _alter_inside))(dice, document)
    else:
        dice.choice(_OF_ALL)(dice, events)
    return _text(dice, document), None


def _text(dice: random.Random, document: Any) -> bytes:
    text = json.dumps(document, ensure_ascii=dice.random() < 0.8).encode("utf-8", "surrogatepass")
    return text.replace(_RAW.encode(), dice.choice(_RAW_BYTES))


def strange(dice: random.Random) -> Any:
    """Something that does not belong there; never the same object twice."""
    return copy.deepcopy(dice.choice(STRANGE))


def _arguments(event: Any) -> Event:
    found = event.get("args") if isinstance(event, dict) else None
    return found if isinstance(found, dict) else {}


def _set_argument(dice: random.Random, event: Event) -> None:
    args = _arguments(event)
    if args:
        args[dice.choice(list(args))] = strange(dice)


def _drop_argument(dice: random.Random, event: Event) -> None:
    args = _arguments(event)
    if args:
        del args[dice.choice(list(args))]


def _set_member(dice: random.Random, event: Event) -> None:
    event[dice.choice(_KEYS)] = strange(dice)


def _drop_member(dice: random.Random, event: Event) -> None:
    event.pop(dice.choice([*event, "name"]) if event else "name", None)


def _rename(dice: random.Random, event: Event) -> None:
    event["name"] = strange(dice)


def _spoil_text(dice: random.Random, event: Event) -> None:
    """A byte in the middle of a text is none of any text."""
    args = _arguments(event)
    texts = [
        (where, key)
        for where in (event, args)
        for key, value in where.items()
        if isinstance(value, str) and value
    ]
    if texts:
        where, key = dice.choice(texts)
        at = dice.randrange(len(where[key]) + 1)
        where[key] = where[key][:at] + _RAW + where[key][at:]


_OF_ROW: tuple[Callable[[random.Random, Event], None], ...] = (
    _set_argument, _set_argument, _drop_argument, _set_member, _drop_member, _rename, _spoil_text,
)  # fmt: skip


def _set_everywhere(dice: random.Random, events: list[Event]) -> None:
    """The same member or argument wrong in many events, in the same way or each in its own."""
    share, key = dice.choice((0.1, 0.5, 1.0)), dice.choice(_KEYS)
    same = strange(dice) if dice.random() < 0.5 else None
    for event in events:
        if dice.random() < share and isinstance(event, dict):
            event[key] = strange(dice) if same is None else copy.deepcopy(same)


def _set_argument_everywhere(dice: random.Random, events: list[Event]) -> None:
    names = sorted({name for event in events for name in _arguments(event)})
    if not names:
        return
    name, share, same = dice.choice(names), dice.choice((0.3, 1.0)), strange(dice)
    for event in events:
        if name in _arguments(event) and dice.random() < share:
            event["args"][name] = strange(dice) if dice.random() < 0.3 else copy.deepcopy(same)


def _drop_everywhere(dice: random.Random, events: list[Event]) -> None:
    key = dice.choice(_KEYS)
    for event in events:
        if isinstance(event, dict):
            event.pop(key, None)


def _drop_category(dice: random.Random, events: list[Event]) -> None:
    by = dice.choice(("cat", "ph", "name", "tid"))
    values = [event.get(by) for event in events if isinstance(event, dict)]
    gone = dice.choice(values) if values else None
    events[:] = [event for event in events if not isinstance(event, dict) or event.get(by) != gone]


def _many_tracks(dice: random.Random, events: list[Event]) -> None:
    """Every event in a process or thread of its own."""
    key = dice.choice(("pid", "tid"))
    for number, event in enumerate(events):
        if isinstance(event, dict):
            event[key] = number if dice.random() < 0.9 else f"{key} {number}"


def _same_everywhere(dice: random.Random, events: list[Event]) -> None:
    """One process, thread, time, duration, name or number for all."""
    key = dice.choice(("pid", "tid", "ts", "dur", "name", "id", "cat"))
    values = [event[key] for event in events if isinstance(event, dict) and key in event]
    if values:
        for event in events:
            if isinstance(event, dict):
                event[key] = values[0]


def _same_numbers(dice: random.Random, events: list[Event]) -> None:
    """Correlation and the like, one for all: ids that are no ids."""
    for event in events:
        args = _arguments(event)
        for name in ("correlation", "External id", "Python id", "Seq", "Addr", "Ev Idx"):
            if name in args:
                args[name] = 1


def _shuffle(dice: random.Random, events: list[Event]) -> None:
    dice.shuffle(events)


def _repeat(dice: random.Random, events: list[Event]) -> None:
    events += copy.deepcopy(events) if len(events) < 400 else copy.deepcopy(events[:50])


def _repeat_one(dice: random.Random, events: list[Event]) -> None:
    if events:
        events += [copy.deepcopy(dice.choice(events)) for _ in range(dice.choice((2, 60)))]


def _empty(dice: random.Random, events: list[Event]) -> None:
    events[dice.randrange(3) :] = []


def _foreign(dice: random.Random, events: list[Any]) -> None:
    """What is no event among the events."""
    for _ in range(5):
        events.insert(dice.randrange(len(events) + 1), strange(dice))


def _move_times(dice: random.Random, events: list[Event]) -> None:
    """Many events elsewhere in time: far away, before zero, on top of each other."""
    by, share = dice.choice((-4e12, 4e12, 1e15, -1e15, 9e15, 0.0005)), dice.choice((0.05, 0.5))
    for event in events:
        if isinstance(event, dict) and isinstance(event.get("ts"), float | int) and dice.random() < share:
            event["ts"] += by


def _stretch(dice: random.Random, events: list[Event]) -> None:
    """Durations that no longer nest."""
    by = dice.choice((0, -1, 3, 1000, 1e9, 1e13))
    for event in events:
        if isinstance(event, dict) and isinstance(event.get("dur"), float | int) and dice.random() < 0.5:
            event["dur"] *= by


_OF_ALL: tuple[Callable[[random.Random, list[Event]], None], ...] = (
    _set_everywhere, _set_argument_everywhere, _set_argument_everywhere, _drop_everywhere, _drop_category, _many_tracks, _same_everywhere,
    _same_numbers, _shuffle, _repeat, _repeat_one, _empty, _foreign, _move_times, _stretch,
)  # fmt: skip


def _alter_header(dice: random.Random, document: dict[str, Any]) -> None:
    names = [name for name in document if name != "traceEvents"]
    if names:
        name = dice.choice(names)
        if dice.random() < 0.3:
            del document[name]
        else:
            document[name] = strange(dice)


def _alter_inside(dice: random.Random, document: Any) -> None:
    """Something deeper in the header, or in a sidecar, which is nothing but a header."""
    places = list(_places({name: value for name, value in document.items() if name != "traceEvents"}))
    if places:
        holder, key = dice.choice(places)
        holder[key] = strange(dice)


def _places(value: Any) -> list[tuple[Any, Any]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [place for key, inner in items for place in ((value, key), *_places(inner))]


def sidecar(dice: random.Random, data: bytes) -> bytes:
    """A capture's notes with something wrong in them."""
    document = json.loads(data)
    for _ in range(dice.choice((1, 1, 3))):
        dice.choice((_alter_header, _alter_inside))(dice, document)
    return _text(dice, document)
