"""Is a profile within its budget: each limit with the measured value, its noise and the verdict.

`over`: above the limit by more than the noise. `noisy`: above it, but within noise, so inconclusive; that fails only if asked to.
`unknown`: the profile does not have the figure; that fails, since a gate that cannot see must not pass.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace
from statistics import median

import msgspec

from stepscope import units
from stepscope.analysis.options import Options
from stepscope.diffs.build import diff_sides
from stepscope.diffs.comparable import do_both_have_steps, have_same_framework, list_losses
from stepscope.diffs.data.model import Diff, Row
from stepscope.diffs.data.samples import Side, combine_recordings
from stepscope.diffs.noise.crossed import Layout
from stepscope.diffs.noise.estimate import estimate_noise_of_one
from stepscope.diffs.noise.judge import Ground, collect_vectors
from stepscope.diffs.noise.machine_speed import Speeds, find_clock
from stepscope.diffs.side import read_side
from stepscope.errors import StepscopeError
from stepscope.gate import wording
from stepscope.gate.budget import Baseline, Budget, Limit
from stepscope.gate.evidence import explain_no_findings, explain_unseen, has_steps, lacks_device
from stepscope.gate.wording import NOISY, OK, OVER, UNKNOWN
from stepscope.profiles.load import load
from stepscope.profiles.profile import Profile
from stepscope.registers.levels import SIGNIFICANCE
from stepscope.reports.model.report import Finding

SCHEMA = "stepscope.gate/1"


class Check(msgspec.Struct, kw_only=True):
    """One limit. Times are ns, sizes bytes, shares 0 to 1; against a baseline, limit and value are the growth over it."""

    name: str
    limit: float | None
    value: float | None
    unit: str
    noise: float | None = None
    verdict: str
    message: str
    said: str = ""  # the limit as it was written


class Gate(msgspec.Struct, kw_only=True):
    """All limits. `passed` is false where one of them is over or unknown, or noisy and that counts."""

    schema: str = SCHEMA
    path: str
    baseline: str | None = None
    passed: bool
    strict: bool = False
    checks: list[Check] = []
    remarks: list[str] = []  # what of the profile and its baseline cannot be compared

    @property
    def is_unknown(self) -> bool:
        """Whether nothing is exceeded, but something could not be judged."""
        return not self.passed and wording.is_unknown([check.verdict for check in self.checks])

    @property
    def summary(self) -> str:
        """One line."""
        return wording.summarise([check.verdict for check in self.checks], self.passed)


def check(
    profile: Profile,
    budget: Budget,
    *,
    options: Options | None = None,
    baseline: Sequence[Profile] = (),
    strict: bool = False,
) -> Gate:
    """Check the profile against its budget; the baseline is loaded from the paths in the budget unless it is given.

    The limits of each region are checked by the steps of that region.
    """
    wanted = options or Options(limit=0)
    found = [_check_one(profile, budget, wanted, baseline, strict)] if budget.has_own_limits else []
    for name, limits in budget.regions.items():
        mine = replace(wanted, step_name=name, must_match=False)  # a region that never ran is unknown
        own = _check_one(profile, limits, mine, baseline, strict)
        for check in own.checks:
            check.name = f"regions.{name}.{check.name}"
        found.append(own)
    return _combine_gates(found)


def _combine_gates(gates: list[Gate]) -> Gate:
    """One verdict of several: all of them have to pass."""
    first = gates[0]
    first.checks = [check for gate in gates for check in gate.checks]
    first.remarks = list(dict.fromkeys(remark for gate in gates for remark in gate.remarks))
    first.passed = all(gate.passed for gate in gates)
    return first


def _check_one(
    profile: Profile, budget: Budget, wanted: Options, baseline: Sequence[Profile], strict: bool
) -> Gate:
    side = read_side(profile, wanted)
    base = budget.baseline
    if base is None:
        return check_side(side, budget, strict=strict)
    if not (baseline or base.paths):
        raise StepscopeError(
            "The budget has limits against a baseline, but no baseline.",
            fix='Give one with --baseline PATH, or path = "…" below [baseline].',
        )
    same = wanted.of_region(side.report.steps.region)
    before = combine_recordings([read_side(each, same) for each in baseline or map(load, base.paths)])
    return check_side(side, budget, diff_sides(before, side), strict=strict)


def check_side(side: Side, budget: Budget, diff: Diff | None = None, *, strict: bool = False) -> Gate:
    """Check a profile that was read before; `diff` is that against the budget's baseline, where it has one."""
    checks = list(_check_limits(side, budget))
    if diff is not None:
        checks += check_growth(diff, budget.baseline or Baseline(), explain_no_findings(side.report))
    gate = _make_gate(side.report.profile.path, diff, checks, strict)
    if diff is None:
        gate.remarks = [*list_losses(side.report), *gate.remarks]
    return gate


