"""The changes that can be made to a job from outside, by name; each waits for its framework to be imported."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

from stepscope.capture.process.on_import import after_import
from stepscope.capture.trial import jax, tensorflow, torch

Check = Callable[[], str]


@dataclass(frozen=True)
class Change:
    """`apply` gets the module when it has been imported, and may return a check for the end of the run.

    The check gives "" where the job was really changed, else why not. `codes` are the findings that the change answers, `helps` those
    whose advice it is a part of: it is tried for them, but their promise is not for it. `figures` names
    the evidence of a finding that has a promise for this change alone; `or_all`: where it has none, its promise is for this change.
    """

    name: str
    framework: str
    title: str
    module: str
    apply: Callable[..., Check | None]
    codes: tuple[str, ...] = ()
    helps: tuple[str, ...] = ()
    figures: str = ""
    or_all: bool = False


_ALL = (
    Change("workers", "torch", "DataLoader with worker processes, pinned memory and prefetch", "torch.utils.data.dataloader", torch.use_workers, ("input-bound",), ("host-python",)),
    Change("bf16", "torch", "autocast to bfloat16", "torch", torch.use_bfloat16, ("mixed-precision", "fp32-matmul"), figures="bf16", or_all=True),
    Change("tf32", "torch", "TF32 products", "torch", torch.use_tf32, ("fp32-matmul",), figures="tf32"),
    Change("fused-optimizer", "torch", "fused optimizer", "torch.optim", torch.use_fused_optimizer, ("optimizer-loop",), ("launch-bound",)),
    Change("foreach-optimizer", "torch", "optimizer with foreach", "torch.optim", torch.use_foreach_optimizer, ("optimizer-loop",)),
    Change("compile", "torch", "torch.compile", "torch", torch.use_compile, ("unfused-elementwise",), ("launch-bound",)),
    Change("compile-reduce-overhead", "torch", "torch.compile with CUDA graphs", "torch", torch.use_compiled_graphs, (), ("launch-bound",)),
    Change("channels-last", "torch", "channels_last convolutions", "torch", torch.use_channels_last, ("layout-conversion",)),
    Change("cudnn-benchmark", "torch", "cudnn.benchmark", "torch", torch.use_cudnn_benchmark, ()),
    Change("no-empty-cache", "torch", "no empty_cache() and gc.collect() in the step", "torch", torch.skip_cleaning, ("allocator-churn",), ("host-python",)),
    Change("no-checkpointing", "torch", "no activation checkpointing", "torch.utils.checkpoint", torch.skip_checkpointing, ("recomputation",)),
    Change("tf-prefetch", "tensorflow", "tf.data with prefetch and parallel map", "tensorflow", tensorflow.use_prefetch, ("input-bound",), ("host-python",)),
    Change("tf-xla", "tensorflow", "XLA for tf.function", "tensorflow", tensorflow.use_xla, ("launch-bound", "unfused-elementwise")),
    Change("mixed-float16", "tensorflow", "Keras mixed_float16", "keras", tensorflow.use_mixed_float16, ("mixed-precision", "fp32-matmul"), figures="bf16", or_all=True),
    Change("jax-tf32", "jax", "TF32 products in JAX", "jax", jax.use_tf32, ("fp32-matmul",), figures="tf32"),
    Change("jax-bf16", "jax", "bfloat16 products in JAX", "jax", jax.use_bfloat16, ("fp32-matmul",), ("mixed-precision",), figures="bf16", or_all=True),
    Change("jax-cache", "jax", "persistent compilation cache", "jax", jax.use_compilation_cache, (), ("recompilation",)),
)  # fmt: skip
CHANGES = {change.name: change for change in _ALL}


def is_tried_for(change: Change, code: str) -> bool:
    """Whether a finding asks for the change, in full or in part."""
    return code in change.codes or code in change.helps


def apply_changes(names: Iterable[str], report: Callable[[str, str], None]) -> dict[str, Check]:
    """Make each change once its module is there; `report` hears which were made ("") and why others could not be.

    What is returned fills with the checks of those that were made.
    """
    checks: dict[str, Check] = {}
    for name in names:
        change = CHANGES.get(name)
        if change is None:
            report(name, "There is no such change.")
        else:
            after_import(change.module, _attempt(change, report, checks))
    return checks


def _attempt(
    change: Change, report: Callable[[str, str], None], checks: dict[str, Check]
) -> Callable[[object], None]:
    def attempt(module: object) -> None:
        try:
            check = change.apply(module)
        except Exception as error:  # another version of the framework, or a job that has done it its own way
            report(change.name, f"{type(error).__name__}: {error}")
        else:
            report(change.name, "")
            if check is not None:
                checks[change.name] = check

    return attempt
