"""Records loops as people write them, each with what is true of its steps. Wants one CUDA device, torch and JAX.

  python -m benchmarks.steps.record OUT [CASE ...]

Each case runs in a process of its own and leaves OUT/CASE/… as its framework wrote it, and a line in OUT/truths.jsonl:
how many steps the loop ran inside the recording, and how long one took there by the host's clock with a wait for the
device at both ends of the loop.
"""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

PATIENCE_SECONDS = 150


def main(out: Path, names: list[str]) -> int:
    """Run every case, or those named; one that fails is said and leaves the others alone."""
    from benchmarks.steps import jax_loops, torch_loops

    cases: dict[str, Callable[[Path], dict[str, object]]] = {**torch_loops.CASES, **jax_loops.CASES}
    out.mkdir(parents=True, exist_ok=True)
    failed = 0
    for name in names or cases:
        start = time.monotonic()
        child = subprocess.run(
            [sys.executable, "-m", "benchmarks.steps.record", "--one", name, str(out)],
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=False,
        )
        failed += child.returncode != 0
        said = child.stdout.strip().splitlines()[-1:] or [child.stderr[-600:]]
        print(
            f"{name}: {time.monotonic() - start:.1f} s {said[0] if not child.returncode else child.stderr[-600:]}"
        )
    return failed


def record(name: str, out: Path) -> None:
    """One case, in this process."""
    if name.startswith("jax"):
        from benchmarks.steps.jax_loops import CASES
    else:
        from benchmarks.steps.torch_loops import CASES
    folder = out / name
    folder.mkdir(parents=True, exist_ok=True)
    truth = {"case": name, **CASES[name](folder)}
    with (out / "truths.jsonl").open("a") as lines:
        lines.write(json.dumps(truth) + "\n")
    print(json.dumps(truth))


if __name__ == "__main__":
    if sys.argv[1] == "--one":
        record(sys.argv[2], Path(sys.argv[3]))
    else:
        sys.exit(main(Path(sys.argv[1]), sys.argv[2:]))
