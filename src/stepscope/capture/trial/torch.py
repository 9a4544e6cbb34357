"""Changes to a PyTorch job."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from typing import Any

_MOST_WORKERS = 8
_PREFETCH = 4


def use_workers(dataloader: Any) -> None:
    """Loaders of a map-style dataset get worker processes. An iterable dataset would be read once by each worker, so it stays."""
    init = dataloader.DataLoader.__init__

    def __init__(loader: Any, dataset: Any, *args: Any, **options: Any) -> None:
        is_iterable = isinstance(dataset, dataloader.IterableDataset)
        if not is_iterable and len(args) < 5 and not options.get("num_workers"):
            options["num_workers"] = max(2, min(_MOST_WORKERS, os.cpu_count() or 2))
            options.setdefault("persistent_workers", True)
            options.setdefault("prefetch_factor", _PREFETCH)
            options.setdefault("pin_memory", _has_cuda())
        init(loader, dataset, *args, **options)

    dataloader.DataLoader.__init__ = __init__


def use_bfloat16(torch: Any) -> None:
    """The outermost modules run under autocast."""

    def call(module: Any, run: Callable[[], Any]) -> Any:
        kind = next((each.device.type for each in module.parameters()), "cpu")
        with torch.autocast(kind, dtype=torch.bfloat16):
            return run()

    _around_outermost(torch, call)


def use_tf32(torch: Any) -> None:
    """Products of float32 may use TF32."""
    torch.set_float32_matmul_precision("high")
    torch.backends.cudnn.allow_tf32 = True


def use_fused_optimizer(optim: Any) -> None:
    """Optimizers that can are fused."""
    _with_option(optim, "fused", ("Adam", "AdamW", "SGD", "Adagrad"))


def use_foreach_optimizer(optim: Any) -> None:
    """Optimizers that can work on all parameters at once."""
    _with_option(
        optim, "foreach", ("Adam", "AdamW", "SGD", "Adagrad", "RMSprop", "Adadelta", "NAdam", "RAdam")
    )


def use_compile(torch: Any) -> None:
    """The outermost modules are compiled at their first call."""
    _compile_outermost(torch, {})


def use_compiled_graphs(torch: Any) -> None:
    """The same with CUDA graphs."""
    _compile_outermost(torch, {"mode": "reduce-overhead"})


def use_channels_last(torch: Any) -> None:
    """Modules with convolutions, and their images, have channels last in memory."""
    changed: set[int] = set()

    def call(module: Any, run: Callable[[], Any]) -> Any:
        if id(module) not in changed:
            changed.add(id(module))
            if any(isinstance(each, torch.nn.Conv2d) for each in module.modules()):
                module.to(memory_format=torch.channels_last)
        return run()

    _around_outermost(torch, call)


def use_cudnn_benchmark(torch: Any) -> None:
    """cuDNN tries its algorithms once per shape."""
    torch.backends.cudnn.benchmark = True


def skip_cleaning(torch: Any) -> None:
    """Calls that return memory to the driver, or look for garbage, do nothing."""
    import gc

    torch.cuda.empty_cache = lambda: None
    gc.collect = lambda generation=2: 0


def skip_checkpointing(checkpoint: Any) -> None:
    """Activations are kept instead of computed again."""

    def call(function: Any, *args: Any, use_reentrant: Any = None, **options: Any) -> Any:
        for name in ("context_fn", "determinism_check", "debug", "preserve_rng_state", "early_stop"):
            options.pop(name, None)
        return function(*args, **options)

    checkpoint.checkpoint = call
    package = sys.modules.get("torch.utils")
    if package is not None and hasattr(package, "checkpoint"):
        package.checkpoint.checkpoint = call


def _has_cuda() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_available())


def _with_option(optim: Any, option: str, names: tuple[str, ...]) -> None:
    for name in names:
        kind = getattr(optim, name, None)
        if kind is not None:
            _default_option(kind, option)


def _default_option(kind: Any, option: str) -> None:
    init = kind.__init__

    def __init__(optimizer: Any, *args: Any, **options: Any) -> None:
        chosen = {"fused", "foreach", "capturable", "differentiable"} & options.keys()
        if not chosen and option in init.__code__.co_varnames:
            options[option] = True
        init(optimizer, *args, **options)

    kind.__init__ = __init__


def _compile_outermost(torch: Any, options: dict[str, Any]) -> None:
    compiled: dict[int, Any] = {}

    def call(module: Any, run: Callable[[], Any]) -> Any:
        if id(module) not in compiled:
            compiled[id(module)] = module
            if getattr(module, "_compiled_call_impl", None) is None:
                module.compile(**options)
        return run()

    _around_outermost(torch, call)


def _around_outermost(torch: Any, around: Callable[[Any, Callable[[], Any]], Any]) -> None:
    """Call `around` for modules that no other module calls; losses have no parameters, and stay as they are."""
    plain = torch.nn.Module.__call__
    depth = [0]

    def __call__(module: Any, *args: Any, **options: Any) -> Any:
        if depth[0] or next(module.parameters(), None) is None:
            return plain(module, *args, **options)
        depth[0] += 1
        try:
            return around(module, lambda: plain(module, *args, **options))
        finally:
            depth[0] -= 1

    torch.nn.Module.__call__ = __call__
