"""The text of `stepscope info`: from figures to lines, without touching the profile."""

from __future__ import annotations

from collections.abc import Iterator
from textwrap import wrap
from typing import Any

from rich.text import Text

from stepscope import units
from stepscope.analysis.kernels.measured_peaks import measured
from stepscope.cli.table import text_table
from stepscope.profiles.overview import CacheState, Overview, ProblemTold, RunFound, Steps
from stepscope.profiles.ranks import spans
from stepscope.safe import safe

LABEL = 12
INDENT = 10
SHOWN = 12
_OPTION_NAMES = {
    "record_shapes": "shapes",
    "with_stack": "stacks",
    "profile_memory": "memory",
    "with_flops": "flops",
    "with_modules": "modules",
}
_FRAMEWORKS = {"pytorch": "PyTorch", "tensorflow": "TensorFlow", "jax": "JAX"}
_SEVERITY_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def lines(found: Overview, *, verbose: bool = False, width: int | None = None) -> Iterator[Text]:
    """Everything worth knowing first, then tables, then what is wrong. `verbose` shortens no list."""
    most = None if verbose else SHOWN
    yield Text(safe(found.name), style="bold")
    yield from _facts(found)
    if len(found.ranks) > 1:
        yield from _ranks(found, most)
    yield from _categories(found, most)
    # The table of runs shows the other ones.
    yield from _problems([each for each in found.problems if each.code != "other-runs"], width)
    yield from _runs(found.runs, most)
    yield from _skipped(found, most)


def _facts(found: Overview) -> Iterator[Text]:
    yield _fact("framework", _framework(found))
    yield _fact("devices", _devices(found), "" if found.device_events or not found.devices else "yellow")
    if peaks := _measured(found):
        yield _fact("peaks", peaks)
    yield _fact("ranks", _ranks_text(found))
    yield _fact("steps", _steps(found.steps))
    yield _fact("duration", units.duration(found.duration_ns))
    yield _fact(
        "events", f"{units.count(found.events)}, {units.count(found.device_events)} of them on devices"
    )
    yield _fact(
        "tables",
        ", ".join(
            f"{name} {units.count(rows)}"
            for name, rows in found.tables.items()
            if rows and name not in ("events", "traces")
        ),
    )
    if found.capture_options:
        yield _fact("recorded", _options(found.capture_options))
    if found.versions:
        yield _fact("versions", ", ".join(f"{name} {value}" for name, value in found.versions.items()))
    yield _fact("cache", _cache(found.cache))


def _fact(label: str, text: str, style: str = "") -> Text:
    return Text.assemble((f"  {label:<{LABEL}}", "dim"), (safe(text), style))


def _framework(found: Overview) -> str:
    names = ", ".join(_FRAMEWORKS.get(name, name) for name in found.framework) or "unknown"
    return f"{names} ({', '.join(found.format)})"


def _devices(found: Overview) -> str:
    named = ", ".join(
        f"{each.count} × {each.name}" if each.count > 1 else each.name for each in found.devices
    )
    if not named:
        return "none: host events only"
    if not found.device_events:
        return f"{named}, but no device events were recorded"
    used = sum(each.used for each in found.devices)
    return named if used == sum(each.count for each in found.devices) else f"{named}; {used} with events"


def _measured(found: Overview) -> str:
    """Whether reports use what stepscope calibrate measured on such a device."""
    known = [each for device in found.devices if (each := measured(device.name)) is not None]
    return f"measured with {known[0].by} on {known[0].when} (stepscope calibrate)" if known else ""


def _ranks_text(found: Overview) -> str:
    present = spans([rank.rank for rank in found.ranks])
    of = f" of {units.count(found.world_size)}" if found.world_size else ""
    hosts = f" on {', '.join(found.hosts[:SHOWN])}" if found.hosts else ""
    return f"{present}{of}{hosts}"


def _steps(steps: Steps | None) -> str:
    if steps is None:
        return "no step markers"
    numbers = f"{steps.first}–{steps.last}" if steps.last > steps.first else str(steps.first)
    spread = f"min {units.duration(steps.min_ns)}, median {units.duration(steps.median_ns)}, max {units.duration(steps.max_ns)}"
    return f"{units.count(steps.count)} ({steps.source} {numbers}): {spread}, as marked"


