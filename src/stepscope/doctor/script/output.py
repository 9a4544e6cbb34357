"""Checks of the finished trace: discarded, written twice, or over another rank's file."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from stepscope.doctor.check import Checks, Sign
from stepscope.doctor.script.profilers import Held
from stepscope.doctor.script.source import Call, constant, last_part
from stepscope.doctor.script.subject import PAIRS, WITHS, TrainingScript

CHECKS: Checks[TrainingScript] = Checks("script", [])
_HANDLERS = ("torch.profiler.tensorboard_trace_handler", "torch.profiler.profiler.tensorboard_trace_handler")
_RESULTS = (
    "export_chrome_trace", "export_stacks", "export_memory_timeline", "key_averages", "events", "function_events", "table",
    "total_average", "profiler", "kineto_results", "self_cpu_time_total", "preset_metadata_json",
)  # fmt: skip
_DISTRIBUTED = (
    "torch.distributed", "torch.nn.parallel.DistributedDataParallel", "accelerate", "deepspeed", "horovod",
    "jax.distributed", "tensorflow.distribute.MultiWorkerMirroredStrategy",
)  # fmt: skip
_SAME_ON_ALL_RANKS = re.compile(
    r"(?i)^(\w+\.)*(step_num|step|epoch|i|it|iteration|global_step|batch_idx)(\(\))?$"
)


@CHECKS.add(
    "export-after-handover",
    "The trace is exported after it was handed over",
    cause="on_trace_ready has already saved the trace; a second export raises `RuntimeError: Trace is already saved.`",
    fix="Export in one place: in on_trace_ready, or after the loop without on_trace_ready.",
    severity="error",
)
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


@CHECKS.add(
    "export-before-stop",
    "The trace is exported while it is still being recorded",
    cause="Inside the `with` block nothing is finished yet: `'NoneType' object has no attribute 'save'`.",
    fix="Move export_chrome_trace behind the `with` block.",
    severity="error",
)
def export_before_stop(subject: TrainingScript) -> Iterator[Sign]:
    """An export directly in the body of the profiler's `with`."""
    for held in subject.torch:
        statements = {node for part in held.body for node in ast.walk(part)}
        if held.has_schedule or held.handler is not None or held.does("stop"):
            continue
        for call in _exports(subject, held):
            if call.node in statements:
                yield Sign(f"Line {call.line}: inside the `with` of line {held.line}.")


@CHECKS.add(
    "trace-thrown-away",
    "The trace is recorded and discarded",
    cause="Without on_trace_ready and without an export nothing is ever written.",
    fix="on_trace_ready=torch.profiler.tensorboard_trace_handler('logs'), or prof.export_chrome_trace('trace.json.gz') after the loop.",
)
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


@CHECKS.add(
    "one-logdir-for-all-ranks",
    "All ranks write to the same place",
    cause="Every rank runs this script. A file of one name is written by all of them at once: the last one wins, or the file is broken. "
    "TensorFlow and JAX name files after the host, which several processes of a host share.",
    fix="Put the rank into the name: prof.export_chrome_trace(f'trace_rank{rank}.json.gz').",
)
def one_logdir_for_all_ranks(subject: TrainingScript) -> Iterator[Sign]:
    """A distributed script that writes to a constant name, not only on one rank."""
    if not any(subject.script.uses(name) for name in _DISTRIBUTED):
        return
    for call in subject.script.calls:
        place = call.node.args[0] if call.node.args else None
        if call.method == "export_chrome_trace" and _is_same(place) and not subject.is_guarded(call.node):
            yield Sign(f"Line {call.line}: {ast.unparse(call.node)}")
        worker = call.keyword("worker_name")
        if call.name in _HANDLERS and _is_same(worker) and not subject.is_guarded(call.node):
            fix = "Leave worker_name out (host and process are put in), or put the rank into it: worker_name=f'rank{rank}'."
            yield Sign(f"Line {call.line}: worker_name={ast.unparse(worker) if worker else ''}", fix)
        if (
            call.name in (PAIRS[0].start, PAIRS[1].start, *WITHS)
            and _is_same(place)
            and not subject.is_guarded(call.node)
        ):
            fix = "Where several processes share a host, put the process into the folder: f'logs/{rank}'; one process per host is fine."
            yield Sign(
                f"Line {call.line}: {call.name}({ast.unparse(place) if place else ''})", fix, severity="info"
            )


def _is_same(node: ast.expr | None) -> bool:
    """Whether the text is the same on every rank: a literal, or one with only the step in it."""
    if isinstance(node, ast.JoinedStr):
        values = [ast.unparse(each.value) for each in node.values if isinstance(each, ast.FormattedValue)]
        return all(_SAME_ON_ALL_RANKS.match(value) for value in values)
    return isinstance(constant(node), str)
