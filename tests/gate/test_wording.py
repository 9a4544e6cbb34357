"""What is said about a limit that is exceeded, but perhaps not really."""

from __future__ import annotations

from stepscope.diffs.data.model import Diff, Row, Run, Speed
from stepscope.gate import wording
from stepscope.gate.wording import NOISY, OK

STEP = Row(name="step", a=10e6, b=12e6, difference=2e6, relative=0.2, noise=3e6)


def diff(*speeds: Speed) -> Diff:
    run = Run(path="p")
    return Diff(a=run, b=run, verdict="", significant=False, step=STEP, speed=list(speeds))


def test_within_noise_with_the_figures_of_the_comparison() -> None:
    over = wording.describe_excess(1.5e6, "ns", "")
    assert wording.describe_within_noise(over) == "1.50 ms over the limit, within noise"
    said = "1.50 ms over the limit, within noise (+20 %, noise ± 30 %)"
    assert wording.describe_within_noise(over, STEP) == said


def test_a_slower_machine_is_named() -> None:
    slow = Speed(what="host", ratio=1.5, kinds=9), Speed(what="device", ratio=1.01, kinds=9)
    assert wording.describe_machine("x", diff(*slow)) == "x, but the host was 50 % slower throughout"
    assert wording.describe_machine("x", diff()) == "x, but not at equal machine speed"


def test_what_to_record_where_limits_are_inconclusive() -> None:
    (absolute,) = wording.describe_inconclusive([("step_time", NOISY), ("peak_memory", OK)])
    assert absolute.startswith("Inconclusive: step_time. Record more steps on an otherwise idle machine")
    (growth,) = wording.describe_inconclusive([("baseline.step_time", NOISY)])
    assert "more steps, or several recordings of each side, on an otherwise idle machine" in growth
    assert list(wording.describe_inconclusive([("step_time", OK)])) == []
