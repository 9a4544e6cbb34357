"""Findings about the code of programs of JAX that the CPU itself runs."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.context import RankContext
from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.finding import Finding
from stepscope.analysis.options import Options
from stepscope.trace.trace import Trace
from tests.analysis.findings.programs.host_programs import handed_over, host_program_trace, run, run_inside
from tests.builders.hlo import program

INSERT = """
main:
  buffer = f32[10000,64] parameter(0) op_name=buffer['obs']
  rows = f32[16,64] parameter(1) op_name=rows
  at = s32[] parameter(2) op_name=cursor
  copy.1 = f32[10000,64] copy(buffer)
  write.1 = f32[10000,64] dynamic-update-slice(copy.1, rows, at, at)
"""
LOOKUP = """
making:
  given = s32[640] parameter(0)
  wide = s32[640,6000] broadcast(given) dims=0
  positions = s32[640,6000] iota()
  equal = pred[640,6000] compare(wide, positions) direction=EQ
  ones = f32[640,6000] convert(equal)
main:
  ids = s32[640] parameter(0)
  table = f32[6000,64] parameter(1)
  one_hot = f32[640,6000] fusion(ids) calls=making
  product = f32[640,64] dot(one_hot, table)
  tail = f32[640,64] tanh(product)
"""
STEP = """
main:
  x = f32[8,8] parameter(0)
  dot.1 = f32[8,8] dot(x, x)
  dot.2 = f32[8,8] dot(dot.1, x)
  dot.3 = f32[8,8] dot(dot.2, x)
  dot.4 = f32[8,8] dot(dot.3, x)
"""
ADD = """
main:
  x = f32[8,8] parameter(0)
  add.1 = f32[8,8] add(x, x)
"""


def found(trace: Trace) -> dict[str, Finding]:
    context = RankContext(0, trace, Options())
    return {one.code: one for one in apply_rules(context.case)}


def inserting(code: str = INSERT) -> Trace:
    """Of 1000 µs, 600 are a run of `insert` of which 150 were recorded, and 300 a run of `learn`."""
    rows = [
        *handed_over(10, "insert"),
        *handed_over(30, "learn"),
        *run(60, 600, "200  140  jit_insert/copy.1  op", "345  10  jit_insert/write.1  op"),
        *run(660, 300, "670  280  jit_learn/dot.1  op"),
    ]
    return host_program_trace(1000, *rows, jit_insert=program(code), jit_learn=program(STEP))


def test_all_of_a_program_that_does_little_but_copy_what_is_not_donated() -> None:
    mine = found(inserting())["device-copies"]
    assert mine.share == pytest.approx(0.6, abs=0.02)
    assert mine.evidence["arguments"] == ["buffer['obs']"]
    assert mine.speedup.low < 1 / 0.4 < mine.speedup.high


def test_copies_for_another_reason_are_no_finding() -> None:
    assert "device-copies" not in found(
        inserting(INSERT.replace("dynamic-update-slice(copy.1,", "add(copy.1,"))
    )


def looking_up(direction: str = "EQ") -> Trace:
    """Of 1000 µs the one-hot matrix takes 300 and its product 450; the program runs inside its call."""
    ops = (
        "20  300  jit_lookup/one_hot  op",
        "320  450  jit_lookup/product  op",
        "770  180  jit_lookup/tail  op",
    )
    code = program(LOOKUP.replace("EQ", direction))
    return host_program_trace(1000, *run_inside(10, 950, "lookup", *ops), jit_lookup=code)


def test_a_product_with_a_one_hot_matrix_and_what_makes_it() -> None:
    mine = found(looking_up())["one-hot-product"]
    assert mine.share == pytest.approx(0.75, abs=0.02)
    assert mine.evidence["classes"] == 6000
    assert mine.speedup.low < 1 / (1 - 0.75 * 0.95) < mine.speedup.high


def test_a_product_with_a_mask_by_lengths_looks_nothing_up() -> None:
    assert "one-hot-product" not in found(looking_up("LT"))


def eager() -> Trace:
    """Of 1000 µs a compiled function runs for 300; the rest are ten calls of five ops, which hardly compute, but for 30 of its call."""
    rows = [*handed_over(10, "grad"), *run(30, 300, "40  280  jit_grad/dot.1  op")]
    for place, name in enumerate(("add", "mul", "sub", "sqrt", "div")):
        at = 340 + 130 * place
        for half in (at, at + 65):
            rows += run_inside(half, 60, name, before=50)
    codes = {f"jit_{name}": program(ADD) for name in ("add", "mul", "sub", "sqrt", "div")}
    return host_program_trace(1000, *rows, jit_grad=program(STEP), **codes)


def test_of_a_step_op_by_op_the_compiled_functions_stay() -> None:
    """670 µs of calls go."""
    mine = found(eager())["eager-execution"]
    assert mine.speedup.mid == pytest.approx(1 / 0.33, rel=0.02)


UPDATE = """
main:
  buffer = f32[100000,24] parameter(0)
  row = f32[1,24] parameter(1)
  at = s32[] parameter(2)
  copy.1 = f32[100000,24] copy(buffer)
  first.1 = s32[] add(at, at)
  second.1 = s32[] add(first.1, at)
  third.1 = s32[] add(second.1, at)
  write.1 = f32[100000,24] dynamic-update-slice(copy.1, row, third.1, third.1) op_name=jit(scatter)/scatter
