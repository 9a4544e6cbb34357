"""TensorBoard event files that hold a profile: the RunMetadata that TensorFlow 1 writes for a traced run."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from stepscope.errors import UnreadableFile
from stepscope.formats.protobuf import Value, fields, signed, text
from stepscope.formats.reader import Progress
from stepscope.formats.source import Source
from stepscope.formats.tf1 import FORMAT
from stepscope.formats.tf1.draft import run_draft
from stepscope.formats.tf1.records import Records
from stepscope.formats.tf1.run_metadata import devices
from stepscope.formats.tf1.runs import Run
from stepscope.trace.draft import Draft
from stepscope.trace.problems import Problem, Problems, problem
from stepscope.trace.trace import TraceInfo

_CONTENTS = {4: "graph", 5: "summary", 6: "log message", 7: "session log", 9: "meta graph"}
_PLURALS = {"summary": "summaries"}
_HOST = re.compile(r"tfevents\.\d+\.(.+?)(?:\.\d+\.\d+\.v2)?$")
_HOW = (
    "To record one, run the session with tf.compat.v1.RunOptions(trace_level=FULL_TRACE) and pass its RunMetadata to "
    "FileWriter.add_run_metadata. Profiles of tf.profiler are next to such files, in plugins/profile/: open that folder."
)


# A traced run has thousands. A node may be two bytes long and takes hundreds once it is read.
MOST_NODES = 500_000


@dataclass
class _Events:
    """What the events of a file hold."""

    runs: list[Run] = field(default_factory=list)
    nodes: int = 0
    count: int = 0
    contents: Counter[str] = field(default_factory=Counter)
    versions: dict[str, Any] = field(default_factory=dict)


def read(source: Source, progress: Progress) -> Draft:
    """All runs of the file in one trace, each a step."""
    content = memoryview(source.content())
    records = Records(content, source.problems)
    found = _Events()
    for record in records:
        _read_event(record.data, found, source.problems if record.whole else Problems())
    found.count = records.count
    if not any(run.nodes for run in found.runs):
        raise _no_profile(source, found)
    host = _HOST.search(source.name)
    info = TraceInfo(
        path=source.path,
        format=FORMAT.name,
        framework="tensorflow",
        host=host[1] if host else None,
        versions=found.versions,
    )
    draft = run_draft(info, found.runs, source.problems)
    progress(source.size())
    return draft


def _read_event(event: memoryview, found: _Events, problems: Problems) -> None:
    step: int | None = None
    run_metadata: list[tuple[str, memoryview]] = []
    for number, value in fields(event, problems, keep_cut=True):
        if number == 2 and isinstance(value, int):
            step = signed(value)
        elif number == 8:
            run_metadata += _tagged(value, problems)
        elif number == 5:
            run_metadata += _summarised(value, problems)
        elif number == 3:
            found.versions["event_file"] = text(value)
        elif number == 9 and (version := _tensorflow_version(value, problems)):
            found.versions["tensorflow"] = version
        if number in _CONTENTS:
            found.contents[_CONTENTS[number]] += 1
    for tag, message in run_metadata:
        run = Run(tag, step)
        for device in devices(message, problems):
            if run.add(device, MOST_NODES - found.nodes - len(run.nodes)):
                problems.add(_too_many())
                break
        found.nodes += len(run.nodes)
        found.runs.append(run)


def _tagged(value: Value, problems: Problems) -> list[tuple[str, memoryview]]:
    """The RunMetadata of a traced run, with its tag."""
    tag, found = "", None
    for number, inner in _inside(value, problems):
        if number == 1:
            tag = text(inner)
        elif number == 2 and not isinstance(inner, int):
            found = inner
    return [] if found is None else [(tag, found)]


def _summarised(value: Value, problems: Problems) -> list[tuple[str, memoryview]]:
    """RunMetadata in the dress of TensorFlow 2: a summary for the plugin `graph_run_metadata`."""
    found = []
    for number, summary in _inside(value, problems):
        if number != 1:
            continue
        tag, plugin, content = "", "", None
        for inner, part in _inside(summary, problems):
            if inner == 1:
                tag = text(part)
            elif inner == 8:
                content = next((view for n, view in _inside(part, problems) if n == 8), None)
            elif inner == 9:
                plugin = next(
                    (
                        text(v)
                        for n, p in _inside(part, problems)
                        if n == 1
                        for m, v in _inside(p, problems)
                        if m == 1
                    ),
                    "",
                )
        if plugin.startswith("graph_run_metadata") and isinstance(content, memoryview):
            found.append((tag, content))
    return found


def _tensorflow_version(value: Value, problems: Problems) -> str:
    """Which version wrote the graph."""
    for number, meta_info in _inside(value, problems):
        if number == 1:
            return next((text(inner) for n, inner in _inside(meta_info, problems) if n == 5), "")
    return ""


def _inside(value: Value, problems: Problems) -> Iterator[tuple[int, Value]]:
    return iter(()) if isinstance(value, int) else fields(value, problems, keep_cut=True)


def _too_many() -> Problem:
    return problem("too-many-events", f"Only the first {MOST_NODES:,} nodes were read.")


def _no_profile(source: Source, found: _Events) -> UnreadableFile:
    cut = (
        " It is cut short, so that a profile may be in the part that is lost."
        if _is_cut(source.problems)
        else ""
    )
    if not found.count:
        return UnreadableFile(
            f"{source.path} is a TensorBoard event file without a single whole event.{cut}",
            fix="Copy or record the file again.",
        )
    held = ", ".join(f"{count:,} {_plural(what, count)}" for what, count in found.contents.most_common())
    counted = f"{found.count:,} {_plural('event', found.count)}" + (f" ({held})" if held else "")
    if found.runs:
        names = ", ".join(run.tag for run in found.runs[:3])
        what = f"{source.path} is a TensorBoard event file whose RunMetadata ({names}) has no times: {counted}.{cut}"
    else:
        what = f"{source.path} is a TensorBoard event file without a profile: {counted}.{cut}"
    return UnreadableFile(what, fix=_HOW)


def _is_cut(problems: Problems) -> bool:
    return any(problem.code in ("truncated", "damaged-gzip") for problem in problems.all())


def _plural(word: str, count: int) -> str:
    return word if count == 1 else _PLURALS.get(word, f"{word}s")
