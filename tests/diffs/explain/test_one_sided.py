"""What one run does in every step and the other in none is reported, however unsteady the times are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import polars as pl

from stepscope.diffs.data.match import NAMES, match
from stepscope.diffs.data.model import Row
from stepscope.diffs.data.samples import Samples, conform_table
from stepscope.diffs.explain.call_counts import CallChanges, explain_call_counts
from stepscope.diffs.explain.one_sided import find_one_sided_functions, find_one_sided_scopes
from stepscope.diffs.noise.judge import Ground
from stepscope.diffs.noise.machine_speed import Speeds
from tests.builders.jobs.rank_samples import rank_samples

STEPS = 4
OPS = dict.fromkeys(("mm", "add", "tanh", "xor", "slice"), ("[[8,8]]", "1x1x1", 100_000.0))
PLAIN = {"mm": "jit(step)/block", "add": "jit(step)/block", "tanh": "jit(step)"}


def run(scopes: Mapping[str, str], functions: Mapping[str, str | None], steps: int = STEPS) -> Samples:
    """Ops by their scope, and functions by what calls them."""
    made = rank_samples({name: OPS[name] for name in scopes}, steps=steps)
    ops = made.ops.with_columns(scope=pl.col("name").replace_strict(scopes))
    rows = [
        {"recording": 0, "rank": 0, "step": step, "name": name, "inside": inside, "ns": 20_000, "calls": 1}
        for step in range(steps)
        for name, inside in functions.items()
    ]
    functions_in = conform_table("functions", pl.DataFrame(rows)) if rows else made.functions
    return replace(made, ops=ops, functions=functions_in)


def ground(a: Samples, b: Samples) -> Ground:
    return Ground(a, b, Speeds())


def titles(a: Samples, b: Samples) -> list[str]:
    on = ground(a, b)
    changes = CallChanges(
        scopes=find_one_sided_scopes(on, "device", ()), functions=find_one_sided_functions(on)
    )
    return [line.title for line in explain_call_counts(changes, ())]


BASE = {"train.py: step": None, "nn.py: forward": "train.py: step"}


def test_a_new_scope_is_told_once_by_its_outermost_name() -> None:
    noise = "jit(step)/block/jit(_bernoulli)"
    more = {**PLAIN, "xor": noise, "slice": f"{noise}/jit(_uniform)"}
    on = ground(run(PLAIN, BASE), run(more, BASE))
    (row,) = find_one_sided_scopes(on, "device", ())
    assert (row.name, row.a, row.b, row.note) == (noise, 0, 2, "slice, xor")
    assert titles(on.a, on.b) == [f"only B has {noise}"]
    assert titles(on.b, on.a) == [f"only A has {noise}"]


def test_modules_that_only_have_another_number_are_not_new() -> None:
    a = {"mm": "Gpt_0/Layer_1/Linear_7", "add": "Gpt_0/Layer_1/Linear_8", "tanh": "Gpt_0"}
    b = {**a, "add": "Gpt_0/Layer_1/Linear_9", "xor": "Gpt_0/Dropout_0"}
    assert titles(run(a, BASE), run(b, BASE)) == ["only B has Gpt/Dropout"]


def test_ops_that_are_recorded_now_and_then_make_no_scope() -> None:
    on = ground(run(PLAIN, BASE), run({**PLAIN, "xor": "jit(step)/new"}, BASE))
    assert find_one_sided_scopes(on, "device", {"xor"}) == []


def test_a_new_function_is_told_without_what_it_calls() -> None:
    more = {**BASE, "$npz.py savez": "train.py: step", "$zip.py write": "$npz.py savez"}
    assert titles(run(PLAIN, BASE), run(PLAIN, more)) == [
        "Python function savez (npz.py) is called once per step, only in B"
    ]


def test_other_code_is_not_all_told_as_new() -> None:
    other = {f"other.py: f{number}": None for number in range(5)}
    assert titles(run(PLAIN, BASE), run(PLAIN, other)) == []
    assert titles(run(PLAIN, {}), run(PLAIN, BASE)) == []


def test_two_steps_say_nothing_for_sure() -> None:
    more = {**BASE, "save": None}
    assert titles(run(PLAIN, BASE, 2), run(PLAIN, more, 2)) == []


def test_what_is_not_in_every_step_may_be_chance() -> None:
    now_and_then = run(PLAIN, {**BASE, "collect": None})
    rare = now_and_then.functions.filter((pl.col("name") != "collect") | (pl.col("step") == 1))
    assert titles(run(PLAIN, BASE), replace(now_and_then, functions=rare)) == []


def test_a_wait_that_takes_no_time_is_told_by_its_calls() -> None:
    row = Row(name="cudaStreamSynchronize", a=None, b=5.0, difference=5.0, a_calls=0, b_calls=1)
    (line,) = explain_call_counts(CallChanges(waits=[row]), ())
    assert (line.kind, line.unit, line.difference) == ("sync", "calls", 1)
    assert line.title == "cudaStreamSynchronize (waits for the device) is called once per step, only in B"


def test_a_function_that_moved_to_another_line_is_the_same() -> None:
    a = [("train.py(12): step", "python"), ("$train.py:40 <genexpr>", "python")]
    b = [("train.py(14): step", "python"), ("$train.py:43 <genexpr>", "python")]
    assert [(pair.a, pair.b) for pair in match(a, b, NAMES)] == [((a[0],), (b[0],)), ((a[1],), (b[1],))]
