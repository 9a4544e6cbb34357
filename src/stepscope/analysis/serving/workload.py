"""Whether a profile shows inference or training: by what engines and frameworks write, never by a guess.

Inference: an engine's names, or a PyTorch job that runs a model without any sign of a backward pass or an optimizer. Work that is hidden in
graphs may be either, and says so by its kernels' names or not at all.
"""

from __future__ import annotations

import polars as pl

from stepscope.analysis.serving.names import CAPTURES, SGLANG, TENSORRT, VLLM, VLLM_NEW
from stepscope.lazy import dataclass
from stepscope.trace.graphs import graph_work
from stepscope.trace.lookup import distinct, names_of
from stepscope.trace.trace import Trace

INFERENCE, TRAINING = "inference", "training"
# SGLang first: it uses parts of vLLM, and its names.
_ENGINES = {
    "SGLang": r"^sgl_kernel::|(^|/)sglang/srt/|^sglang::",
    "vLLM": r"^vllm::|(^|/)vllm/|^VLLM::",
    "TensorRT-LLM": r"^trtllm::|(^|/)tensorrt_llm/",
}
_ANNOTATED = {"SGLang": SGLANG, "vLLM": f"{VLLM}|{VLLM_NEW}", "TensorRT-LLM": TENSORRT}
# Ops, kernels and annotations of training; Python frames and compiler passes have such words without training anything, and so has
# a transposed convolution, which runs the kernel of a gradient (dgrad).
_TRAINS = (
    r"(?i)backward|^autograd::engine|^Optimizer\.(step|zero_grad)|_bwd_|bwd_kernel|wgrad|fused_?adam|adamw?_kernel"
    r"|gradient_tape|^train(ing)?_step|ResourceApply\w+|ApplyGradient|BiasAddGrad"
)
# Without any of these no model was recorded, and so neither of the two: hooks that only communicate, a kernel that is tried out.
_OF_MODELS = r"(?i)mm\b|mm_|matmul|gemm|linear|conv|einsum|embedding|attention|attn|lstm|gru|rnn"
_GRADIENT_SCOPE = r"transpose\(jvp|gradient_tape"


@dataclass(frozen=True)
class Workload:
    """`kind` is None where nothing decides; `engine` is the serving engine, where one is recognised."""

    kind: str | None
    engine: str | None
    evidence: str


def workload(trace: Trace) -> Workload:
    """What kind of job the trace shows, and by what that is known."""
    names = names_of(trace.events).cast(pl.String)
    tables = (_ENGINES, _ANNOTATED)
    found = (name for table in tables for name, pattern in table.items() if names.str.contains(pattern).any())
    engine = next(found, None)
    if engine is not None:
        return Workload(INFERENCE, engine, f"names of {engine}")
    training = _sign_of_training(trace)
    if training is not None:
        return Workload(TRAINING, None, training)
    if names.str.contains(CAPTURES).any():
        return Workload(INFERENCE, None, "captures of a serving engine's graphs")
    if _shows_a_whole_job(trace) and names.str.contains(_OF_MODELS).any():
        return Workload(INFERENCE, None, "no backward pass and no optimizer")
    return Workload(None, None, "")


def _sign_of_training(trace: Trace) -> str | None:
    """The name of something that only training does."""
    work = trace.events.filter(pl.col("kind").is_in(["op", "kernel", "annotation"]))
    names = distinct(work["name"]).cast(pl.String)
    found = names.filter(names.str.contains(_TRAINS))
    if found.is_empty():
        scopes = distinct(trace.ops["scope"]).cast(pl.String)
        found = scopes.filter(scopes.str.contains(_GRADIENT_SCOPE))
    return str(found.sort()[0]) if len(found) else None


def _shows_a_whole_job(trace: Trace) -> bool:
    """Whether a backward pass would be seen: ops are recorded, and graphs do not hide most of the device's work."""
    if trace.info.framework != "pytorch" or not (trace.events["kind"] == "op").any():
        return False
    on_device = trace.events.filter(pl.col("kind") == "kernel")
    if on_device.is_empty() and not trace.info.devices:  # the ops themselves compute
        return True
    hidden = trace.events["dur_ns"].gather(graph_work(trace)["event"]).sum()
    return len(on_device) > 0 and 2 * int(hidden) < int(on_device["dur_ns"].sum())
