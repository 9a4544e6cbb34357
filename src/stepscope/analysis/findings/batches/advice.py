"""What to change about batches that are waited for, by who makes them: a loader with or without workers, or a function of the job.

Workers are advised where something can be given workers. Where the recording shows how many there are, nothing is left to an "if".
"""

from __future__ import annotations

import re

from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.input_facts import InputFacts

_LOADER = re.compile(r"(?i)data_?loader|iterator")
_FUNCTION = re.compile(r"[A-Za-z_][\w.]{0,39}")  # of a longer name the title has the beginning
_WITHOUT_WORKERS = " The DataLoader has num_workers=0 now."
_LESS = "move the slow stage to the GPU, or store data that is already decoded"
_LESS_WITHOUT_DEVICE = "store data that is already decoded, or decode less of it"
_TENSORS = "whole batches with one index instead of sample by sample"


def advise(case: Case, found: Finding, facts: InputFacts) -> str:
    """The advice of the rule, or what fits better to what the recording shows of PyTorch's and TensorFlow's input."""
    framework = case.trace.info.framework
    if framework == "pytorch" and facts.has_workers:
        return _more_workers(case, facts)
    if framework == "pytorch" and facts.has_workers is False:
        return found.fix.split(" If workers are on")[0] + _WITHOUT_WORKERS
    name = _name(found)
    if facts.has_workers is not None or facts.prefetches is not None or _LOADER.search(name):
        return found.fix
    return _of_function(case, name, facts) if framework in ("pytorch", "tensorflow") else found.fix


def _more_workers(case: Case, facts: InputFacts) -> str:
    """More of them as long as there are cores for them, and less work for each."""
    less = _LESS if case.has_device else _LESS_WITHOUT_DEVICE
    if facts.workers and facts.cores and facts.workers >= facts.cores:
        return f"Do less for each batch, since there is a worker for every core already: {less}."
    most = f", up to {facts.cores} on this machine" if facts.cores else ""
    now = f" ({facts.workers} now{most})" if facts.workers else most
    return f"Add workers: a larger num_workers{now}, with persistent_workers=True and prefetch_factor=4. Or do less for each batch: {less}."


def _of_function(case: Case, name: str, facts: InputFacts) -> str:
    """Of a function that makes its batches in the loop."""
    called = f"call {name}" if _FUNCTION.fullmatch(name) else "make it"
    if facts.made_in_background:
        return f"Make more batches at once in the background, or do less for each: {_TENSORS}, and data that is already decoded."
    if case.trace.info.framework == "tensorflow":
        return (
            "Make the next batch in the background: turn the data into a tf.data.Dataset, use .map(…, num_parallel_calls=tf.data.AUTOTUNE), "
            "and end it with .prefetch(tf.data.AUTOTUNE)."
        )
    while_ = "the device computes" if case.has_device else "the step computes"
    pinned = " Pin memory once, not for each batch." if facts.pins_memory else ""
    kept = ", or keep the data on the device if it fits" if case.has_device else ""
    return f"Make the next batch in the background: {called} in a thread or process of its own while {while_}. Or make it cheaper: {_TENSORS}{kept}.{pinned}"


def _name(found: Finding) -> str:
    """What takes most of the time, as the finding names it."""
    names = found.evidence.get("names")
    return str(names[0].get("name", "")) if isinstance(names, list) and names else ""
