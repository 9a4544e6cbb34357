"""What people would call a run: the job, without what only says when and where it was recorded."""

from __future__ import annotations

import re

_ENDING = re.compile(
    r"(\.pt)?(\.trace)?(\.json|\.xplane\.pb|\.pftrace|\.perfetto-trace|\.nsys-rep|\.sqlite|\.pb|\.v2)(\.gz)?$",
    re.IGNORECASE,
)
_TIME = re.compile(
    r"[._-]?(?:\d{4}[_-]\d\d[_-]\d\d(?:[T_-]\d\d[_:-]\d\d(?:[_:-]\d\d)?)?|(?:\d{10}|\d{13}|\d{16}|\d{19}))(?!\d)"
)
# <host>_<pid>.<time>, as PyTorch's handler for TensorBoard names its files.
_PROCESS = re.compile(r"[._-]\d{3,7}$")
_TF_EVENTS = re.compile(r"^events\.out\.tfevents\..*", re.IGNORECASE)
_NOTHING = frozenset({"", "plugins", "profile", "trace", "traces", "*"})
_LONGEST = 80


def job_of(name: str, place: str) -> str:
    """The job of a run by its name below a place: runs of the same job share it."""
    pieces = [_plain(piece) for piece in name.split("/")]
    kept = [piece for piece in pieces if piece.lower() not in _NOTHING]
    return _shortened("/".join(kept) or _last_folder(place) or name)


def _plain(piece: str) -> str:
    """A folder or file without its ending and its times."""
    stem = _ENDING.sub("", _TF_EVENTS.sub("", piece))
    timeless = _TIME.sub("", stem)
    return (_PROCESS.sub("", timeless) if timeless != stem else stem).strip("._- ")


def _last_folder(place: str) -> str:
    return next((piece for piece in reversed(place.split("/")) if piece), "")


def _shortened(title: str) -> str:
    """Long ones are cut in the middle: both ends matter."""
    half = _LONGEST // 2
    return title if len(title) <= _LONGEST else f"{title[: half - 1]}…{title[-half:]}"
