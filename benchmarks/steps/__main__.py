"""What stepscope says of recordings whose steps are known.

  python -m benchmarks.steps OUT

OUT is what `python -m benchmarks.steps.record OUT` left. A case is right when the count of steps is that of the loop, or
one less (a piece at an end of the recording is no step), and a step is as long as it was by the loop's clock, within 15 %
and what a profiler's start adds;
or when the recording is called one window, where the loop says that this is an answer too.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import msgspec

import stepscope

TOLERANCE = 0.15
START_MS = 0.2  # of a step, averaged over the loop: the first calls under a profiler are slow


def main(out: Path) -> int:
    """A row for every case; fails if one is wrong."""
    wrong = 0
    for line in (out / "truths.jsonl").read_text().splitlines():
        truth = json.loads(line)
        steps = msgspec.to_builtins(stepscope.report(find_recording(out / truth["case"])).steps)
        right = judge(truth, steps)
        wrong += not right
        length = (steps.get("mean_ns") or 0) / 1e6
        print(
            f"{'right' if right else 'WRONG'}  {truth['case']:24} {truth['steps']:3} of {truth['step_ms']:.2f} ms"
            f"{' (' + truth['also'] + ')' if 'also' in truth else ''}: {steps.get('count')} of {length:.2f} ms, "
            f"{steps.get('source')}, {steps.get('confidence')}"
        )
    return wrong


def find_recording(folder: Path) -> Path:
    """The trace itself, where a capture lies beside it in a folder of its own."""
    trace = folder / "trace.json.gz"
    return trace if trace.exists() else folder


def judge(truth: dict[str, Any], steps: dict[str, Any]) -> bool:
    """Whether count and length agree with the loop's."""
    if steps.get("source") == "whole":
        return "whole" in truth.get("also", "")
    length = (steps.get("mean_ns") or 0) / 1e6
    counted = truth["steps"] - 1 <= (steps.get("count") or 0) <= truth["steps"]
    if "also_steps" in truth and steps.get("count") == truth["also_steps"]:
        return True
    if "without" in truth.get("also", ""):
        return counted and length > 0
    return counted and abs(length - truth["step_ms"]) <= TOLERANCE * truth["step_ms"] + START_MS


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
