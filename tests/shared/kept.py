"""What takes long to make, once for all workers of a session: the first that wants it makes it, the others open it."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable
from hashlib import sha256
from pathlib import Path
from typing import TypeVar

T = TypeVar("T")


def made_once(kind: str, name: str, make: Callable[[], T]) -> T:
    """Beside the cache of the session, with which it goes away."""
    path = Path(f"{os.environ['STEPSCOPE_CACHE']}-{kind}") / f"{sha256(name.encode()).hexdigest()}.pickle"
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        draft = path.with_suffix(f".{os.getpid()}")
        draft.write_bytes(pickle.dumps(make()))
        draft.replace(path)
    found: T = pickle.loads(path.read_bytes())
    return found
