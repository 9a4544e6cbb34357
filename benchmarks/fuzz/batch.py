"""Some cases in a process of their own: make, read, look at; one line for each, so that an end without words is seen."""

from __future__ import annotations

import argparse
import faulthandler
import random
import resource
import sys
import traceback
from pathlib import Path

import polars as pl

from benchmarks.drivers.meter import peak_bytes
from benchmarks.fuzz.mutate import mutated
from stepscope.errors import StepscopeError
from stepscope.formats import read
from stepscope.formats.own_export.write import chrome_text
from stepscope.formats.source import Source
from stepscope.trace.trace import Trace

_LOOKED_AT = 20


def case(seed: int, files: list[Path]) -> bytes:
    """The bytes of the case with this number: always the same for the same files."""
    dice = random.Random(seed)
    return mutated(dice, dice.choice(files).read_bytes(), dice.choice(files).read_bytes())


def look_at(trace: Trace) -> None:
    """What a user would do with it: references lead somewhere, arguments can be shown, it can be exported."""
    events = trace.events
    assert events["id"].to_list() == list(range(len(events))), "ids are not 0, 1, 2…"
    for table, column in (("ops", "event"), ("kernels", "event"), ("links", "from"), ("links", "to")):
        assert (trace.tables[table][column].fill_null(0) < max(1, len(events))).all(), f"{table}.{column}"
    assert events["track"].is_in(trace.tracks["id"].implode()).all(), "an event on no track"
    assert events.select((pl.col("dur_ns") >= 0).all()).item(), "a negative duration"
    for event in range(0, len(events), max(1, len(events) // _LOOKED_AT)):
        trace.arguments(event)
    for _ in chrome_text(trace):
        pass


def run(path: Path, memory_bytes: int) -> str:
    """What is wrong with how the file is read; empty if nothing is."""
    try:
        look_at(read(Source(str(path))))
    except StepscopeError as error:
        return "" if error.what else "an error without words"
    except BaseException:
        return traceback.format_exc()
    used = peak_bytes()
    return "" if used <= memory_bytes else f"{used >> 20:,} MiB of memory for {path.stat().st_size:,} bytes"


def main() -> None:
    """Run the cases from `--first` on; each stays behind as a file unless it went well."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--first", type=int, required=True)
    parser.add_argument("--count", type=int, required=True)
    parser.add_argument("--case-seconds", type=float, required=True)
    parser.add_argument("--memory", type=int, required=True, help="MiB")
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--hard-limit", action="store_true", help="let larger allocations fail")
    parser.add_argument("files", type=Path, nargs="+")
    options = parser.parse_args()
    if options.hard_limit:
        resource.setrlimit(resource.RLIMIT_DATA, (options.memory << 22, options.memory << 22))
    faulthandler.enable()
    for seed in range(options.first, options.first + options.count):
        path = options.folder / f"case-{seed}"
        path.write_bytes(case(seed, options.files))
        sys.stdout.write(f"{seed}\n")
        sys.stdout.flush()
        faulthandler.dump_traceback_later(options.case_seconds, exit=True)
        wrong = run(path, options.memory << 20)
        faulthandler.cancel_dump_traceback_later()
        if wrong:
            sys.stderr.write(wrong)
            sys.exit(1)
        path.unlink()


if __name__ == "__main__":
    main()
