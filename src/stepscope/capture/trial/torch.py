"""Changes to a PyTorch job."""

from __future__ import annotations

import inspect
import os
import sys
from collections.abc import Callable
from typing import Any

Check = Callable[[], str]
_MOST_WORKERS = 8
_PREFETCH = 4
_SET_BACK = "the job sets it back"
_NO_MODULE = "the job calls no module with parameters"


def use_workers(dataloader: Any) -> Check:
    """Loaders of a map-style dataset get worker processes. An iterable dataset would be read once by each worker, so it stays."""
    init = dataloader.DataLoader.__init__
    changed: list[bool] = []

    def __init__(loader: Any, dataset: Any, *args: Any, **options: Any) -> None:
        is_iterable = isinstance(dataset, dataloader.IterableDataset)
        if not is_iterable and len(args) < 5 and not options.get("num_workers"):
            options["num_workers"] = max(2, min(_MOST_WORKERS, os.cpu_count() or 2))
            options.setdefault("persistent_workers", True)
            options.setdefault("prefetch_factor", _PREFETCH)
            options.setdefault("pin_memory", _has_cuda())
            changed.append(True)
        init(loader, dataset, *args, **options)

    dataloader.DataLoader.__init__ = __init__
    return _unless(changed, "the job has no DataLoader of a map-style dataset without workers")


def use_bfloat16(torch: Any) -> Check:
    """The outermost modules run under autocast."""

    def call(module: Any, run: Callable[[], Any]) -> Any:
        kind = next((each.device.type for each in module.parameters()), "cpu")
        with torch.autocast(kind, dtype=torch.bfloat16):
            return run()

    return _around_outermost(torch, call)


def use_tf32(torch: Any) -> Check:
    """Products of float32 may use TF32, also where the script sets the precision later."""
    torch.set_float32_matmul_precision("high")
    torch.set_float32_matmul_precision = lambda precision: None
    torch.backends.cudnn.allow_tf32 = True
    return lambda: _SET_BACK if torch.get_float32_matmul_precision() == "highest" else ""


def use_fused_optimizer(optim: Any) -> Check:
    """Optimizers that can are fused."""
    return _with_option(optim, "fused", ("Adam", "AdamW", "SGD", "Adagrad"))


def use_foreach_optimizer(optim: Any) -> Check:
    """Optimizers that can work on all parameters at once."""
    return _with_option(
        optim, "foreach", ("Adam", "AdamW", "SGD", "Adagrad", "RMSprop", "Adadelta", "NAdam", "RAdam")
    )


def use_compile(torch: Any) -> Check:
    """The outermost modules are compiled at their first call."""
    return _compile_outermost(torch, {})


def use_compiled_graphs(torch: Any) -> Check:
    """The same with CUDA graphs."""
    return _compile_outermost(torch, {"mode": "reduce-overhead"})


def use_channels_last(torch: Any) -> Check:
    """Modules with convolutions, and their images, have channels last in memory."""
    seen: set[int] = set()
    changed: list[bool] = []

    def call(module: Any, run: Callable[[], Any]) -> Any:
        if id(module) not in seen:
            seen.add(id(module))
            if any(isinstance(each, torch.nn.Conv2d) for each in module.modules()):
                module.to(memory_format=torch.channels_last)
                changed.append(True)
        return run()

    _around_outermost(torch, call)
    return _unless(changed, "the job calls no module with 2-D convolutions")


def use_cudnn_benchmark(torch: Any) -> Check:
    """cuDNN tries its algorithms once per shape."""
    torch.backends.cudnn.benchmark = True
    return lambda: "" if torch.backends.cudnn.benchmark else _SET_BACK


def skip_cleaning(torch: Any) -> Check:
    """Calls that return memory to the driver, or look for garbage, do nothing."""
    import gc

    skipped: list[bool] = []

    def skip(*_args: Any, **_options: Any) -> int:
        skipped[:] = [True]
        return 0

    torch.cuda.empty_cache = gc.collect = skip
    return _unless(skipped, "the job calls neither empty_cache() nor gc.collect()")


def skip_checkpointing(checkpoint: Any) -> Check:
    """Activations are kept instead of computed again."""
    skipped: list[bool] = []

    def call(function: Any, *args: Any, use_reentrant: Any = None, **options: Any) -> Any:
        for name in ("context_fn", "determinism_check", "debug", "preserve_rng_state", "early_stop"):
            options.pop(name, None)
        skipped[:] = [True]
        return function(*args, **options)

    checkpoint.checkpoint = call
    package = sys.modules.get("torch.utils")
    if package is not None and hasattr(package, "checkpoint"):
        package.checkpoint.checkpoint = call
    return _unless(skipped, "the job checkpoints no activations")


def _unless(done: list[bool], why: str) -> Check:
    return lambda: "" if done else why


def _has_cuda() -> bool:
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch.cuda.is_available())


def _with_option(optim: Any, option: str, names: tuple[str, ...]) -> Check:
    changed: list[bool] = []
    for name in names:
        kind = getattr(optim, name, None)
        if kind is not None:
            _default_option(kind, option, changed)
    return _unless(changed, f"the job makes no optimizer that has the option {option}")


def _default_option(kind: Any, option: str, changed: list[bool]) -> None:
    """The option wins over what the script chose of the three ways to update; a capturable or differentiable optimizer stays."""
    init = kind.__init__
    known = inspect.signature(init).parameters

    def __init__(optimizer: Any, *args: Any, **options: Any) -> None:
        if option in known and not (options.get("capturable") or options.get("differentiable")):
            options = {name: value for name, value in options.items() if name not in ("fused", "foreach")}
            options[option] = True
            changed.append(True)
        init(optimizer, *args, **options)

    kind.__init__ = __init__


def _compile_outermost(torch: Any, options: dict[str, Any]) -> Check:
    compiled: dict[int, Any] = {}

    def call(module: Any, run: Callable[[], Any]) -> Any:
        if id(module) not in compiled:
            compiled[id(module)] = module
            if getattr(module, "_compiled_call_impl", None) is None:
                module.compile(**options)
        return run()

    return _around_outermost(torch, call)


def _around_outermost(torch: Any, around: Callable[[Any, Callable[[], Any]], Any]) -> Check:
    """Call `around` for modules that no other module calls; losses have no parameters, and stay as they are."""
    plain = torch.nn.Module.__call__
    depth = [0]
    called: list[bool] = []

    def __call__(module: Any, *args: Any, **options: Any) -> Any:
        if depth[0] or next(module.parameters(), None) is None:
            return plain(module, *args, **options)
        depth[0] += 1
        called[:] = [True]
        try:
            return around(module, lambda: plain(module, *args, **options))
        finally:
            depth[0] -= 1

    torch.nn.Module.__call__ = __call__
    return _unless(called, _NO_MODULE)
