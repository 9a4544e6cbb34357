"""Compare a profile with its budget: each limit with the measured figure, its noise, and the verdict.

`over`: above the limit by more than the noise. `noisy`: above it, but within noise; inconclusive, and fails only with
`strict`. `unknown`: the profile lacks the figure; that fails, since a gate that cannot see must not pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from statistics import median

import msgspec

from stepscope import units
from stepscope.diffs.comparable import lost, same_frameworks, same_measure
from stepscope.diffs.data.model import Diff, Row
from stepscope.diffs.data.samples import Side
from stepscope.diffs.noise.bootstrap import CONFIDENCE, draws, noise_of_one
from stepscope.diffs.noise.judge import Ground, vectors
from stepscope.diffs.noise.machine_speed import Speeds, clock_of
from stepscope.diffs.render.cells import amount
from stepscope.diffs.verdict import NOTABLE_SPEED, signed_share
from stepscope.gate.budget import SIZES, Baseline, Budget, Limit

SCHEMA = "stepscope.gate/1"
OTHER_FRAMEWORK = "A and B use different frameworks: the limits compare two different programs."
OVER, NOISY, UNKNOWN, OK = "over", "noisy", "unknown", "ok"


class Check(msgspec.Struct, kw_only=True):
    """One limit. Times are ns, sizes bytes, shares 0 to 1; against a baseline, limit and value are differences."""

    name: str
    limit: float | None
    value: float | None
    unit: str
    noise: float | None = None
    verdict: str
    message: str
    said: str = ""  # the limit as it was written


class Gate(msgspec.Struct, kw_only=True):
    """All limits. `passed` is false if one of them is over or unknown, or noisy and `strict` is set."""

    schema: str = SCHEMA
    path: str
    baseline: str | None = None
    passed: bool
    strict: bool = False
    checks: list[Check] = []
    remarks: list[str] = []  # what of the profile and its baseline cannot be compared

    @property
    def summary(self) -> str:
        """One line."""
        failed = sum(
            check.verdict in (OVER, UNKNOWN) or (self.strict and check.verdict == NOISY)
            for check in self.checks
        )
        noisy = sum(check.verdict == NOISY for check in self.checks)
        exceeded = f"{noisy} limit{'s' * (noisy > 1)} exceeded within noise (inconclusive)"
        also = f" {exceeded}." if noisy and not self.strict else ""
        if self.passed and noisy:
            met = len(self.checks) - noisy
            return f"PASSED: {exceeded}" + (f"; {met} of {len(self.checks)} met." if met else ".")
        if self.passed:
            return f"PASSED: {len(self.checks)} of {len(self.checks)} limits met."
        return f"FAILED: {failed} of {len(self.checks)} limits not met.{also}"


def gate(side: Side, budget: Budget, diff: Diff | None = None, *, strict: bool = False) -> Gate:
    """Of a profile; `diff` is that against the budget's baseline, where it has one."""
    checks = list(_absolute(side, budget))
    if diff is not None:
        checks += against(diff, budget.baseline or Baseline())
    found = _gate(side.report["profile"]["path"], diff, checks, strict)
    if diff is None:
        found.remarks = [*lost(side.report), *found.remarks]
    return found


def gate_of(diff: Diff, base: Baseline, *, strict: bool = False) -> Gate:
    """Of a diff alone: what may have grown from A to B."""
    found = _gate(diff.b.path, diff, against(diff, base), strict)
    # The diff itself reports what else cannot be compared.
    found.remarks = [
        *([] if same_frameworks(diff.a, diff.b) else [OTHER_FRAMEWORK]),
        *_undecided(found.checks),
    ]
    return found


def _undecided(checks: Sequence[Check]) -> Iterator[str]:
    """What to do about inconclusive limits."""
    noisy = [check.name for check in checks if check.verdict == NOISY]
    if noisy:
        again = "more steps, or each side several times" if noisy[0].startswith("baseline.") else "more steps"
        yield f"Inconclusive: {', '.join(noisy)}. Record {again} on an otherwise idle machine; --strict fails on it."


def _gate(path: str, diff: Diff | None, checks: list[Check], strict: bool) -> Gate:
    failing = (OVER, UNKNOWN, NOISY) if strict else (OVER, UNKNOWN)
    return Gate(
        path=path,
        baseline=diff.a.path if diff is not None else None,
        remarks=[*(diff.not_comparable if diff is not None else ()), *_undecided(checks)],
        passed=not any(check.verdict in failing for check in checks),
        strict=strict,
        checks=checks,
    )