def check_diff(diff: Diff, base: Baseline, *, strict: bool = False) -> Gate:
    """Check a diff alone: what may have grown from A to B."""
    gate = _make_gate(diff.b.path, diff, check_growth(diff, base), strict)
    # Other caveats are part of the diff itself.
    other = [] if have_same_framework(diff.a, diff.b) else [wording.OTHER_FRAMEWORK]
    gate.remarks = [*other, *_list_inconclusive(gate.checks)]
    return gate


def _list_inconclusive(checks: Sequence[Check]) -> Iterator[str]:
    return wording.describe_inconclusive([(check.name, check.verdict) for check in checks])


def _make_gate(path: str, diff: Diff | None, checks: list[Check], strict: bool) -> Gate:
    """The verdict. A gate that has judged nothing must not pass."""
    if not checks:
        raise StepscopeError(
            f"Nothing of {path} was judged: the budget has no limit.",
            fix='Write one, for instance step_time = "120 ms", or step_time = "5 %" below [baseline].',
        )
    failing = (OVER, UNKNOWN, NOISY) if strict else (OVER, UNKNOWN)
    return Gate(
        path=path,
        baseline=diff.a.path if diff is not None else None,
        remarks=[*(diff.not_comparable if diff is not None else ()), *_list_inconclusive(checks)],
        passed=not any(check.verdict in failing for check in checks),
        strict=strict,
        checks=checks,
    )


def _check_limits(side: Side, budget: Budget) -> Iterator[Check]:
    """The limits that need no baseline."""
    steps = side.report.steps
    if budget.step_time is not None:
        noise = _estimate_step_noise(side, of_median=True)
        yield _check_limit(
            "step_time", budget.step_time, _if_steps(side, steps.median_ns), noise, wording.NO_STEPS
        )
    if budget.step_time_p90 is not None:
        noise = _estimate_step_noise(side)
        yield _check_limit(
            "step_time_p90", budget.step_time_p90, _if_steps(side, steps.p90_ns), noise, wording.NO_STEPS
        )
    for part, limit in budget.parts.items():
        yield _check_part(side, part, limit)
    if budget.peak_memory is not None:
        yield _check_limit("peak_memory", budget.peak_memory, _find_peak(side), None, wording.NO_MEMORY)
    findings = {finding.code: finding for finding in side.report.findings}
    for code in budget.findings:
        yield _check_finding(code, findings.get(code), explain_unseen(code, side.report))


def _if_steps(side: Side, value: float | None) -> float | None:
    """A recording without steps has a length, but that is not the length of a step."""
    return value if has_steps(side.report) else None


def _check_limit(name: str, limit: Limit, value: float | None, noise: float | None, missing: str) -> Check:
    verdict, message = UNKNOWN, missing
    if value is not None:
        excess = value - limit.amount
        verdict = _judge_excess(excess, noise)
        message = _describe_verdict(verdict, wording.describe_excess(excess, limit.unit, limit.said))
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


def _judge_excess(excess: float, noise: float | None) -> str:
    if excess <= 0:
        return OK
    return NOISY if noise is not None and excess <= noise else OVER


def _describe_verdict(verdict: str, over: str) -> str:
    return {OK: "", NOISY: wording.describe_within_noise(over)}.get(verdict, over)


