"""Judges the recorded jobs of a trial: cause, promise, width, calm and replay, for both recordings of each.

  python -m benchmarks.trial.score OUT [--only REGEX] [--verdicts FILE] [--json | --markdown]

OUT is the folder that `benchmarks.trial.record` wrote, or one with its bundles. Whether the first finding names the mistake
is for a person to say: the table has the author's words beside ours. The answer goes into OUT/verdicts.json,
{"JOB": {"expect": ["device-sync", …]}}, and the next run counts it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path
from statistics import mean
from typing import Any

from benchmarks.trial.bundle import open_bundles
from benchmarks.trial.interval import Interval
from benchmarks.trial.look import Look, look
from benchmarks.trial.table import Row, as_json, bound, lines, markdown, total_lines, totals

RECORDINGS = ("ours", "framework")


def read_results(folder: Path, only: str = "") -> list[dict[str, Any]]:
    """What was measured of each job."""
    found = [json.loads(path.read_text("utf-8")) for path in sorted(folder.glob("*/result.json"))]
    return [result for result in found if re.search(only, result["name"])]


def read_verdicts(path: Path) -> dict[str, Any]:
    """What a person has said of the jobs; nothing yet if there is no file."""
    found: dict[str, Any] = json.loads(path.read_text("utf-8")) if path.exists() else {}
    return found


def judge(result: dict[str, Any], seen: Look | str, verdicts: dict[str, Any]) -> Row:
    """Put what was measured beside what was said; `seen` is an error where nothing could be."""
    name, found = result["name"], result.get("gain")
    error = seen if isinstance(seen, str) else ""
    if not found and not result["healthy"]:
        error = result.get("error") or "no gain was measured"
    known = seen if isinstance(seen, Look) else Look((), None, None)
    unprofiled = unprofiled_ns(result)
    return Row(
        name=name,
        healthy=result["healthy"],
        truth=Interval(**found) if found else None,
        findings=known.findings,
        expect=tuple(verdicts.get(name, {}).get("expect") or result.get("expect") or ()),
        mistake=result.get("mistake", ""),
        bound=bound(known.busy_ns, unprofiled),
        replayed_ns=known.replayed_ns,
        unprofiled_ns=unprofiled,
        stated_ns=known.stated_ns,
        error=error,
    )


def unprofiled_ns(result: dict[str, Any]) -> float | None:
    """The step without a profiler: around our recording where that is known, else over all rounds."""
    around = result.get("unprofiled_ns")
    return mean(around) if around else result.get("step_ns", {}).get("slow")


def look_at(folder: Path) -> Look | str:
    """The report, or why there is none."""
    if not folder.exists():
        return "no recording"
    try:
        return look(folder)
    except Exception as error:
        return f"{type(error).__name__}: {error}"


def main() -> int:
    """A table for each of the two recordings, and its totals."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("out", type=Path)
    parser.add_argument("--only", default="")
    parser.add_argument("--verdicts", type=Path, help="default: OUT/verdicts.json")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--markdown", action="store_true", help="the table for docs/report/trials.md")
    options = parser.parse_args()
    folder = open_bundles(options.out)
    verdicts = read_verdicts(options.verdicts or options.out / "verdicts.json")
    results = read_results(folder, options.only)
    found = {}
    for recording in RECORDINGS:
        rows = [judge(one, look_at(folder / one["name"] / recording), verdicts) for one in results]
        found[recording] = {"jobs": [as_json(row) for row in rows], "totals": totals(rows)}
        if not options.json:
            table = markdown(rows) if options.markdown else lines(rows)
            print(f"== {recording}", *table, "", *total_lines(totals(rows)), "", sep="\n", flush=True)
    if options.json:
        print(json.dumps(found, indent=1, ensure_ascii=False))
    return 0 if results else 1


if __name__ == "__main__":
    sys.exit(main())
