"""Checks of the finished trace: discarded, written twice, or over another rank's file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.script.keras import TENSORBOARD
from stepscope.doctor.script.profilers import Held
from stepscope.doctor.script.source import Call, constant, last_part
from stepscope.doctor.script.subject import PAIRS, WITHS, TrainingScript

CHECKS: Checks[TrainingScript] = Checks("script")
_HANDLERS = ("torch.profiler.tensorboard_trace_handler", "torch.profiler.profiler.tensorboard_trace_handler")
_RESULTS = (
    "export_chrome_trace", "export_stacks", "export_memory_timeline", "key_averages", "events", "function_events", "table",
    "total_average", "profiler", "kineto_results", "self_cpu_time_total", "preset_metadata_json",
)  # fmt: skip
_DISTRIBUTED = (
    "torch.distributed", "torch.nn.parallel.DistributedDataParallel", "accelerate", "deepspeed", "horovod",
    "jax.distributed", "tensorflow.distribute.MultiWorkerMirroredStrategy",
    "tensorflow.distribute.experimental.MultiWorkerMirroredStrategy", "torch.multiprocessing.spawn",
)  # fmt: skip
_LAUNCHED = {"LOCAL_RANK", "WORLD_SIZE", "TF_CONFIG", "OMPI_COMM_WORLD_RANK", "SLURM_PROCID"}
_SAME_ON_ALL_RANKS = re.compile(
    r"(?i)^(\w+\.)*(step_num|step|epoch|i|it|iteration|global_step|batch_idx)(\(\))?$"
)


@CHECKS.add("export-after-handover")
def export_after_handover(subject: TrainingScript) -> Iterator[Sign]:
    """An export outside of a handler that exports."""
    for held in subject.torch:
        handler = _handler_body(subject, held)
        if handler is None:
            continue
        inside = set(ast.walk(handler))
        for call in _exports(subject, held):
            if call.node not in inside:
                yield Sign(
                    f"Line {call.line}: export_chrome_trace, and on_trace_ready in line {held.line} saves the same trace."
                )


def _handler_body(subject: TrainingScript, held: Held) -> ast.AST | None:
    """The handler, if it is known to save the trace."""
    handler = held.handler
    if isinstance(handler, ast.Call):
        return handler if subject.script.name_of(handler.func) in _HANDLERS else None
    body = (
        handler
        if isinstance(handler, ast.Lambda)
        else subject.script.functions.get(last_part(handler))
        if handler
        else None
    )
    saves = body is not None and any(last_part(node) == "export_chrome_trace" for node in ast.walk(body))
    return body if saves else None


def _exports(subject: TrainingScript, held: Held) -> list[Call]:
    return [
        call
        for call in subject.script.calls
        if call.method == "export_chrome_trace"
        and isinstance(call.node.func, ast.Attribute)
        and last_part(call.node.func.value) in held.names
    ]


@CHECKS.add("export-before-stop")
def export_before_stop(subject: TrainingScript) -> Iterator[Sign]:
    """An export directly in the body of the profiler's `with`."""
    for held in subject.torch:
        statements = {node for part in held.body for node in ast.walk(part)}
        if held.has_schedule or held.handler is not None or held.does("stop"):
            continue
        for call in _exports(subject, held):
            if call.node in statements:
                yield Sign(f"Line {call.line}: inside the `with` of line {held.line}.")


@CHECKS.add("trace-thrown-away")
def trace_thrown_away(subject: TrainingScript) -> Iterator[Sign]:
    """The script requests nothing from the profiler."""
    for held in subject.torch:
        is_run = held.is_entered or "start" in held.asked
        if (
            is_run
            and held.handler is None
            and not held.does(*_RESULTS)
            and not held.made.has_unknown_keywords
        ):
            name = min(held.names, default="the profiler")
            yield Sign(f"Line {held.line}: no on_trace_ready, and {name} is not used afterwards.")


@CHECKS.add("one-logdir-for-all-ranks")
def one_logdir_for_all_ranks(subject: TrainingScript) -> Iterator[Sign]:
    """A distributed script that writes to a constant name, not only on one rank."""
    if not any(subject.script.uses(name) for name in _DISTRIBUTED) and not _knows_its_worker(subject):
        return
    for call in subject.script.calls:
        if subject.is_guarded(call.node):
            continue
        place = call.node.args[0] if call.node.args else call.keyword("path")
        if call.method == "export_chrome_trace" and _is_same(subject, place):
            yield Sign(f"Line {call.line}: {ast.unparse(call.node)}")
        worker = call.keyword("worker_name")
        if call.name in _HANDLERS and _is_same(subject, worker):
            given = ast.unparse(worker) if worker else ""
            yield Sign(f"Line {call.line}: worker_name={given}", "worker-name")
        if _is_same(subject, _folder(call)):
            yield Sign(f"Line {call.line}: {ast.unparse(call.node)}", "folder")


def _folder(call: Call) -> ast.expr | None:
    """Where a profiler of TensorFlow or JAX, or Keras' callback with a profile_batch, writes."""
    is_callback = bool(TENSORBOARD.search(call.name)) and call.keyword("profile_batch") is not None
    if not is_callback and call.name not in (PAIRS[0].start, PAIRS[1].start, *WITHS):
        return None
    named = (call.keyword(name) for name in ("logdir", "log_dir"))
    return call.node.args[0] if call.node.args else next(filter(None, named), None)


def _knows_its_worker(subject: TrainingScript) -> bool:
    """Whether a launcher's variables are read: every worker runs this script."""
    texts = (constant(node) for node in ast.walk(subject.script.tree) if isinstance(node, ast.Constant))
    return not _LAUNCHED.isdisjoint(text for text in texts if isinstance(text, str))


def _is_same(subject: TrainingScript, node: ast.expr | None) -> bool:
    """Whether the text is the same on every rank: a literal, also by name or joined, or one with only the step in it."""
    node = subject.script.meaning(node)
    if isinstance(node, ast.JoinedStr):
        values = [ast.unparse(each.value) for each in node.values if isinstance(each, ast.FormattedValue)]
        return all(_SAME_ON_ALL_RANKS.match(value) for value in values)
    if isinstance(node, ast.Call) and subject.script.name_of(node.func) == "os.path.join":
        return all(_is_same(subject, each) for each in node.args)
    return isinstance(constant(node), str)
