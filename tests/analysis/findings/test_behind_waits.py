"""Work of the host that only a wait keeps from running beside the device."""

from __future__ import annotations

from stepscope.analysis.findings.finding import Finding
from tests.builders.cases import findings_of, gemm, steps


def _findings(python: int, device: int) -> list[Finding]:
    """Of steps that prepare a batch for so long, launch its kernel, and read the loss a little after it is done."""
    wait = f"main  {python + 12}  {device + 40}  cudaStreamSynchronize  runtime  -"
    return findings_of(
        steps(f"main  0  {python}  train.py(3): batch  python  -", *gemm(python, device, python + 10), wait)
    )


def test_the_wait_comes_before_the_work_that_it_would_hide() -> None:
    first, second = _findings(520, 400)
    assert (first.code, second.code) == ("device-sync", "host-python")
    assert first.speedup.mid > 1.7
    assert "see device-sync" in second.detail


def test_work_that_no_device_could_hide_comes_first() -> None:
    first, second = _findings(690, 240)
    assert (first.code, second.code) == ("host-python", "device-sync")
    assert second.speedup.mid > 1.2
    assert "see device-sync" not in first.detail


def test_python_that_follows_no_wait_keeps_its_rank() -> None:
    python = "main  0  600  train.py(3): batch  python  -"
    (found,) = findings_of(steps(python, *gemm(600, 380)))
    assert (found.code, found.certainty) == ("host-python", 1.0)