"""


def storing(code: str) -> float:
    """Of 1000 µs, ten calls of one op that updates a buffer take 800, 700 of them in its runs; how much faster the step is without."""
    rows = [
        row
        for at in range(10, 910, 90)
        for row in run_inside(at, 80, "scatter", f"{at + 15}  30  jit_scatter/write.1  op", before=10)
    ]
    mine = found(host_program_trace(1000, *rows, jit_scatter=program(code)))["eager-execution"]
    return mine.speedup.mid


def test_an_op_that_updates_a_buffer_by_itself_copies_it_which_a_program_does_not() -> None:
    """A compiled function of the user's that does so is not called ten times any more, but still copies."""
    assert storing(UPDATE) > 5
    assert storing(UPDATE.replace("scatter)/scatter", "store)/scatter")) < 2


@pytest.mark.parametrize("opcode", ["dot", "sort", "while"])
def test_an_op_that_computes_more_than_it_reads_is_not_as_fast_as_its_arrays(opcode: str) -> None:
    """A quarter to a third of it is left, as of any op whose time is not known better."""
    code = UPDATE.replace("dynamic-update-slice(copy.1, row, third.1, third.1)", f"{opcode}(copy.1, row)")
    assert storing(code) < storing(UPDATE) - 1


def compiling(first: str) -> Trace:
    """Of 1000 µs 600 go into a compiler and 170 into the rest of the call and pauses after it; the program runs for 200."""
    rows = [
        "main  10  700  PjitFunction(update)  span",
        f"main  50  600  {first}  span",
        "main  702  6  CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice  span",
        *run(720, 200, "730  180  jit_update/dot.1  op"),
    ]
    return host_program_trace(1000, *rows, jit_update=program(STEP))


def test_a_program_that_is_compiled_in_each_step_also_runs_for_the_first_time() -> None:
    """The compiler's time goes, with that of the call around it, and of 200 µs between a fifth and nine tenths are left."""
    mine = found(compiling("backend_compile"))["recompilation"]
    assert mine.share == pytest.approx(0.77, abs=0.01)
    assert mine.speedup.mid == pytest.approx(1 / (0.23 - 0.2 * (1 - 0.18**0.5)), rel=0.03)


def test_without_a_compiler_nothing_runs_for_the_first_time() -> None:
    assert "recompilation" not in found(compiling("ParseArguments"))


TRAINED = """
main:
  x = f64[512,192] parameter(0)
  w = f64[192,192] parameter(1)
  dot.1 = f64[512,192] dot(x, w) op_name=jit(update)/jvp()/dot_general
  tanh.1 = f64[512,192] tanh(dot.1) op_name=jit(update)/jvp()/tanh
  dot.2 = f64[192,192] dot(x, tanh.1) op_name=jit(update)/transpose(jvp())/dot_general
"""


def training(code: str = TRAINED) -> Trace:
    """Of 1000 µs the program runs for 900, of which its products and layers were recorded for 800."""
    ops = (
        "40  300  jit_update/dot.1  op",
        "340  200  jit_update/tanh.1  op",
        "540  300  jit_update/dot.2  op",
    )
    return host_program_trace(1000, *handed_over(10, "update"), *run(30, 900, *ops), jit_update=program(code))


