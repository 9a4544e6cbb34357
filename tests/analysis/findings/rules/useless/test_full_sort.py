"""Sorts of whole rows for a few of their entries, and those whose result is used as a whole."""

from __future__ import annotations

import pytest

from stepscope.analysis.findings.apply import apply_rules
from stepscope.analysis.findings.case import Case
from stepscope.analysis.findings.rules.useless.full_sort import RULE
from tests.analysis.compute.traces import compute_trace
from tests.analysis.findings.op_steps import Op, case
from tests.builders.cases import case_of
from tests.builders.hlo import program
from tests.builders.programs import program_trace

ROWS = "[64,50257]"
OTHER = Op("aten::exp", "[[64,1024]]", "vectorized_elementwise_kernel", 300, dtypes="float")


def argsort(length: int = 500, shape: str = ROWS) -> Op:
    inner = Op(
        "aten::sort",
        f"[{shape},[],[],[]]",
        "DeviceRadixSort",
        length,
        dtypes="float,,,",
        inputs='["","False","-1","True"]',
    )
    outer = Op("aten::sort", f"[{shape},[],[]]", inside=(inner,), dtypes="float,,", inputs='["","-1","True"]')
    return Op(
        "aten::argsort", f"[{shape},[],[]]", inside=(outer,), dtypes="float,,", inputs='["","-1","True"]'
    )


def sort(length: int = 500, shape: str = ROWS) -> Op:
    return Op(
        "aten::sort",
        f"[{shape},[],[]]",
        "DeviceRadixSort",
        length,
        dtypes="float,,",
        inputs='["","-1","True"]',
    )


def cut(start: str = "0", end: str = "10", dtype: str = "long", shape: str = ROWS) -> Op:
    return Op(
        "aten::slice",
        f"[{shape},[],[],[],[]]",
        dtypes=f"{dtype},,,,",
        inputs=f'["","1","{start}","{end}","1"]',
    )


def entry(place: str, dtype: str) -> Op:
    return Op("aten::select", f"[{ROWS},[],[]]", dtypes=f"{dtype},,", inputs=f'["","1","{place}"]')


def of(*ops: Op) -> Case:
    return case(*[[*ops, OTHER]] * 3)


def test_a_sort_whose_first_entries_are_used_is_first_and_owns_its_kernels() -> None:
    """Of 500 µs, 3 to 20 passes over 13 MB are left, and 10 to 60 µs at least; 300 µs are of another op."""
    found = apply_rules(of(argsort(), cut()))
    first = found[0]
    assert first.code == "full-sort"
    assert first.evidence["row"] == 50257
    assert first.evidence["kept"] == 10
    assert first.share == pytest.approx(0.5, abs=0.06)
    assert 1.4 < first.speedup.low < first.speedup.mid < first.speedup.high < 4
    assert "topk" in first.fix
    assert "slow-op" not in [each.code for each in found]


def test_the_negation_before_goes_with_it() -> None:
    negation = Op("aten::neg", f"[{ROWS}]", "neg_kernel", 100, dtypes="float")
    alone, both = (RULE.findings(of(*ops))[0] for ops in ([argsort(), cut()], [negation, argsort(), cut()]))
    assert both.share > alone.share + 0.05


@pytest.mark.parametrize(
    "after",
    [
        [cut("1", "11")],
        [cut("-5", "9223372036854775807", "float")],
        [cut(dtype="float"), cut()],
        [Op("aten::flip", f"[{ROWS},[]]", "flip_kernel", 5, dtypes="long,", inputs='["","[1]"]'), cut()],
        [cut(), Op("aten::gather", f"[{ROWS},[],[64,10],[]]", "gather", 5, dtypes="float,,long,")],
        [Op("aten::slice", f"[{ROWS},[],[],[],[]]", dtypes="long,,,,", inputs='["","0","0","9223372036854775807","1"]'), cut()],
        [Op("aten::select", f"[{ROWS},[],[]]", dtypes="long,,", inputs='["","0","3"]'),
         Op("aten::slice", "[[50257],[],[],[],[]]", dtypes="long,,,,", inputs='["","0","0","10","1"]')],
    ],
    ids=["second to eleventh", "last", "values and indices", "turned round", "gathered", "all rows first", "row by row"],
)  # fmt: skip
def test_spellings(after: list[Op]) -> None:
    assert [found.code for found in RULE.findings(of(sort(), *after))] == ["full-sort"]


