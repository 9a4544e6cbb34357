from stepscope.analysis.findings.rules.host.graph_break import RULE
from tests.builders.cases import case_of_text, gemm, steps

_BROKEN = [
    "main  0  900  Torch-Compiled Region: 0/0  op  -",
    *gemm(50, 100, 60),
    "main  160  300  cudaStreamSynchronize  runtime  -",
    "main  500  380  train.py(10): torch_dynamo_resume_in_forward_at_57  python  -",
    "main  510  360  Torch-Compiled Region: 1/0  op  -",
    *gemm(700, 200, 710),
]


def test_a_region_that_goes_on_in_another_is_a_break_with_its_line() -> None:
    [found] = RULE.findings(case_of_text(steps(*_BROKEN)))
    assert found.class_ == "time"
    assert [(place.function, place.line) for place in found.where] == [("forward", 57)]
    assert found.evidence["breaks_per_step"] == 1
    assert found.speedup.high > 1.2


def test_a_busy_device_makes_it_advice_and_separate_regions_are_no_break() -> None:
    busy = [
        *gemm(0, 990, 5),
        "main  10  100  Torch-Compiled Region: 0/0  op  -",
        "main  20  50  Torch-Compiled Region: 1/0  op  -",
    ]
    [found] = RULE.findings(case_of_text(steps(*busy)))
    assert (found.class_, found.speedup.mid) == ("advice", 1.0)
    apart = [
        "main  0  100  Torch-Compiled Region: 0/0  op  -",
        "main  200  100  Torch-Compiled Region: 1/0  op  -",
        *gemm(300, 600, 310),
    ]
    assert RULE.findings(case_of_text(steps(*apart))) == []