def test_training_in_float64() -> None:
    mine = found(training())["double-precision"]
    assert mine.share == pytest.approx(0.9, abs=0.02)
    assert mine.speedup.low < 1 / (1 - 0.9 * 0.5) < mine.speedup.high


@pytest.mark.parametrize(("before", "after"), [("f64", "f32"), ("transpose(jvp())", "main")])
def test_float32_is_none_and_what_does_not_train_may_need_float64(before: str, after: str) -> None:
    assert "double-precision" not in found(training(TRAINED.replace(before, after).replace("jvp()", "main")))


PASS = """
main:
  w = f32[640,960] parameter(0) op_name=params['w']
  v = f32[960,320] parameter(1) op_name=params['v']
  u = f32[320,100] parameter(2) op_name=params['u']
  x = f32[512,640] parameter(3) op_name=x
  first = f32[512,960] dot(x, w) contracts=1,0
  second = f32[512,320] dot(first, v) contracts=1,0
  logits = f32[512,100] dot(second, u) contracts=1,0
  {rest}
"""
LOSS = "loss = f32[] reduce(logits, x)"
GRADIENT = """du = f32[320,100] dot(second, logits) contracts=0,0 op_name=jit(loss)/transpose(jvp())/dot_general
  d2 = f32[512,320] dot(logits, u) contracts=1,1
  dv = f32[960,320] dot(first, d2) contracts=0,0
  d1 = f32[512,960] dot(d2, v) contracts=1,1
  dw = f32[640,960] dot(x, d1) contracts=0,0
  made = (f32[640,960], f32[960,320], f32[320,100]) tuple(dw, dv, du)"""
PICK = """
main:
  data = f32[4096,640] parameter(0) op_name=data
  at = s32[] parameter(1) op_name=at
  picked = f32[512,640] dynamic-slice(data, at, at)
"""


def _pick(at: int) -> list[str]:
    return run_inside(at, 8, "pick", f"{at + 2}  4  jit_pick/picked  op")


def logging(picks: int) -> Trace:
    """Of 1000 µs a metric takes 200, the loss 200 and its gradient, which is compiled under the same name, 500."""
    rows = [row for place in range(picks) for row in _pick(5 + 10 * place)]
    rows += [*handed_over(40, "metric"), *handed_over(52, "loss"), *handed_over(64, "loss")]
    rows += run(80, 200, "90  150  jit_metric/first  op", "240  40  jit_metric/loss  op")
    rows += run(280, 200, "290  190  jit_loss/first  op")
    rows += run(480, 500, "490  190  jit_loss/first  op", "690  280  jit_loss/dw  op")
    forward, gradient = (program(PASS.format(rest=rest)) for rest in (LOSS, GRADIENT))
    codes = {"jit_metric": forward, "jit_loss": forward, "jit_pick": program(PICK)}
    trace = host_program_trace(1000, *rows, **codes)
    number = trace.modules["program_id"].dtype
    own = trace.modules.filter(pl.col("name") == "jit_loss").with_columns(
        program_id=pl.lit(77, number), hlo=pl.lit(gradient)
    )
    # The events say which of the two they are of.
    of_loss = trace.ops.filter(pl.col("scope").cast(pl.String).str.starts_with("jit_loss"))["event"]
    is_second = trace.events["start_ns"].gather(of_loss) % 1_000_000 >= 480_000
    loss = trace.modules.filter(pl.col("name") == "jit_loss")["program_id"][0]
    numbers = pl.DataFrame({"event": of_loss, "second": is_second}).select(
        "event", key=pl.lit("program_id"), value=pl.when("second").then(77).otherwise(loss)
    )
    tables = {**trace.tables, "modules": pl.concat([trace.modules, own])}
    return Trace(tables, {**trace.cold, "stats_int": numbers})


@pytest.mark.parametrize("picks", [0, 1])
def test_a_pass_for_each_metric_and_one_for_the_gradient(picks: int) -> None:
    """400 of 1000 µs go; of these, what follows the last product may stay."""
    mine = found(logging(picks))["repeated-forward"]
    assert mine.share == pytest.approx(0.4, abs=0.03)
    assert mine.speedup.low < 1 / 0.6 < mine.speedup.high
    assert "metric and loss" in mine.detail or "loss and metric" in mine.detail


def test_a_metric_of_another_batch_is_no_repetition() -> None:
    assert "repeated-forward" not in found(logging(3))