def _absolute(side: Side, budget: Budget) -> Iterator[Check]:
    steps = side.report["steps"]
    if budget.step_time is not None:
        noise = _step_noise(side, of_median=True)
        yield _judged("step_time", budget.step_time, steps["median_ns"], noise, "The profile has no steps.")
    if budget.step_time_p90 is not None:
        noise = _step_noise(side)
        yield _judged(
            "step_time_p90", budget.step_time_p90, steps["p90_ns"], noise, "The profile has no steps."
        )
    for part, limit in budget.parts.items():
        yield _part(side, part, limit)
    if budget.peak_memory is not None:
        yield _judged("peak_memory", budget.peak_memory, _peak(side), None, "Memory was not recorded.")
    told = {finding["code"]: finding for finding in side.report["findings"]}
    for code in budget.findings:
        yield _finding(code, told)


def _judged(name: str, limit: Limit, value: float | None, noise: float | None, missing: str) -> Check:
    verdict, message = (UNKNOWN, missing) if value is None else _verdict(value - limit.amount, noise, limit)
    return Check(
        name=name,
        limit=limit.amount,
        value=value,
        unit=limit.unit,
        noise=noise,
        verdict=verdict,
        message=message,
        said=limit.said,
    )


def _verdict(excess: float, noise: float | None, limit: Limit) -> tuple[str, str]:
    over = f"over by {written(excess, limit.unit, limit.said)}"
    if excess <= 0:
        return OK, ""
    if noise is not None and excess <= noise:
        return NOISY, f"{over}, within noise"
    return OVER, over


def written(value: float, unit: str, said: str) -> str:
    """An amount as text; bytes in the unit of the limit, so that 24 GB does not become 22.4 GiB."""
    word = said.split()[-1] if unit == "bytes" and said else ""
    return f"{value / SIZES[word]:,.4g} {word}" if word in SIZES else amount(value, unit)


def _step_noise(side: Side, *, of_median: bool = False) -> float | None:
    """The 95 % margin of the mean or median step."""
    ground = Ground(side.samples, side.samples, Speeds({}, {}, [], {}))
    sizes: dict[str, float] = {}
    for (part,), values in vectors(side.samples.parts, ["part"], "ns", side.samples.cells).items():
        clock = clock_of(str(part))
        sizes[clock] = sizes.get(clock, 0.0) + sum(values)
    share = ground.runs.of_step(sizes).share / 2 if sizes else 0.0
    cells = side.samples.cells
    steps: list[float] = cells["ns"].to_list()
    found = noise_of_one(steps, draws(cells), share, of_median=of_median)
    if found is None:
        return None
    is_one = cells.select("recording", "rank").n_unique() == 1  # ranks are slow together
    below = below_median(steps) if of_median and is_one else None
    return found.margin if below is None else min(found.margin, below + 2 * share * median(steps))


def below_median(steps: Sequence[float]) -> float | None:
    """The 95 % margin below the median of these steps by the sign test: a few slow steps do not widen it.

    If the job's median were below the k shortest of n steps, n − k or more above it would be improbable. None for too few steps.
    """
    ordered, likely, shortest = sorted(steps), 0.0, -1
    for count in range(len(ordered)):
        likely += math.comb(len(ordered), count) / 2 ** len(ordered)
        if likely > CONFIDENCE:
            break
        shortest = count
    return median(ordered) - ordered[shortest] if shortest >= 0 else None


def _part(side: Side, part: str, limit: Limit) -> Check:
    cells = side.samples.cells
    values = vectors(side.samples.parts, ["part"], "ns", cells).get((part,), [0.0] * len(cells))
    if limit.unit == "share":
        values = [value / whole if whole else 0.0 for value, whole in zip(values, cells["ns"], strict=True)]
    noise = noise_of_one(values, draws(cells), 0.0)
    value = sum(values) / len(values) if values else None
    return _judged(
        f"parts.{part}", limit, value, noise.margin if noise else None, "The profile has no steps."
    )


def _peak(side: Side) -> float | None:
    rows = side.report["memory"]["devices"]
    on_devices = [row for row in rows if row["device_kind"] != "cpu"] or rows
    return max((row["peak_bytes"] for row in on_devices if row["peak_bytes"] is not None), default=None)


