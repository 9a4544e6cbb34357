"""Annotations by which trainers, serving engines and benchmarks mark a step, in one list.

They count as steps even if they come once. An annotation that a user invents has to repeat.
"""

from __future__ import annotations

import re
from functools import lru_cache

from stepscope.lazy import dataclass

TRAINER = "trainer"  # the owner of names that are also given to a loop of steps


@dataclass(frozen=True)
class Known:
    """Whose annotation it is, and what its names look like (Python's regular expressions, from the start)."""

    owner: str
    pattern: re.Pattern[str]


def _known(owner: str, pattern: str) -> Known:
    return Known(owner, re.compile(pattern))


KNOWN: tuple[Known, ...] = (
    _known("PyTorch", r"ProfilerStep[#*]?\d*$"),
    # execute_32_context_0(…)_generation_32(…), execute_context_1(888_788544)_generation_0(0), execute_new_1_cached_3
    _known("vLLM", r"execute_(\d+(_|$)|context_\d|new_\d|model(:|$|_\d))"),
    # step[DECODE bs=32], step[EXTEND bs=1 toks=2048]
    _known("SGLang", r"step\[[A-Z][A-Z_]*\b[^\]]*\]$"),
    # [Executor] _forward_step 12: 0 ctx reqs, 8 gen reqs
    _known("TensorRT-LLM", r"\[Executor\] _forward_step\b"),
    # The recording of a graph, of either engine: capture_32_DECODE, capture_32_FULL
    _known("graph capture", r"capture_\w*\d\w*$"),
    # [param|aten::mm|0:0:0|measure|forward], and the run around them: [param|aten::mm|0:0:0]
    _known("param", r"\[param\|[^|\]]+\|[^\]]+\]$"),
    _known("DLRM", r"## forward ##$"),
    _known(
        "Lightning",
        r"\[pl\]\[profile\](run_(training|validation|test|predict)_batch|(\[\w+\])?[\w.]*\.?(training|validation|test|predict)_step)$",
    ),
    # `train 7`, `train_step`, `eval_batch`, `Iteration 12`, `step #3`; also as NVTX ranges
    _known(
        TRAINER,
        r"(?i)((train(ing)?|eval(uation)?|validation|test|predict|inference|decode|prefill|generation)"
        r"([ _-]?(step|batch|iter(ation)?|function))?|(global[ _-]?)?(step|iter(ation)?))([ _#:=-]*\d+)?$",
    ),
)

_WARM_UP = re.compile(r"(?i)(^|[^a-z])(pre)?warm(ed|ing)?[ _-]?up")


@lru_cache(maxsize=4096)
def owner_of(name: str) -> str | None:
    """Whose step the annotation marks, or None for a user's own."""
    return next((known.owner for known in KNOWN if known.pattern.match(name)), None)


def is_warm_up(name: str) -> bool:
    """Whether the annotation says that what it holds only warms up."""
    return _WARM_UP.search(name) is not None