def _options(options: dict[str, Any]) -> str:
    """What was switched on, what was not, and settings with a value."""
    names = {name: _OPTION_NAMES.get(name, name) for name in options}
    on = [names[name] for name, value in options.items() if value is True]
    off = [names[name] for name, value in options.items() if value is False]
    rest = [f"{names[name]} {value}" for name, value in options.items() if not isinstance(value, bool)]
    said = [", ".join(on) or "nothing optional", f"not {', '.join(off)}" if off else "", *rest]
    return "; ".join(part for part in said if part)


def _cache(state: CacheState | None) -> str:
    if state is None:
        return "not used"
    if not state.kept:
        return f"nothing kept in {state.folder}"
    files = "" if state.kept == state.files else f" for {state.kept} of {state.files} files"
    return f"tables kept{files} in {state.folder}"


def _ranks(found: Overview, most: int | None) -> Iterator[Text]:
    rows = [
        (rank.rank, rank.host or "", units.count(rank.events), units.count(rank.device_events), rank.steps, units.duration(rank.duration_ns))
        for rank in found.ranks
    ]  # fmt: skip
    header = ("rank", "host", "events", "on device", "steps", "duration")
    yield from _section("ranks", header, rows, (True, False, True, True, True, True), most)


def _categories(found: Overview, most: int | None) -> Iterator[Text]:
    rows = [
        (each.category or "", each.kind, units.count(each.events), units.duration(each.total_ns))
        for each in found.categories
    ]
    yield from _section(
        "events by category", ("category", "kind", "events", "total"), rows, (False, False, True, True), most
    )


def _runs(runs: list[RunFound], most: int | None) -> Iterator[Text]:
    if not runs:
        return
    rows = [
        ("→" if run.is_loaded else "", run.name, run.files, "" if run.is_loaded else units.size(run.bytes))
        for run in runs
    ]
    header = ("", "run", "files", "size")
    yield from _section("runs in this folder", header, rows, (False, False, True, True), most)
    yield Text("  Open another with its path, or with --run and its name.", style="dim")


def _section(
    title: str,
    header: tuple[str, ...],
    rows: list[tuple[Any, ...]],
    numeric: tuple[bool, ...],
    most: int | None,
) -> Iterator[Text]:
    shown = rows if most is None or len(rows) <= most + 1 else rows[:most]
    yield Text()
    yield Text(title, style="bold")
    for number, line in enumerate(text_table(header, shown, numeric)):
        yield Text(f"  {line}", style="dim" if number < 2 else "")
    if len(shown) < len(rows):
        yield Text(f"  … and {units.count(len(rows) - len(shown))} more; -v shows all", style="dim")


def _problems(problems: list[ProblemTold], width: int | None) -> Iterator[Text]:
    yield Text()
    yield Text(
        f"problems ({len(problems)})" if problems else "no problems", style="bold" if problems else "green"
    )
    for problem in problems:
        times = f" ({units.count(problem.count)})" if problem.count > 1 else ""
        where = (
            f" on {'rank' if len(problem.ranks) == 1 else 'ranks'} {spans(problem.ranks)}"
            if problem.ranks
            else ""
        )
        style = _SEVERITY_STYLES.get(problem.severity, "")
        yield Text.assemble(
            (f"  {problem.severity:<8}", style), (safe(problem.title), "bold"), f"{times}{where}"
        )
        yield from _indented(safe(problem.detail), "", width)
        if problem.cause:
            yield from _indented(safe(problem.cause), "", width)
        if problem.fix:
            yield from _indented(safe(problem.fix), "→ ", width)


def _indented(text: str, mark: str, width: int | None) -> Iterator[Text]:
    """The text under its title, in lines that fit the window."""
    space = max(30, width - INDENT - len(mark)) if width is not None else len(text) + 1
    for number, line in enumerate(wrap(text, space, break_long_words=False, break_on_hyphens=False)):
        yield Text(" " * INDENT + (mark if number == 0 else " " * len(mark)) + line)


def _skipped(found: Overview, most: int | None) -> Iterator[Text]:
    if not found.skipped:
        return
    rows = [(_short(each.path, found.path), each.reason) for each in found.skipped]
    yield from _section(
        f"files skipped ({units.count(len(rows))})", ("file", "why"), rows, (False, False), most
    )


def _short(path: str, root: str) -> str:
    inside = path.removeprefix(root).lstrip("/")
    return inside or path
