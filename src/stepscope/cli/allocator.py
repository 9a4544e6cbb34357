"""How long Polars keeps memory that it has freed, before the system gets it back."""

from __future__ import annotations

import os
import sys

_SETTINGS = "_RJEM_MALLOC_CONF"  # of the allocator inside Polars, read once when the library is loaded
_KEEP_MS = 10_000


def import_polars() -> None:
    """Import Polars with an allocator that fits an analysis: columns of millions of rows come and go many times a second.

    By default pages go back after half a second, and handing them out again takes an eighth of the processor time of an
    analysis of a million events. Child processes keep their own setting.
    """
    if "polars" in sys.modules or _SETTINGS in os.environ:
        return
    os.environ[_SETTINGS] = f"dirty_decay_ms:{_KEEP_MS},muzzy_decay_ms:-1"
    try:
        import polars  # noqa: F401
    finally:
        os.environ.pop(_SETTINGS, None)
