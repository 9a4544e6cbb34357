"""What stepscope says of simulated jobs, beside the truth.

python -m benchmarks.ranks.physics.score OUT [--reuse]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from benchmarks.promises import percent

_DEVICE, _HOST = frozenset({"compute", "clock"}), frozenset({"dispatch", "python", "unexplained", "sync"})
# Which trouble a finding stands for, by the words of docs/report/findings.md and docs/ranks.md alone. `exposed-collective`
# stands for none: jobs without trouble have it, too.
KINDS: dict[str, frozenset[str]] = {
    "stage-imbalance": frozenset({"heavy-stage"}),
    "pipeline-bubble": frozenset({"bubble"}),
    "slow-link": frozenset({"slow-link", "slow-node"}),
    "expert-imbalance": frozenset({"imbalance"}),
    "rank-jitter": frozenset({"jitter"}),
    "step-outliers": frozenset({"jitter"}),
    "input-bound": frozenset({"late-input"}),
    "host-python": frozenset({"slow-host"}),
    "launch-bound": frozenset({"slow-host"}),
}
# Nothing of this in a healthy job.
ACCUSING = frozenset({*KINDS, "straggler"}) - {"launch-bound"}
_NEAR = 0.1  # of what the fix saves in the simulation, for a cost to be right
_MOST_OF_GROUP = 0.5  # of the ranks concerned must be named
_LINKS = frozenset({"slow-link", "slow-node"})
_SHOWN = 3
_COLUMNS = {"first": "first", "any_place": "found", "ranks": "its ranks", "gain": "its cost"}


@dataclass(frozen=True)
class Said:
    """A finding: what it names, and what it promises."""

    code: str
    ranks: tuple[int, ...]
    low: float
    mid: float
    high: float
    title: str
    evidence: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        named = f" ranks {shorten(self.ranks)}" if self.ranks else ""
        return f"{self.code}{named} {self.low:.2f}–{self.mid:.2f}–{self.high:.2f}"

    @property
    def stands_for(self) -> frozenset[str]:
        """The kinds of trouble that it may be about."""
        if self.code != "straggler":
            return KINDS.get(self.code, frozenset())
        cause = self.evidence.get("cause")
        if self.evidence.get("kind") == "data-dependent":
            return frozenset({"imbalance"})
        if cause in _DEVICE:
            return frozenset({"slow-device" if self.evidence.get("since_step") is None else "throttling"})
        return frozenset({"late-input"} if cause == "input" else {"slow-host"} if cause in _HOST else ())


@dataclass(frozen=True)
class Verdict:
    """A case and what was said of it."""

    name: str
    truth: dict[str, Any]
    said: tuple[Said, ...]

    @property
    def kind(self) -> str:
        """The true one."""
        return str(self.truth["kind"])

    @property
    def first(self) -> bool:
        """Whether the first finding stands for the trouble; of a healthy job, whether no rank or step is accused."""
        if self.kind == "healthy":
            return not any(said.code in ACCUSING for said in self.said)
        return self.found is not None and self.found is self.said[0]

    @property
    def found(self) -> Said | None:
        """The first finding that stands for the trouble."""
        return next((said for said in self.said if self.kind in said.stands_for), None)

    @property
    def any_place(self) -> bool | None:
        """Whether one does at all; None of a healthy job."""
        return None if self.kind == "healthy" else self.found is not None

    @property
    def ranks(self) -> bool | None:
        """Whether it names most of the ranks concerned and no others; None where no ranks are to blame, or none can be known.

        Where a link is slow, ranks that no recording can tell apart from them may be named, too.
        """
        blamed = set(self.truth["ranks"])
        suspects = blamed | set(self.truth.get("suspects", ()))
        if not blamed or len(suspects) == self.truth["world"]:
            return None
        named = set(self.found.ranks) if self.found is not None else set()
        return named <= suspects and len(named & blamed) >= _MOST_OF_GROUP * len(blamed)

    @property
    def is_knowable(self) -> bool:
        """Whether a recording can show the trouble at all: not where all transfers of a kind are slow alike."""
        return self.kind not in _LINKS or bool(self.truth.get("suspects", True))

    @property
    def gain(self) -> bool | None:
        """Whether the fix saves what was promised; None of a healthy job."""
        if self.kind == "healthy":
            return None
        return self.cost_error is not None and abs(self.cost_error) <= _NEAR

    @property
    def cost_error(self) -> float | None:
        """Of the promised saving, relative to the simulated one."""
        if self.found is None or self.kind == "healthy":
            return None
        gain = float(self.truth["gain"])
        return (1 - 1 / self._promised(self.found)) / (1 - 1 / gain) - 1

    def _promised(self, found: Said) -> float:
        """The speed-up; that of a bubble for as many micro-batches as the simulated fix has."""
        counts = found.evidence.get("speedups")
        if not counts:
            return found.mid
        fixed = str(round(self.truth["micro_batches"] * self.truth["size"]))
        return max(1.0, float(counts.get(fixed, found.mid)))


def main() -> int:
    """Read every case of a folder, print, count."""
    options = _options()
    folders = sorted((path.parent for path in options.out.glob("*/truth.json")), key=_number)
    verdicts = []
    for folder in folders:
        verdict = judge(folder, reuse=options.reuse)
        verdicts.append(verdict)
        _print(verdict)
    _print_summary(verdicts)
    return 0 if verdicts else 1


def judge(folder: Path, *, reuse: bool = False) -> Verdict:
    """What the report of this folder says; it is kept beside the folder."""
    kept = folder.with_suffix(".report.json")
    if not (reuse and kept.is_file()):
        command = [sys.executable, "-m", "stepscope", "report", str(folder), "--format", "json"]
        options = ["--section", "findings", "--no-cache", "--quiet"]
        kept.write_bytes(subprocess.run([*command, *options], check=True, stdout=subprocess.PIPE).stdout)
    truth = json.loads((folder / "truth.json").read_text())
    return Verdict(folder.name, truth, said_by(json.loads(kept.read_text())))


def said_by(report: dict[str, Any]) -> tuple[Said, ...]:
    """Its findings, in order."""
    return tuple(_said(finding) for finding in report.get("findings", ()))


def shorten(ranks: Sequence[int]) -> str:
    """Ranges of ranks: 0–7, 12."""
    runs: list[list[int]] = []
    for rank in sorted(ranks):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1][1:] = [rank]
        else:
            runs.append([rank])
    shown = ["–".join(map(str, run)) for run in runs[:6]]
    return ", ".join(shown) + (", …" if len(runs) > 6 else "")


def _said(finding: dict[str, Any]) -> Said:
    evidence, speedup = finding.get("evidence", {}), finding.get("speedup", {})
    one = evidence.get("rank")
    ranks = evidence.get("ranks") or ([] if one is None else [one])
    low, mid, high = (float(speedup.get(key, 1.0)) for key in ("low", "mid", "high"))
    return Said(finding["code"], tuple(ranks), low, mid, high, finding["title"], evidence)


def _print(verdict: Verdict) -> None:
    truth = verdict.truth
    layout = "×".join(f"{key}{value}" for key, value in truth["layout"].items())
    marks = [f"{name} {_mark(getattr(verdict, what))}" for what, name in _COLUMNS.items()]
    marks += [] if verdict.cost_error is None else [f"cost {verdict.cost_error:+.0%}"]
    marks += [] if verdict.is_knowable else ["which no recording can show"]
    print(
        f"{verdict.name} {layout}: {truth['kind']} {truth['where']} from step {truth['first_step']}, gain {truth['gain']:.2f}"
    )
    print(f"    {', '.join(marks)}")
    for said in verdict.said[:_SHOWN]:
        print(f"    {said}: {said.title}")
    sys.stdout.flush()


def _mark(flag: bool | None) -> str:
    return "n/a" if flag is None else "yes" if flag else "NO"


def _print_summary(verdicts: Sequence[Verdict]) -> None:
    print(f"\n{'kind':<12} cases" + "".join(f"{name:>11}" for name in _COLUMNS.values()))
    for kind in dict.fromkeys(verdict.kind for verdict in verdicts):
        of_kind = [verdict for verdict in verdicts if verdict.kind == kind]
        shares = "".join(f"{_share(of_kind, what):>11}" for what in _COLUMNS)
        print(f"{kind:<12} {len(of_kind):>5}{shares}")


def _share(verdicts: Sequence[Verdict], what: str) -> str:
    flags = [flag for flag in (getattr(verdict, what) for verdict in verdicts) if flag is not None]
    return f"{percent(flags):.0f} %" if flags else "n/a"


def _number(folder: Path) -> tuple[int, str]:
    digits = "".join(filter(str.isdigit, folder.name))
    return int(digits or 0), folder.name


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks.physics.score", description=__doc__)
    parser.add_argument("out", type=Path, help="what `python -m benchmarks.ranks.physics` has written")
    parser.add_argument("--reuse", action="store_true", help="take the reports of an earlier run")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
