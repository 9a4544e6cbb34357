"""What serving engines write into the names of their annotations: phase, batch size, tokens.

    vLLM      execute_context_1(888_788544)_generation_0(0)        one prefill of 888 tokens
              execute_32_context_0(sq0sk0…)_generation_32(sq32sk55086…)   32 requests decode a token each
              execute_new_2_cached_14                              2 new requests beside 14 that go on
    SGLang    step[DECODE bs=32], step[EXTEND bs=4 toks=1024]
    TensorRT-LLM   [Executor] _forward_step 7: 1 ctx reqs, 12 gen reqs

`PATTERNS` are for those who look for executions (steps); `CAPTURES` are the captures of their graphs.
"""

from __future__ import annotations

import re
from functools import lru_cache

from stepscope.lazy import dataclass

VLLM = r"^execute_(?:(?P<all>\d{1,7})_)?context_(?P<context>\d{1,7})\((?P<context_of>[^)]{0,200})\)_generation_(?P<generation>\d{1,7})\((?P<generation_of>[^)]{0,200})\)"
VLLM_NEW = r"^execute_new_(?P<new>\d{1,7})_cached_(?P<cached>\d{1,7})"
SGLANG = r"^step\[(?P<mode>[A-Z_]{1,40})(?P<facts>[^\]]{0,200})\]"
TENSORRT = r"^\[Executor\] _forward_step \d{1,9}: (?P<context>\d{1,7}) ctx reqs, (?:\d{1,9} ctx tokens, )?(?P<generation>\d{1,7}) gen reqs"
CAPTURES = r"^capture_(?P<batch>\d{1,7})(_\w{1,40})?$"
PATTERNS: dict[str, tuple[str, ...]] = {
    "vLLM": (VLLM, VLLM_NEW),
    "SGLang": (SGLANG,),
    "TensorRT-LLM": (TENSORRT,),
}
EXECUTION = "|".join(
    f"(?:{re.sub('[?]P<[a-z_]+>', '?:', text)})" for texts in PATTERNS.values() for text in texts
)
PREFILL, DECODE, EXTEND, MIXED, OTHER = "prefill", "decode", "extend", "mixed", "other"
_MODES = {"DECODE": DECODE, "EXTEND": EXTEND, "PREFILL": PREFILL, "MIXED": MIXED}
_QUERIES = re.compile(r"^sq(\d{1,12})|^(\d{1,12})")
_FACT = re.compile(r"(bs|batch_size|toks|tokens|num_tokens|ext_toks|extend_tokens)=(\d{1,12})")


@dataclass(frozen=True)
class Execution:
    """One execution of the model as its name describes it; None where the name does not say."""

    engine: str
    phase: str
    batch_size: int | None = None  # requests
    tokens: int | None = None  # that are computed, prompt or generated


@lru_cache(maxsize=65536)
def parse(name: str) -> Execution | None:
    """The execution that an annotation of this name stands for."""
    if found := re.match(VLLM, name):
        return _vllm(found)
    if found := re.match(VLLM_NEW, name):
        new, cached = int(found["new"]), int(found["cached"])
        return Execution("vLLM", _phase(new, cached), new + cached, cached if not new else None)
    if found := re.match(SGLANG, name):
        return _sglang(found)
    if found := re.match(TENSORRT, name):
        context, generation = int(found["context"]), int(found["generation"])
        tokens = generation if not context else None
        return Execution("TensorRT-LLM", _phase(context, generation), context + generation, tokens)
    return None


def _vllm(found: re.Match[str]) -> Execution:
    context, generation = int(found["context"]), int(found["generation"])
    tokens = [_queries(found["context_of"], context), _queries(found["generation_of"], generation)]
    known = [count for count in tokens if count is not None]
    return Execution(
        "vLLM",
        _phase(context, generation),
        context + generation,
        sum(known) if len(known) == len(tokens) else None,
    )


def _queries(text: str, requests: int) -> int | None:
    """The first figure is the number of tokens that are computed; behind it are those that are attended to."""
    if not requests:
        return 0
    found = _QUERIES.match(text)
    return int(found[1] or found[2]) if found else None


def _sglang(found: re.Match[str]) -> Execution:
    facts = {key: int(value) for key, value in _FACT.findall(found["facts"])}
    batch = facts.get("bs", facts.get("batch_size"))
    tokens = next(
        (facts[key] for key in ("toks", "tokens", "num_tokens", "ext_toks", "extend_tokens") if key in facts),
        None,
    )
    phase = _MODES.get(found["mode"], OTHER)
    return Execution("SGLang", phase, batch, batch if phase == DECODE and tokens is None else tokens)


def _phase(context: int, generation: int) -> str:
    if context and generation:
        return MIXED
    return PREFILL if context else DECODE
