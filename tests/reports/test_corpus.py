"""What is known to be true of real profiles, in their reports."""

from __future__ import annotations

from pathlib import Path

import pytest

from stepscope.reports.build import report
from stepscope.reports.render.brief import as_brief
from stepscope.reports.render.html import as_html
from stepscope.reports.render.markdown import as_markdown
from stepscope.reports.render.terminal import as_text
from tests.corpus.recordings import some
from tests.reports.corpus import CORPUS, PROFILES, of
from tests.reports.promises import broken

pytestmark = [
    pytest.mark.corpus,
    pytest.mark.skipif(CORPUS is None, reason="STEPSCOPE_CORPUS is not set"),
]


def share(path: str, part: str) -> float:
    """The share of one part of the account."""
    return sum(row.share for row in of(path).breakdown if row.part == part)


@pytest.mark.parametrize("path", PROFILES)
def test_the_account_closes(path: str) -> None:
    found = of(path)
    assert found.breakdown
    assert [row for row in found.steps.rows if sum(row.parts.values()) != row.duration_ns] == []
    own = {int(rank): device for rank, device in found.steps.critical_devices.items()}
    rows = [row for row in found.steps.rows if own[row.rank] == row.device]
    if rows:
        assert sum(row.ns for row in found.breakdown) == sum(row.duration_ns for row in rows)
    assert all(0 <= row.named_share <= 1 for row in found.breakdown)


@pytest.mark.parametrize("path", PROFILES)
def test_no_report_contradicts_itself(path: str) -> None:
    assert not broken(of(path))


@pytest.mark.parametrize("path", PROFILES)
def test_every_rendering(path: str) -> None:
    found = of(path)
    assert all(len(line) <= 110 for line in as_text(found, width=110).splitlines())
    assert as_markdown(found).startswith("# ")
    assert len(as_html(found)) < 3_000_000


@pytest.mark.parametrize("path", some(PROFILES))
def test_one_screen_needs_no_more_than_its_own_sections(path: str) -> None:
    assert as_brief(report(Path(CORPUS or ".") / path, brief=True)) == as_brief(of(path))


@pytest.mark.parametrize(
    ("path", "steps"),
    [
        ("h200/resnet_input_bound.pt.trace.json.gz", 4),
        ("h200/dqn_launch_bound.pt.trace.json.gz", 20),
        ("h200/jax_gpu", 8),
        ("tensorflow/custom_loop", 10),
    ],
)
def test_steps_are_counted_once(path: str, steps: int) -> None:
    assert of(path).steps.count == steps


def test_input() -> None:
    assert share("h200/resnet_input_bound.pt.trace.json.gz", "input") == pytest.approx(0.79, abs=0.01)
    assert share("public/kineto_resnet50_workers0.pt.trace.json.gz", "input") == pytest.approx(0.34, abs=0.01)
    assert share("public/kineto_resnet50_workers4.pt.trace.json.gz", "input") < 0.015
    assert of("h200/resnet_input_bound.pt.trace.json.gz").findings[0].code == "input-bound"


def test_what_kept_jax_waiting() -> None:
    found = of("h200/jax_gpu")
    assert share("h200/jax_gpu", "unexplained") < 0.05
    largest = max(found.breakdown, key=lambda row: row.ns)
    assert largest.names[0].name == "make_batch"
    assert found.precision.shares["bf16"] > 0.5
    assert (found.precision.tensor_core_share or 0) > 0.5


def test_communication() -> None:
    assert of("public/a100x2_nccl.json.gz").collectives.kernel_share == pytest.approx(0.288, abs=0.001)
    assert of("public/dlrm_8ranks").collectives.kernel_share == pytest.approx(0.846, abs=0.001)
    assert [row["rank"] for row in of("public/dlrm_8ranks").collectives.ranks] == list(range(8))


def test_a_rank_is_late() -> None:
    found = of("h200/ddp_rank*.pt.trace.json.gz")
    codes = [finding.code for finding in found.findings]
    assert codes.index("straggler") < codes.index("exposed-collective"), "the cause before the symptom"
    assert found.collectives.straggler is not None and found.collectives.straggler.rank == 1
    late = of("public/dlrm_8ranks").collectives.straggler
    assert late is not None and (late.rank, late.last, late.matched) == (7, 5, 8)


def test_phases_are_kept_apart() -> None:
    phases = {row.name: row for row in of("h200/dqn_launch_bound.pt.trace.json.gz").phases}
    assert list(phases) == ["train", "collect"]
    assert sum(row.share for row in phases.values()) == pytest.approx(0.993, abs=0.01)
    assert all(max(row.parts, key=lambda part: row.parts[part]) == "dispatch" for row in phases.values())
    sync = {name: row.parts["sync"] / row.total_ns for name, row in phases.items()}
    assert sync["collect"] > 0.03 > sync["train"]


def test_ops_of_a_compiled_program() -> None:
    found = of("h200/jax_gpu")
    first = found.ops.rows[0]
    assert (first.name, first.placement, first.execution) == ("dot_general", "gpu:0", "graph")
    assert first.share == pytest.approx(0.739, abs=0.001)
    kernels = sum(row.total_ns for row in found.kernels.rows)
    assert sum(row.device_self_ns for row in found.ops.rows) >= kernels
    assert [row for row in found.ops.rows if row.name == "custom-call"] == []
    assert found.device.mfu == pytest.approx(0.014, abs=0.001)


def test_a_capture_without_its_device_is_called_that() -> None:
    first = of("h200/jax_cupti_conflict").problems[0]
    assert (first.code, first.severity) == ("no-device-events", "error")
