"""FLOPs of compiled programs against XLA's own cost analysis, recorded by benchmarks/record/xla_cost.py."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import msgspec
import pytest

from stepscope.analysis.xla.hlo_module import Module
from stepscope.analysis.xla.instruction_cost import Worker

RECORDED = Path(__file__).parent.parent / "fixtures" / "agreement" / "xla"
COSTS = [
    row for path in sorted(RECORDED.glob("*_costs.json")) for row in msgspec.json.decode(path.read_bytes())
]
CLOSE = 1e-5


def module_of(name: str) -> Module:
    """The program that was recorded under this name."""
    return Module(gzip.decompress((RECORDED / f"{name}.hlo.gz").read_bytes()))


def test_there_is_something_to_compare() -> None:
    assert {row["name"].split("_")[0] for row in COSTS} == {"cpu", "gpu"}
    assert len(COSTS) == 8


@pytest.mark.parametrize("cost", COSTS, ids=lambda cost: str(cost["name"]))
def test_same_flops(cost: dict[str, Any]) -> None:
    """XLA counts what it hands to cuBLAS and cuDNN as nothing; without that we count the same."""
    module = module_of(cost["name"])
    worker = Worker(module)
    body = {i.id: i for i in module.instructions(module.entry)}
    library = sum(worker.flops(i, body) or 0 for i in body.values() if i.opcode == "custom-call")
    total = worker.total()
    assert total is not None
    assert total - library == pytest.approx(cost["flops"] + cost["transcendentals"], rel=CLOSE)
    assert bool(library) is (cost["name"] not in ("gpu_transformer_bf16",) and cost["name"].startswith("gpu"))


def test_library_calls_count_what_the_compiler_would() -> None:
    """The same net in the same format on both: cuBLAS and cuDNN do what XLA's own kernels do on the other."""
    for job, close in (("transformer_fp32", 0.01), ("conv_fp32", 0.04)):
        cpu, gpu = (Worker(module_of(f"{kind}_{job}")).total() for kind in ("cpu", "gpu"))
        assert gpu == pytest.approx(cpu, rel=close)
