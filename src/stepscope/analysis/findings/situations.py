"""What findings say in situations that their usual words do not fit: inference, TPUs, and devices with tensor cores for fp16 alone.

In inference nothing trains: findings about optimizers are left out, and no advice mentions one, a loss or a learning rate.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.findings.rules.copies.exposed_copy import MOSTLY_READS, WEIGHTS
from stepscope.analysis.findings.rules.host.device_sync import VALUES_READ
from stepscope.analysis.findings.rules.host.launch_bound import ONE_PROGRAM, OUTSIDE_GRAPHS, PROGRAMS
from stepscope.analysis.findings.waits_of_libraries import WAITS_INSIDE
from stepscope.analysis.serving.workload import INFERENCE

_ANY = "any"
# Evidence of a finding whose rule has chosen advice for what it saw, in inference, too.
_CHOSEN = {ONE_PROGRAM, OUTSIDE_GRAPHS, PROGRAMS, WAITS_INSIDE, VALUES_READ, MOSTLY_READS, WEIGHTS}
# Codes that only training can have.
TRAINING_ONLY = (
    "optimizer-loop",
    "recomputation",
    "repeated-backward",
    "repeated-forward",
    "sliced-gradients",
    "useless-backward",
    "dense-embedding-gradient",
    "whole-table",
)
_INFERENCE: dict[str, dict[str, str]] = {
    "input-bound": {_ANY: "Prepare the next request (decode, tokenise, resize) in other threads or processes while the device computes, or on the device itself."},
    "device-sync": {
        "pytorch": "Do not read values back in every step: drop .item(), .cpu() and torch.cuda.synchronize() between kernels, and copy results with non_blocking=True into pinned memory, a step behind.",
        _ANY: "Do not wait for the device in every step: fetch results a step behind.",
    },
    "file-io": {_ANY: "Read and write files in other threads, while the device computes; keep what is read again and again in memory."},
    "slow-op": {_ANY: "Look for a cheaper way to the same result: the largest few (topk) instead of a full sort, results that do not change computed once before the loop, float32 instead of float64."},
    "launch-bound": {
        "pytorch": "Launch less, bigger work: CUDA graphs (torch.compile(model, mode='reduce-overhead'), the engine's own graph mode), or more requests in a batch.",
        "tensorflow": "Wrap the whole model in tf.function(jit_compile=True).",
        "jax": "Put the whole model under one jax.jit; loop over tokens with jax.lax.while_loop instead of Python.",
        _ANY: "Launch less, bigger work: compile or capture the model, or batch more requests.",
    },
    "eager-execution": {"tensorflow": "Wrap the model in @tf.function (jit_compile=True also fuses its ops).", _ANY: "Put the whole model under one jax.jit."},
    "pipeline-restart": {_ANY: "Call the model itself inside a tf.function instead of predict() on small inputs, or predict() once for many of them; make iterators once, outside the loop."},
    "repeated-pass": {_ANY: "Call the model once per step and use all of its outputs."},
    "small-batch": {_ANY: "Compute more requests in one batch (continuous batching), several times as many if memory allows: the device does more of them in the same time."},
    "device-copies": {
        "jax": "Let programs update arrays in place: jax.jit(decode, donate_argnums=…) for what is passed in and comes back changed, such as a cache of keys and values; and keep one dtype.",
    },
    "exposed-copy": {
        "pytorch": "Copy while the device computes: from pinned memory with .to(device, non_blocking=True), on a side stream.",
        _ANY: "Copy the next input while the device computes, from pinned memory.",
    },
    "fp32-matmul": {
        "pytorch": "Load the model in 16 bits: model.to(torch.bfloat16) (torch.float16 before Ampere); or torch.set_float32_matmul_precision('high') for TF32.",
        "tensorflow": "Convert the model to float16 or bfloat16, or allow TF32: tf.config.experimental.enable_tensor_float_32_execution(True).",
        "jax": "Compute in bfloat16, or jax.config.update('jax_default_matmul_precision', 'tensorfloat32').",
        _ANY: "Use TF32, bfloat16 or float16 for matrix products and convolutions.",
    },
    "memory-growth": {_ANY: "Look for what keeps tensors from step to step: a list of outputs, or a cache (keys and values) without a bound. Run under torch.inference_mode(), or release what was answered."},
    "dense-zeros": {"pytorch": "Keep only what is not zero of a matrix that is mostly zeros (an adjacency matrix), as a sparse matrix of compressed rows: A.to_sparse_csr() @ x. To gather the rows of the edges and index_add_ (scatter) them writes a message for each edge, and is slower."},
    "memory-pressure": {_ANY: "Leave room: a smaller cache of keys and values, lower precision of weights or cache, or fewer requests at once."},
    "step-outliers": {_ANY: "Look at what the slow steps do that the others do not: a prefill between decodes, garbage collection, a cold cache, compilation for a new shape."},
}  # fmt: skip
# Volta and Turing: neither TF32 nor bfloat16.
_FP16_ONLY: dict[str, dict[str, str]] = {
    "fp32-matmul": {
        "pytorch": "Let tensor cores do it, which this device has for float16 alone: torch.autocast('cuda', dtype=torch.float16) with torch.amp.GradScaler('cuda').",
        "tensorflow": "Let tensor cores do it, which this device has for float16 alone: tf.keras.mixed_precision.set_global_policy('mixed_float16').",
        _ANY: "Let tensor cores do it, which this device has for float16 alone: compute products in float16, with a scaled loss.",
    },
}  # fmt: skip

# Programs of TPUs: nothing is launched, staged or pinned, all is in what the compiler was given.
_TPU: dict[str, dict[str, str]] = {
    "exposed-copy": {_ANY: "Give the compiler room to fetch ahead: larger blocks of work between uses, a larger --xla_tpu_scoped_vmem_limit_kib, and fewer arrays that a loop slices or updates in place."},
    "exposed-collective": {_ANY: "Hide communication behind computation: async collectives (--xla_tpu_enable_async_collective_fusion=true), a scan over layers that gathers the next layer's weights early, or sharding that communicates less; over DCN, larger and fewer transfers."},
    "layout-conversion": {_ANY: "Keep one layout: avoid transposes and reshapes between products, put the dimension that is contracted or a multiple of 128 last, and donate arguments that come back changed (donate_argnums)."},
}  # fmt: skip


def fitted(case: Case, found: Iterable[Finding]) -> Iterator[Finding]:
    """The findings that the situation can have, with advice that fits it."""
    inference = case.workload == INFERENCE
    texts = _INFERENCE if inference else _FP16_ONLY if _has_fp16_alone(case) else {}
    if case.is_tpu:
        texts = {**texts, **_TPU}
    for finding in found:
        if inference and finding.code in TRAINING_ONLY:
            continue
        own = {} if _CHOSEN & finding.evidence.keys() else texts.get(finding.code, {})
        fix = own.get(case.trace.info.framework or _ANY) or own.get(_ANY)
        yield msgspec.structs.replace(finding, fix=fix) if fix else finding


def _has_fp16_alone(case: Case) -> bool:
    known = case.peaks
    return known is not None and known.flops_per_s("fp16") is not None and known.flops_per_s("bf16") is None
