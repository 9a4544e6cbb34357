"""What-if of a job of the public set: python -m benchmarks.ranks.hybrid FILE.parquet [--json]"""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from pathlib import Path

from benchmarks.ranks.hybrid.replay import Answer, answer


def main() -> int:
    """Replay and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.ranks.hybrid", description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--json", action="store_true", help="one line with tori, tideal, Mw and Ms")
    options = parser.parse_args()
    found = answer(options.file)
    print(json.dumps(asdict(found)) if options.json else _text(found))
    return 0


def _text(found: Answer) -> str:
    return (
        f"step {found.tori:.3f} s as recorded, {found.tideal:.3f} s without stragglers; "
        f"the slowest workers explain {found.Mw:.0%}, the last stage {found.Ms:.0%}"
    )


if __name__ == "__main__":
    raise SystemExit(main())