def _estimate_step_noise(side: Side, *, of_median: bool = False) -> float | None:
    """The 95 % margin of the mean or the median step."""
    ground = Ground(side.samples, side.samples, Speeds())
    cells = side.samples.cells
    sizes: dict[str, float] = {}
    for (part,), values in collect_vectors(side.samples.parts, ["part"], "ns", cells).items():
        clock = find_clock(str(part))
        sizes[clock] = sizes.get(clock, 0.0) + sum(values)
    share = ground.runs.of_step(sizes).share / 2 if sizes else 0.0
    steps: list[float] = cells["ns"].to_list()
    noise = estimate_noise_of_one(steps, Layout(cells), share, of_median=of_median)
    if noise is None:
        return None
    is_one = cells.select("recording", "rank").n_unique() == 1  # ranks are slow together
    below = find_lower_margin(steps) if of_median and is_one else None
    return noise.margin if below is None else min(noise.margin, below + 2 * share * median(steps))


def find_lower_margin(steps: Sequence[float]) -> float | None:
    """How far the job's own median may be below the median of these steps, with 95 % confidence: by order, so that a few slow steps do not hide it.

    If it were below the k shortest of n, noise alone would put n − k or more above it. None for too few steps.
    """
    ordered, likely, shortest = sorted(steps), 0.0, -1
    for count in range(len(ordered)):
        likely += math.comb(len(ordered), count) / 2 ** len(ordered)
        if likely > SIGNIFICANCE:
            break
        shortest = count
    return median(ordered) - ordered[shortest] if shortest >= 0 else None


def _check_part(side: Side, part: str, limit: Limit) -> Check:
    cells = side.samples.cells
    values = collect_vectors(side.samples.parts, ["part"], "ns", cells).get((part,), [0.0] * len(cells))
    if limit.unit == "share":
        values = [value / whole if whole else 0.0 for value, whole in zip(values, cells["ns"], strict=True)]
    noise = estimate_noise_of_one(values, Layout(cells), 0.0)
    is_seen = has_steps(side.report) and not lacks_device(side.report)
    value = sum(values) / len(values) if values and is_seen else None
    missing = wording.NO_DEVICE if has_steps(side.report) else wording.NO_STEPS
    return _check_limit(f"parts.{part}", limit, value, noise.margin if noise else None, missing)


def _find_peak(side: Side) -> float | None:
    rows = side.report.memory.devices
    on_devices = [row for row in rows if row.device_kind != "cpu"] or rows
    return max((row.peak_bytes for row in on_devices if row.peak_bytes is not None), default=None)


def _check_finding(code: str, finding: Finding | None, unseen: str) -> Check:
    """A finding that must be absent; `unseen` says why the profile could not show it."""
    present = []
    if finding is not None:
        present.append(f"{finding.title}, worth {units.duration(finding.saves_ns_per_step)} per step")
    return _check_absence(f"findings.{code}", present, unseen)


def _check_absence(name: str, present: Sequence[str], unseen: str) -> Check:
    """That there is nothing of what is described; not measured where the profile could not show it."""
    if unseen and not present:
        return Check(name=name, limit=0, value=None, unit="count", verdict=UNKNOWN, message=unseen)
    return Check(
        name=name,
        limit=0,
        value=len(present),
        unit="count",
        verdict=OVER if present else OK,
        message="; ".join(present),
    )


def check_growth(diff: Diff, base: Baseline, unseen: str = "") -> list[Check]:
    """What has grown, compared with the baseline (A of the diff); `unseen` says why B could show no findings."""
    checks = []
    if base.step_time is not None:
        checks.append(_check_row("baseline.step_time", diff.step, base.step_time, diff))
    parts = {row.name: row for row in diff.parts}
    for name, limit in base.parts.items():
        row = parts.get(name) or Row(name=name, a=0.0, b=0.0, difference=0.0)
        checks.append(_check_row(f"baseline.parts.{name}", row, limit, diff))
    if base.peak_memory is not None:
        checks.append(_check_row("baseline.peak_memory", _choose_memory(diff), base.peak_memory, diff))
    if base.findings:
        gained = [f"{each.title} ({each.code})" for each in diff.gained if each.significant]
        checks.append(_check_absence("baseline.findings", gained, unseen))
    return checks


