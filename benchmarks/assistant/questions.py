"""The questions: how a client answers each from tool results alone, and the truth, by reading the file without stepscope."""

from __future__ import annotations

import gzip
import json
import re
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

from benchmarks.assistant.client import Client, connected
from stepscope.assistant.tokens import count_tokens

SAMPLE = "tiny_gpt.pt.trace.json.gz"
SLOWER = "slower.pt.trace.json.gz"
TIMES = 20  # as long takes one kernel of the second profile
Events = list[dict[str, Any]]


@dataclass(frozen=True)
class Question:
    """`ask` gives the client's answer, `truth` what the file says itself."""

    text: str
    ask: Callable[[Client], Awaitable[str]]
    truth: Callable[[Events], str]


@dataclass(frozen=True)
class Answer:
    """What came of a question, and the tokens that it took: of the first call, and of each further one."""

    question: str
    answer: str
    truth: str
    first_tokens: int
    further_tokens: tuple[int, ...]

    @property
    def is_right(self) -> bool:
        return self.answer == self.truth


def _find(pattern: str, text: str) -> str:
    found = re.search(pattern, text, re.MULTILINE)
    return found[1] if found else ""


def _reported(pattern: str) -> Callable[[Client], Awaitable[str]]:
    """An answer that the first call has."""

    async def ask(client: Client) -> str:
        return _find(pattern, await client.call("report", path=SAMPLE))

    return ask


def _queried(sql: str) -> Callable[[Client], Awaitable[str]]:
    async def ask(client: Client) -> str:
        await client.call("report", path=SAMPLE)
        rows = await client.call("query", path=SAMPLE, sql=sql)
        return rows.splitlines()[2].strip("«»")

    return ask


async def _kernels_per_step(client: Client) -> str:
    await client.call("report", path=SAMPLE)
    return _find(r"kernels_per_step: (\d+)", await client.call("about", path=SAMPLE, handle="finding:1"))


async def _longest_step(client: Client) -> str:
    await client.call("report", path=SAMPLE)
    rows = await client.call(
        "query",
        path=SAMPLE,
        sql="SELECT step FROM events WHERE step IS NOT NULL GROUP BY step ORDER BY max(start_ns + dur_ns) - min(start_ns) DESC",
    )
    number = rows.splitlines()[2]
    about = await client.call("about", path=SAMPLE, handle=f"step:{number}")
    return _find(r"^step (\d+) of rank 0: 16\.\d ms", about)


async def _worst_event(client: Client) -> str:
    text = await client.call("report", path=SAMPLE)
    handle = _find(r"«(kernel:[^»]+)»", text)
    events = await client.call("events", path=SAMPLE, handle=handle)
    worst = _find(r"event:(\d+)", events)
    rows = await client.call("query", path=SAMPLE, sql=f"SELECT dur_ns FROM events WHERE id = {worst}")
    return rows.splitlines()[2]


async def _what_changed(client: Client) -> str:
    await client.call("report", path=SAMPLE)
    diff = await client.call("diff", a=SAMPLE, b=SLOWER)
    return _find(r"^what explains it, per step\n\S+ \S+ .*?«([^»]+)»", diff)


async def _is_sound(client: Client) -> str:
    await client.call("report", path=SAMPLE)
    return _find(r"^(\d+) problems", await client.call("doctor", path=SAMPLE))


def _kernels(events: Events) -> Events:
    return [event for event in events if event.get("cat") == "kernel"]


def _steps(events: Events) -> Events:
    return [
        event
        for event in events
        if str(event.get("name", "")).startswith("ProfilerStep#") and event.get("cat") == "user_annotation"
    ]


def _most(times: Counter[str]) -> str:
    return times.most_common(1)[0][0]


def _by_name(events: Events) -> Counter[str]:
    times: Counter[str] = Counter()
    for event in events:
        times[event["name"]] += round(1_000 * event["dur"])
    return times


def _longest_call_of_largest(events: Events) -> str:
    kernels = _kernels(events)
    first = _most(_by_name(kernels))
    return str(round(1_000 * max(event["dur"] for event in kernels if event["name"] == first)))


QUESTIONS = (
    Question("What limits this job?", _reported(r"^finding:1 ([\w-]+):"), lambda _: "launch-bound"),
    Question("How many steps were recorded?", _reported(r"· (\d+) steps"), lambda events: str(len(_steps(events)))),
    Question("Which device?", _reported(r"· ([^·»]+) · \d+ steps"), lambda _: "NVIDIA H200"),
    Question("Which part takes most of a step?", _reported(r"^part:(\w+)"), lambda _: "dispatch"),
    Question(
        "How many kernels does a step launch?",
        _kernels_per_step,
        lambda events: str(round(len(_kernels(events)) / len(_steps(events)))),
    ),
    Question(
        "How many kernels are in the file?",
        _queried("SELECT count(*) FROM kernels"),
        lambda events: str(len(_kernels(events))),
    ),
    Question("Which is the longest step?", _longest_step, lambda events: max(_steps(events), key=lambda each: float(each["dur"]))["name"].partition("#")[2]),
    Question("How long is the longest call of the largest kernel, in ns?", _worst_event, _longest_call_of_largest),
    Question("Is the recording sound?", _is_sound, lambda _: "0"),
    Question("Whose kernels became slower?", _what_changed, lambda _: "aten::mm"),
)  # fmt: skip


def read_events(path: Path) -> Events:
    """All events of a trace, by json alone."""
    with gzip.open(path) as stream:
        found: Events = json.load(stream)["traceEvents"]
    return found


def write_slower(path: Path, target: Path) -> None:
    """A copy in which one kernel takes longer, and what follows it on the device comes later."""
    with gzip.open(path) as stream:
        document = json.load(stream)
    name = "nvjet_sm90_tst_64x24_64x16_2x4_h_bz_NNT"
    for event in document["traceEvents"]:
        if event.get("cat") == "kernel" and event["name"] == name:
            event["dur"] *= TIMES
    with gzip.open(target, "wt") as stream:
        json.dump(document, stream)


async def ask_all(environment: Mapping[str, str] | None = None, apart: bool = True) -> list[Answer]:
    """Each question in a session of its own, or all of them one after the other."""
    with tempfile.TemporaryDirectory() as name, as_file(files("stepscope") / "samples" / SAMPLE) as sample:
        folder = Path(name)
        (folder / SAMPLE).write_bytes(sample.read_bytes())
        write_slower(sample, folder / SLOWER)
        events = read_events(sample)

        async def talk(client: Client, questions: Sequence[Question] = QUESTIONS) -> list[Answer]:
            return [await _asked(question, client, events) for question in questions]

        if not apart:
            return await connected([name], talk, environment)
        alone = [partial(talk, questions=[question]) for question in QUESTIONS]
        return [answer for one in alone for answer in await connected([name], one, environment)]


async def _asked(question: Question, client: Client, events: Events) -> Answer:
    client.said.clear()
    answer = await question.ask(client)
    first, *further = map(count_tokens, client.said)
    return Answer(question.text, answer, question.truth(events), first, tuple(further))
