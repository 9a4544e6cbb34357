"""What to change, for each finding and framework, in words that can be typed."""

from __future__ import annotations

_ANY = "any"

_ADVICE: dict[str, dict[str, str]] = {
    "input-bound": {
        "pytorch": "Load in worker processes: DataLoader(num_workers=8, pin_memory=True, persistent_workers=True, prefetch_factor=4). If workers are on already, move the slow stage to the GPU, or store data that is already decoded.",
        "tensorflow": "End the pipeline with .prefetch(tf.data.AUTOTUNE), use .map(…, num_parallel_calls=tf.data.AUTOTUNE), and .cache() what fits into memory.",
        "jax": "Make the next batch in a background thread or process (Grain, tf.data) and hand it over with jax.device_put before it is needed.",
        _ANY: "Make the next batch in the background, while the step computes.",
    },
    "recompilation": {
        "pytorch": "Find what changes with TORCH_LOGS=recompiles; mark sizes that vary with torch._dynamo.mark_dynamic, pad batches to one shape, and warm up before measuring.",
        "tensorflow": "Give tf.function an input_signature, or pad to one shape; pass Python numbers as tensors.",
        "jax": "Keep shapes and dtypes the same from step to step; JAX_LOG_COMPILES=1 says what was compiled. Mark true constants as static_argnums.",
        _ANY: "Keep shapes the same from step to step, and compile before the loop.",
    },
    "retracing": {
        "tensorflow": "Pass tensors instead of Python numbers, give tf.function an input_signature or reduce_retracing=True, and define it once, outside the loop.",
        _ANY: "Make the function once, outside the loop: a new lambda or partial is traced again at each call. Pass what changes as an array.",
    },
    "device-sync": {
        "pytorch": "Do not read values back in every step: drop .item(), .cpu(), print(loss) and torch.cuda.synchronize(), or do it every 100 steps; keep metrics on the device. Copies to the host: non_blocking=True into pinned memory.",
        "tensorflow": "Do not call .numpy() in every step; log every 100 steps.",
        "jax": "Do not call block_until_ready, float(x) or print(x) in every step; fetch metrics every 100 steps.",
        _ANY: "Do not wait for the device in every step.",
    },
    "host-python": {_ANY: "This code runs while the device has nothing to do. Move it out of the step, vectorise it, or do it in the background."},
    "launch-bound": {
        "pytorch": "Launch less, bigger work: torch.compile(model, mode='reduce-overhead') (CUDA graphs), or a larger batch. Fused optimizers: fused=True.",
        "tensorflow": "Wrap the whole step in tf.function(jit_compile=True).",
        "jax": "Put the whole step under one jax.jit; loop with jax.lax.scan instead of Python.",
        _ANY: "Launch less, bigger work: compile or capture the step, or raise the batch size.",
    },
    "optimizer-loop": {
        "pytorch": "Update all parameters at once: torch.optim.AdamW(…, fused=True) or foreach=True.",
        _ANY: "Update all parameters in one fused operation.",
    },
    "eager-execution": {
        "tensorflow": "Wrap the whole training step in @tf.function (jit_compile=True also fuses its ops).",
        _ANY: "Put the whole training step, gradients and update included, under one jax.jit.",
    },
    "small-batch": {_ANY: "Raise the batch size, several times if memory allows, and the learning rate with it; or accumulate several requests into one step. The device does more samples in the same time."},
    "low-occupancy": {_ANY: "Give these kernels more blocks: split long loops over the grid, use smaller tiles, or run them beside other work on another stream."},
    "round-trip-copy": {
        "pytorch": "Keep the data on the device: drop .cpu() and .numpy() between two steps of the same computation and use the op's device version.",
        _ANY: "Keep the data on the device between two steps of the same computation.",
    },
    "cpu-fallback": {
        "pytorch": "Run this op on the device: keep its inputs there (no .cpu()), or replace it with an op that has a device version.",
        _ANY: "Run this op on the device, or replace it with one that can.",
    },
    "exposed-copy": {
        "pytorch": "Copy while the device computes: pin_memory=True in the DataLoader, .to(device, non_blocking=True), and fetch the next batch on a side stream.",
        _ANY: "Copy the next batch while the device computes, from pinned memory.",
    },
    "exposed-collective": {
        "pytorch": "Overlap communication with the backward pass (DDP does unless buckets are too large: try bucket_cap_mb=10, its default is 25; FSDP: forward_prefetch, backward_prefetch), accumulate gradients, or compress them.",
        _ANY: "Overlap communication with computation, or communicate less often.",
    },
    "fp32-matmul": {
        "pytorch": "Let tensor cores do it: torch.set_float32_matmul_precision('high') for TF32, or torch.autocast('cuda', dtype=torch.bfloat16).",
        "tensorflow": "tf.keras.mixed_precision.set_global_policy('mixed_bfloat16'), or tf.config.experimental.enable_tensor_float_32_execution(True).",
        "jax": "jax.config.update('jax_default_matmul_precision', 'tensorfloat32'), or compute in bfloat16.",
        _ANY: "Use TF32 or bfloat16 for matrix products and convolutions.",
    },
    "layout-conversion": {
        "pytorch": "Keep one layout: model.to(memory_format=torch.channels_last) and the same for the inputs.",
        _ANY: "Keep one memory layout throughout the model.",
    },
    "unfused-attention": {
        "pytorch": "Use torch.nn.functional.scaled_dot_product_attention, which runs as one kernel.",
        "jax": "Use jax.nn.dot_product_attention(implementation='cudnn').",
        _ANY: "Use a fused attention kernel.",
    },
    "memory-growth": {_ANY: "Something keeps tensors from step to step: a list of losses that still hold their graph (append loss.item() or loss.detach()), or a cache without a bound."},
    "memory-pressure": {
        "pytorch": "Leave room: gradient checkpointing, bf16, a smaller batch, or PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True against fragmentation.",
        _ANY: "Leave room: gradient checkpointing, lower precision or a smaller batch.",
    },
    "step-outliers": {_ANY: "Look at what the slow steps do that the others do not: checkpoints, evaluation, garbage collection, a cold cache."},
    "warm-up": {
        _ANY: "Compilation, autotuning and caches are paid once in a job. To judge the usual step, record later: "
        "stepscope.schedule(skip=10, active=5), or leave those steps out with --step."
    },
    "idle-unexplained": {
        "pytorch": "Record with with_stack=True, or put record_function around the code between ops, so that this time gets a name.",
        _ANY: "Annotate the code between operations, so that this time gets a name.",
    },
}  # fmt: skip

_WITHOUT_DEVICE: dict[str, dict[str, str]] = {
    "input-bound": {
        "pytorch": "Load in worker processes: DataLoader(num_workers=4, persistent_workers=True, prefetch_factor=4). If workers are on already, store data that is already decoded.",
        "jax": "Make the next batch in a background thread or process (Grain, tf.data).",
    },
    "host-python": {_ANY: "This code runs while nothing is computed. Move it out of the step, vectorise it, or do it in the background."},
    "launch-bound": {
        "pytorch": "Do more in each op: torch.compile(model), a larger batch, and foreach=True or fused=True in the optimizer.",
        _ANY: "Do more in each op: compile the step, or raise the batch size.",
    },
}  # fmt: skip


def advice(code: str, framework: str | None, has_device: bool = True) -> str:
    """The change for this finding in this framework, on a device or on the host alone."""
    texts = _ADVICE[code] | ({} if has_device else _WITHOUT_DEVICE.get(code, {}))
    return texts.get(framework or _ANY) or texts[_ANY]
