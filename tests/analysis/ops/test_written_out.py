"""Which layers are written out op by op, judged by the order of their kernels."""

from __future__ import annotations

import polars as pl
import pytest

from stepscope.analysis.ops.written_out import written_out
from stepscope.trace.schema import TABLES
from stepscope.trace.trace import Trace
from tests.analysis.compute.traces import compute_trace, computed

HEAD = "track  start  dur  name  kind  launches  shapes  dtypes"
WHOLE, ROW = "[64,4096]", "[64,1]"


def rows(formula: str) -> str:
    """One step in which each word is an op of PyTorch with one kernel; `name>inner`: an op inside another."""
    lines = [HEAD, "main  0  1000  ProfilerStep#0  annotation  -  -  -"]
    for place, word in enumerate(formula.split()):
        at, (outer, _, inner) = 20 * place, word.partition(">")
        kernel = f"vectorized_elementwise_kernel<{place}>"
        for depth, name in enumerate(each for each in (outer, inner) if each):
            name = name if "::" in name else f"aten::{name}"
            lines.append(
                f"main  {at + 1 + depth}  {10 - 2 * depth}  {name}  op  -  [{WHOLE},[]]  float,float"
            )
        lines += [
            f"main  {at + 4}  2  cudaLaunchKernel  runtime  {kernel}  -  -",
            f"stream 7  {at + 20}  20  {kernel}  kernel  -  -  -",
        ]
    return "\n".join(lines)


def layers(formula: str) -> dict[str, int]:
    """The number of kernels of each layer that is found."""
    text = rows(formula)
    found = written_out(compute_trace(text), computed(text).kernels)
    return dict(found.group_by("layer").len().iter_rows())


CAST = "to>copy_"


@pytest.mark.parametrize(
    ("layer", "formula", "count"),
    [
        ("RMS norm", f"add {CAST} pow mean add rsqrt mul {CAST} mul", 8),
        ("RMS norm", "mul mean add sqrt div mul", 6),
        ("layer norm", "mean sub pow mean sub add sqrt div mul add", 10),
        ("layer norm", "mean var sub add rsqrt mul mul add", 8),
        ("layer norm", "mean std sub mul add div add", 6),
        ("layer norm", "var_mean sub add sqrt div", 5),
        ("GELU", "mul pow mul add mul tanh add mul", 8),
        ("GELU", "mul mul mul mul add mul tanh add mul", 9),
        ("GELU", "mul div erf add mul", 5),
        ("SiLU", "neg exp add div", 4),
        ("mish", "exp add log tanh mul", 5),
        ("softmax", "amax sub exp sum div", 5),
        ("softmax", "amax sub exp sum log sub", 6),
    ],
)
def test_a_layer_is_known_by_the_order_of_its_ops(layer: str, formula: str, count: int) -> None:
    assert layers(formula) == {layer: count}


@pytest.mark.parametrize("formula", ["mul neg cat mul add", "mul mul sub mul mul add stack>cat"])
def test_rotary_embeddings_count_beside_what_could_be_one_op(formula: str) -> None:
    """PyTorch has no op for them: alone, they are no mistake."""
    assert layers(formula) == {}
    assert layers(f"{formula} mul mean add sqrt div mul") == {
        "rotary embedding": len(formula.split()),
        "RMS norm": 6,
    }


@pytest.mark.parametrize(
    "formula",
    [
        "native_layer_norm gelu native_dropout add native_layer_norm",
        "add mul add gelu mul add",  # scale and shift, residual sums
        "sub pow mean",  # a squared error
        "exp mul add",  # a sample of a VAE
        "pow add sub exp sub sum mul",  # and its divergence
        "sigmoid mul",  # a gate
        "tanh mul add",
        "sub abs mean",
        "mul add sqrt add div",  # an optimizer of the job's own
        "linalg_vector_norm clamp_min div",
        "rms_norm>pow rms_norm>mean rms_norm>add rms_norm>rsqrt rms_norm>mul rms_norm>mul",
        "pow mean native_dropout add rsqrt mul",
    ],
)
def test_other_arithmetic_is_no_layer(formula: str) -> None:
    assert layers(formula) == {}


def test_formulas_in_a_row_are_counted_one_by_one() -> None:
    text = rows("mul neg cat mul add mul neg cat mul add pow mean add rsqrt mul mul")
    found = written_out(compute_trace(text), computed(text).kernels)
    counted = found.group_by("formula", "layer").len().sort("formula")
    assert counted.rows() == [(0, "rotary embedding", 5), (1, "rotary embedding", 5), (2, "RMS norm", 6)]


def test_what_autograd_computes_for_a_formula_goes_with_it() -> None:
    """Its gradients, and not those of the sum before it."""
    node = "autograd::engine::evaluate_function:_"
    text = rows(
        f"add mul div erf add mul {node}MulBackward0>mul {node}AddBackward0>add {node}AddBackward0>sum"
    ).replace(":_", ": ")
    trace = compute_trace(text)
    names = trace.events.select("id", name=pl.col("name").cast(pl.String), kind="kind")
    ops = names.filter(pl.col("kind") == "op")["id"].to_list()
    first, last_add, last_mul = ops[0], ops[4], ops[5]
    linked = _linked(trace, [(last_mul, ops[6]), (last_add, ops[8]), (first, ops[10])])
    found = written_out(linked, computed(text).kernels)
    assert found.group_by("backward").len().sort("backward").rows() == [(False, 5), (True, 2)]
    assert found.filter("backward")["whole_ns"].to_list() == [40_000, 40_000]
    assert set(found["pass_ns"]) == {20_000}


def _linked(trace: Trace, pairs: list[tuple[int, int]]) -> Trace:
    links = [{"from": begin, "to": end, "why": "forward-backward"} for begin, end in pairs]
    tables = {**trace.tables, "links": pl.concat([trace.links, pl.DataFrame(links, schema=TABLES["links"])])}
    return Trace.over(tables, trace.cold)
