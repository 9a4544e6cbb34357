"""A run in the list: what its files are called and which state they are in, before anything is read."""

from __future__ import annotations

import os
from collections import Counter
from dataclasses import dataclass
from hashlib import blake2b

from stepscope.formats.source import Source
from stepscope.profiles.cache.cache import Cache, identify
from stepscope.profiles.find.runs import Entry, Run
from stepscope.profiles.find.sidecars import light_path
from stepscope.safe import readable


@dataclass(frozen=True)
class ListedRun:
    """`id` is a digest of where the run is, the same after a restart; `place` is the folder that was asked for."""

    id: str
    name: str
    place: str
    run: Run

    @property
    def is_remote(self) -> bool:
        """Whether its files are behind a URL, where a look costs time."""
        return self.run.entries[0].filesystem is not None

    @property
    def format(self) -> str:
        """By the names of its files; empty where only the content shows them."""
        hints = Counter(entry.format_hint for entry in self.run.entries if entry.format_hint)
        return hints.most_common(1)[0][0] if hints else ""

    def is_stored(self) -> bool:
        """Whether all of it can be had from the cache."""
        identities = [identify(entry.source()) for entry in self.run.entries]
        return all(one is not None and Cache().holds(one) for one in identities)

    def key(self) -> str:
        """A digest of the files' states; empty if one of them is gone."""
        states = [_state(entry) for entry in self.run.entries]
        light = map(_light_state, self.run.entries)
        return _digest("\n".join([*states, *light]), 16) if all(states) else ""


def listed(run: Run, place: str) -> ListedRun:
    """The run of a catalog."""
    return ListedRun(_digest(_place_of(run.entries[0]), 8), readable(run.name), readable(place), run)


def _place_of(entry: Entry) -> str:
    """The first file stays the same when the folder gets more runs, which an address may not."""
    return entry.path if entry.filesystem is not None else os.path.realpath(entry.path)


def _state(entry: Entry) -> str:
    found = identify(entry.source())
    if found is not None:
        return found.key
    # A filesystem that tells no state is taken at its word; a file of this machine without one is gone.
    return f"{entry.path} {entry.size} {entry.mtime_ns}" if entry.filesystem is not None else ""


def _light_state(entry: Entry) -> str:
    """The state of its light window, on which the report depends; remote files are not looked up."""
    path = light_path(entry.path) if entry.filesystem is None else None
    found = None if path is None else identify(Source(path))
    return "" if found is None else found.key


def _digest(text: str, size: int) -> str:
    return blake2b(text.encode("utf-8", "surrogateescape"), digest_size=size).hexdigest()