def _finding(code: str, told: dict[str, dict[str, object]]) -> Check:
    found = told.get(code)
    saves = found["saves_ns_per_step"] if found else 0
    assert isinstance(saves, int)
    return Check(
        name=f"findings.{code}",
        limit=0,
        value=1 if found else 0,
        unit="count",
        verdict=OVER if found else OK,
        message=f"{found['title']}, worth {units.duration(saves)} a step" if found else "",
    )


def against(diff: Diff, base: Baseline) -> list[Check]:
    """What has grown, compared with the baseline (A of the diff)."""
    checks = []
    if base.step_time is not None:
        checks.append(_grown("baseline.step_time", diff.step, base.step_time, diff))
    parts = {row.name: row for row in diff.parts}
    for name, limit in base.parts.items():
        row = parts.get(name) or Row(name=name, a=0.0, b=0.0, difference=0.0)
        checks.append(_grown(f"baseline.parts.{name}", row, limit, diff))
    if base.peak_memory is not None:
        checks.append(_grown("baseline.peak_memory", _memory(diff), base.peak_memory, diff))
    if base.findings:
        checks += _gained(diff)
    return checks


def _memory(diff: Diff) -> Row | None:
    known = [row for row in diff.memory if row.a is not None and row.b is not None]
    on_devices = [row for row in known if row.name != "host"] or known
    return max(on_devices, key=lambda row: row.b or 0, default=None)


def _grown(name: str, row: Row | None, limit: Limit, diff: Diff) -> Check:
    """`limit` is a share of the baseline's figure, or an amount."""
    missing = _missing(name, row, diff)
    if missing or row is None or row.a is None:
        unit = row.unit if row is not None else "ns"
        return Check(name=name, limit=None, value=None, unit=unit, verdict=UNKNOWN, message=missing)
    unit = row.unit
    allowed = limit.amount * row.a if limit.unit == "share" else limit.amount
    even = row.difference if row.at_equal_speed is None else row.at_equal_speed
    excess = row.difference - allowed
    verdict, _ = _verdict(min(excess, even - allowed) if excess > 0 else excess, row.noise, limit)
    over = f"over by {written(excess, unit, limit.said)}"
    message = "" if excess <= 0 else over
    known = _known_cause(diff) if unit == "ns" else None
    if verdict == NOISY and known is not None:
        verdict, message = OVER, f"{over}: {known}"
    elif verdict == NOISY:
        message = f"{over}, within noise{_of_baseline(row)}"
    elif excess > 0 and verdict == OK:
        verdict, message = NOISY, f"{over}, and {_slower(diff)}"
    return Check(
        name=name,
        limit=allowed,
        value=row.difference,
        unit=unit,
        noise=row.noise,
        verdict=verdict,
        message=message,
        said=limit.said if limit.unit != "share" else "",
    )


def _missing(name: str, row: Row | None, diff: Diff) -> str:
    """Why the figure is unknown; empty if it is known."""
    if "memory" not in name and not same_measure(diff.a, diff.b):
        return f"{'The baseline' if diff.a.step_source == 'none' else 'The profile'} has no steps."
    if row is not None and row.a is not None and row.b is not None:
        return ""
    return "Memory was not recorded in both." if "memory" in name else "One of the two has no such figure."


def _known_cause(diff: Diff) -> str | None:
    """More work per step is not noise, however unsteady the machine: shapes and counts show it."""
    return next(
        (line.title for line in diff.lines if line.kind == "batch" and diff.batch and diff.batch.ratio > 1),
        None,
    )


def _of_baseline(row: Row) -> str:
    """The relative change and its noise."""
    if row.relative is None or not row.noise or not row.a:
        return ""
    return f" ({signed_share(row.relative)}, noise ± {100 * row.noise / row.a:.0f} %)"


def _slower(diff: Diff) -> str:
    found = [each for each in diff.speed if each.ratio > 1 + NOTABLE_SPEED]
    words = " and ".join(f"the {each.what} was {100 * (each.ratio - 1):.0f} % slower" for each in found)
    return f"{words} overall" if words else "not at equal machine speed"


def _gained(diff: Diff) -> Sequence[Check]:
    gained = [each for each in diff.gained if each.significant]
    message = "; ".join(f"{each.title} ({each.code})" for each in gained)
    return [
        Check(
            name="baseline.findings",
            limit=0,
            value=len(gained),
            unit="count",
            verdict=OVER if gained else OK,
            message=message,
        )
    ]
