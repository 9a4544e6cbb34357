"""The names in a ring: of events, with what kind of event they are, and of threads."""

from __future__ import annotations

from dataclasses import dataclass

import polars as pl

from stepscope.formats.ring.areas import RingBytes, texts
from stepscope.ring_layout import ALIVE, KINDS, THREAD


@dataclass(frozen=True)
class Names:
    """`frame` has name (the number), kind (its letter) and text; `threads` are names by number."""

    frame: pl.DataFrame
    threads: dict[int, str]


def read_names(ring: RingBytes) -> Names:
    """Those that are whole."""
    rows: dict[int, tuple[int, str, str]] = {}
    threads: dict[int, str] = {}
    for number, text in texts(ring, ring.names):
        told = text.decode("utf-8", "replace")
        kind, name = told[:1], told[1:]
        if kind == THREAD:
            thread, _, name = name.partition(" ")
            if thread.isascii() and thread.isdecimal() and len(thread) < 4:
                threads[int(thread)] = name
        elif (kind in KINDS or kind == ALIVE) and number < 1 << 31:
            rows[number] = (number, kind, name)
    schema = {"name": pl.Int64, "kind": pl.String, "text": pl.String}
    return Names(pl.DataFrame(list(rows.values()), schema=schema, orient="row"), threads)
