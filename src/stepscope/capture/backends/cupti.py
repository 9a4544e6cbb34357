"""Lets go of CUPTI, the library by which PyTorch's profiler sees the GPU, once a window is over.

Kineto leaves it attached to the process unless TEARDOWN_CUPTI is 1, and attached it slows every launch for the rest of the
job. A user who sets the variable decides; before CUDA 12.6 letting go could crash jobs with CUDA graphs.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

VARIABLE = "TEARDOWN_CUPTI"
_SAFE_SINCE = (12, 6)


def detach_from_now_on(torch: Any) -> None:
    """The end of every later recording lets go of CUPTI, too: the next one attaches it again only while this is asked for."""
    if VARIABLE not in os.environ and _is_safe(torch):
        os.environ[VARIABLE] = "1"


@contextmanager
def stay_attached() -> Iterator[None]:
    """A recording that ends in here leaves CUPTI attached: another one follows within a few steps."""
    asked = os.environ.get(VARIABLE)
    if asked is None:
        yield
        return
    os.environ[VARIABLE] = "0"
    try:
        yield
    finally:
        os.environ[VARIABLE] = asked


def _is_safe(torch: Any) -> bool:
    try:
        version = tuple(int(part) for part in str(torch.version.cuda).split(".")[:2])
    except ValueError:  # none: a build without CUDA
        return False
    return version >= _SAFE_SINCE and bool(torch.cuda.is_initialized())