@pytest.mark.parametrize(
    "ops",
    [
        [sort(), cut(dtype="float"), Op("aten::cumsum", f"[{ROWS},[],[]]", "scan", 20, dtypes="float,,")],
        [sort(), cut("0", "25000")],
        [sort(), entry("25128", "float")],
        [sort(), cut("1", "9223372036854775807")],
        [
            argsort(),
            Op("aten::index", "[[50257,8],[[64,50257]]]", "index", 20, dtypes="float,TensorList"),
            cut(),
        ],
        [argsort()],
        [argsort(length=40), cut()],
        [argsort(shape="[64,200]"), cut(shape="[64,200]")],
        [argsort(shape="[4096,50257]"), cut(shape="[4096,50257]")],
    ],
    ids=[
        "top p",
        "half",
        "median",
        "all but one",
        "permutation",
        "nothing",
        "little",
        "short rows",
        "as fast",
    ],
)
def test_what_stays_as_it_is(ops: list[Op]) -> None:
    assert RULE.findings(of(*ops)) == []


def test_scores_of_the_next_sort_read_nothing_of_this_one() -> None:
    """Unless nothing says that this is what is done to scores: then it may be what is done to the result."""
    scale = Op("aten::mul", f"[{ROWS},[]]", "mul", 20, dtypes="float,")
    both = RULE.findings(of(scale, sort(200), cut(), scale, sort(200), cut()))[0]
    second = RULE.findings(of(sort(200), cut(), scale, sort(200), cut()))[0]
    assert both.share > 1.5 * second.share


def test_one_entry_is_a_maximum() -> None:
    found = RULE.findings(of(sort(), entry("-1", "float")))
    assert found[0].fix.startswith("Only one entry of a row is used: max")


def host(name: str, inputs: str) -> Case:
    """Steps of 1000 µs without a device, of which a sort takes 800."""
    rows = []
    for number in range(3):
        at = 1000 * number
        rows += [
            f"main  {at}  1000  ProfilerStep#{number}  annotation  -  -  -  -",
            f'main  {at + 10}  800  aten::argsort  op  -  [{ROWS},[],[]]  float,,  ["","-1","True"]',
            f"main  {at + 820}  5  {name}  op  -  [{ROWS},[],[],[],[]]  long,,,,  {inputs}",
            f'main  {at + 830}  160  aten::mm  op  -  [[8,8],[8,8]]  float,float  ["",""]',
        ]
    head = "track  start  dur  name  kind  launches  shapes  dtypes  inputs"
    return case_of(compute_trace("\n".join([head, *rows])))


def test_on_a_cpu() -> None:
    """A top-k of 10 of 50,257 took 3 % of the sort, with other lengths up to 15 %."""
    found = RULE.findings(host("aten::slice", '["","1","0","10","1"]'))[0]
    assert found.share == pytest.approx(0.8, abs=0.02)
    assert 2 < found.speedup.low < found.speedup.mid < found.speedup.high < 7
    many = RULE.findings(host("aten::slice", '["","1","0","4000","1"]'))[0]
    assert many.speedup.mid < found.speedup.mid
    assert RULE.findings(host("aten::slice", '["","1","0","9000","1"]')) == []
    assert RULE.findings(host("aten::cumsum", '["","1",""]')) == []


CODE = """
cuts:
  order = s32[256,65536] parameter(0)
  part = s32[256,{kept}] slice(order) slices=0:256,0:{kept}
main:
  scores = f32[256,65536] parameter(0)
  negated = f32[256,65536] negate(scores)
  places = s32[256,65536] iota()
  sort.1 = (f32[256,65536],s32[256,65536]) sort(negated,places) dims=1 calls=cuts op_name={named}
  order = s32[256,65536] get-tuple-element(sort.1) index=1
  first = s32[256,{kept}] fusion(order) calls=cuts
"""


def in_program(kept: int = 10, named: str = "jit(search)/sort") -> Case:
    lines = []
    for number in range(3):
        at = 3000 * number
        lines += [
            f"main  {at}  3000  ProfilerStep#{number}  annotation  -  -",
            f"main  {at + 2}  1  cudaLaunchKernel  runtime  sort_1  -",
            f"stream 7  {at + 20}  1500  sort_1  kernel  -  jit_search",
            f"main  {at + 5}  1  cudaLaunchKernel  runtime  gemm  -",
            f"stream 7  {at + 1520}  1200  gemm  kernel  -  jit_search",
            f"main  {at + 10}  2900  cudaDeviceSynchronize  runtime  -  -",
        ]
    return case_of(program_trace(lines, jit_search=program(CODE.format(kept=kept, named=named))))


def test_a_sort_of_a_compiled_program() -> None:
    found = RULE.findings(in_program())[0]
    assert found.share == pytest.approx(0.5, abs=0.03)
    assert 1.3 < found.speedup.low < found.speedup.mid < found.speedup.high < 3.3
    assert "jax.lax.top_k" in found.fix


def test_what_xla_sorts_anyway() -> None:
    """Its kernel selects 16 entries at most; a top-k of more is a sort, and keeps its name."""
    assert RULE.findings(in_program(kept=17)) == []
    assert RULE.findings(in_program(named="jit(search)/top_k")) == []
