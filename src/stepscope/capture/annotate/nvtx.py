"""NVTX ranges, for those who look at the job with Nsight at the same time."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from importlib import import_module
from typing import Any

from stepscope.capture.process.troubles import Troubles, trouble

Ranges = Callable[[str], AbstractContextManager[Any]]


def ranges(troubles: Troubles) -> Ranges | None:
    """What makes a range: the `nvtx` package, or PyTorch built with CUDA."""
    try:
        make: Ranges = import_module("nvtx").annotate
        return make
    except Exception:  # not installed, or broken
        pass
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_available():
        push, pop = torch.cuda.nvtx.range_push, torch.cuda.nvtx.range_pop

        @contextmanager
        def pushed(name: str) -> Iterator[None]:
            push(name)
            try:
                yield
            finally:
                pop()

        return pushed
    troubles.add(trouble("no-nvtx"))
    return None