def _choose_memory(diff: Diff) -> Row | None:
    known = [row for row in diff.memory if row.a is not None and row.b is not None]
    on_devices = [row for row in known if row.name != "host"] or known
    return max(on_devices, key=lambda row: row.b or 0, default=None)


def _check_row(name: str, row: Row | None, limit: Limit, diff: Diff) -> Check:
    """`limit` is a share of the baseline's figure, or an amount."""
    missing = _explain_missing(name, row, diff)
    if missing or row is None or row.a is None:
        unit = "bytes" if "memory" in name else "ns"
        return Check(name=name, limit=None, value=None, unit=unit, verdict=UNKNOWN, message=missing)
    allowed = limit.amount * row.a if limit.unit == "share" else limit.amount
    by_recordings = _choose_growth_noise(row)
    judge = _judge_growth if by_recordings is None else _judge_by_recordings
    verdict, message = judge(row, allowed, limit, diff)
    return Check(
        name=name,
        limit=allowed,
        value=row.difference,
        unit=row.unit,
        noise=row.noise if by_recordings is None else by_recordings,
        verdict=verdict,
        message=message,
        said=limit.said if limit.unit != "share" else "",
    )


def _choose_growth_noise(row: Row) -> float | None:
    """What recordings of the baseline differ by, where that is a sharper measure than what runs of jobs in general differ by."""
    own, usual = row.growth_noise, row.noise
    return own if own is not None and (usual is None or own < usual) else None


def _judge_by_recordings(row: Row, allowed: float, limit: Limit, diff: Diff) -> tuple[str, str]:
    """The verdict by the recordings of the baseline: they show how much the speed of its machine varies, too."""
    excess = row.difference - allowed
    verdict = _judge_excess(excess, row.growth_noise)
    over = wording.describe_excess(excess, row.unit, limit.said)
    if verdict == NOISY:
        return NOISY, wording.describe_within_noise(over, row, row.growth_noise)
    if verdict == OVER and row.at_equal_speed is not None and row.at_equal_speed <= allowed:
        return OVER, f"{wording.describe_machine(over, diff)}, {wording.BEYOND_RECORDINGS}"
    return verdict, over if verdict == OVER else ""


def _judge_growth(row: Row, allowed: float, limit: Limit, diff: Diff) -> tuple[str, str]:
    """The verdict, and what is said about it: growth counts only as far as it remains at equal machine speed."""
    excess = row.difference - allowed
    if excess <= 0:
        return OK, ""
    over = wording.describe_excess(excess, row.unit, limit.said)
    if row.noise is None and row.unit == "ns":
        return UNKNOWN, f"{over}, {wording.ONE_STEP}"
    even = row.difference if row.at_equal_speed is None else row.at_equal_speed
    verdict = _judge_excess(min(excess, even - allowed), row.noise)
    cause = _find_certain_cause(diff) if row.unit == "ns" else None
    if verdict == NOISY and cause is not None:
        return OVER, f"{over}: {cause}"
    if verdict == NOISY:
        return NOISY, wording.describe_within_noise(over, row)
    if verdict == OK:
        return NOISY, wording.describe_machine(over, diff)
    return OVER, over


def _explain_missing(name: str, row: Row | None, diff: Diff) -> str:
    """Why the figure is unknown, if it is."""
    if "memory" not in name and not do_both_have_steps(diff.a, diff.b):
        return wording.NO_STEPS_IN_BASELINE if diff.a.step_source == "none" else wording.NO_STEPS
    if row is not None and row.a is not None and row.b is not None:
        return ""
    return wording.NO_MEMORY_IN_BOTH if "memory" in name else wording.NO_FIGURE


def _find_certain_cause(diff: Diff) -> str | None:
    """More work per step is certain, however unsteady the machine: shapes and counts show it."""
    if diff.batch is None or diff.batch.ratio <= 1:
        return None
    return next((line.title for line in diff.lines if line.kind == "batch"), None)
