"""`stepscope check`: exact exit codes and messages where budgets are met, exceeded, inconclusive, unknown and invalid."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from benchmarks.recordings.archive import open_recording
from tests.builders.files import write_ops
from tests.cli.inside import stepscope, succeeds
from tests.cli.run import FIXTURES

MENDED, SLOW = (FIXTURES / "diagnosis" / f"torch_item.{name}.pt.trace.json.gz" for name in ("mended", "slow"))


@pytest.fixture
def budget(tmp_path: Path) -> Path:
    return tmp_path / "budgets.toml"


@pytest.mark.usefixtures("sides_once")
def test_kept(budget: Path) -> None:
    budget.write_text(
        'step_time = "20 ms"\nfindings = ["input-bound"]\n[parts]\nsync = "3 ms"\ncompute = "99 %"\n'
    )
    ended = stepscope("check", SLOW, "--budget", budget)
    assert ended.returncode == 0
    assert ended.stdout.splitlines()[1].split()[:6] == ["step_time", "20.0", "ms", "14.7", "ms", "916"]
    assert ended.stdout.endswith("\nPASSED: 4 of 4 limits met.\n")


@pytest.mark.usefixtures("sides_once")
def test_broken(budget: Path) -> None:
    budget.write_text(
        f'step_time = "10 ms"\npeak_memory = "24 GB"\nfindings = ["device-sync"]\n[parts]\nsync = "1 ms"\n'
        f'[baseline]\npath = "{MENDED}"\nstep_time = "5 %"\nfindings = true\n[baseline.parts]\ncompute = "5 %"\n'
    )
    ended = stepscope("check", SLOW, "--budget", budget)
    assert ended.returncode == 3
    lines = [re.sub(r" {2,}", " | ", line.strip()) for line in ended.stdout.splitlines()]
    assert lines[1:] == [
        "step_time | 10.0 ms | 14.7 ms | 916 µs | exceeded | 4.72 ms over the limit",
        "parts.sync | 1.00 ms | 2.08 ms | 223 µs | exceeded | 1.08 ms over the limit",
        "peak_memory | 24 GB | – | unknown | Memory was not recorded.",
        "findings.device-sync | 0 | 1 | exceeded | The host waits for the device inside the step, worth 3.49 ms per step",
        "baseline.step_time | +476 µs | +5.19 ms | 2.05 ms | exceeded | 4.71 ms over the limit",
        "baseline.parts.compute | +453 µs | −131 µs | 319 µs | met",
        "baseline.findings | 0 | 1 | exceeded | The host waits for the device inside the step (device-sync)",
        "",
        "FAILED: 5 of 7 limits exceeded, 1 unknown.",
    ]


@pytest.mark.usefixtures("sides_once")
def test_noisy(budget: Path) -> None:
    """Above the limit by less than the steps differ among themselves: inconclusive, and failed only if asked to."""
    budget.write_text('step_time = "14.5 ms"\n')
    ended = stepscope("check", SLOW, "--budget", budget)
    assert ended.returncode == 0
    assert "inconclusive  219 µs over the limit, within noise" in ended.stdout
    assert "! Inconclusive: step_time. Record more steps on an otherwise idle machine" in ended.stdout
    assert ended.stdout.endswith("PASSED: 1 of 1 limit inconclusive.\n")
    strict = stepscope("check", SLOW, "--budget", budget, "--strict", "--format", "json")
    assert strict.returncode == 3
    found = json.loads(strict.stdout)
    assert (found["schema"], found["passed"], found["checks"][0]["verdict"]) == (
        "stepscope.gate/1",
        False,
        "noisy",
    )
    assert strict.stderr == "FAILED: 1 of 1 limit inconclusive.\n"


@pytest.mark.usefixtures("sides_once")
def test_baseline_by_option(budget: Path, tmp_path: Path) -> None:
    budget.write_text('step_time = "1 s"\n')
    ended = stepscope(
        "check", SLOW, "--budget", budget, "--baseline", MENDED, "--format", "md", "-o", tmp_path / "gate.md"
    )
    assert ended.returncode == 3
    assert ended.stderr == "FAILED: 1 of 2 limits exceeded.\n"
    assert (
        "| `baseline.step_time` | +476 µs | +5.19 ms | 2.05 ms | ❌ exceeded | 4.71 ms over the limit |"
        in (tmp_path / "gate.md").read_text()
    )


@pytest.mark.usefixtures("sides_once")
def test_several_recordings_as_a_baseline(budget: Path) -> None:
    """In the file, relative to it, or by the option: the noise is what they differ by."""
    first, second, third = (
        open_recording("diff", f"small.none.{number}.pt.trace.json.gz") for number in (0, 1, 5)
    )
    (budget.parent / "main").symlink_to(first.parent)
    names = [f"main/{path.name}" for path in (first, second)]
    budget.write_text(f'[baseline]\npath = {json.dumps(names)}\nstep_time = "300 %"\n')
    by_file = stepscope("check", third, "--budget", budget, "--format", "json")
    budget.write_text('step_time = "1 s"\n[baseline]\nstep_time = "300 %"\n')
    by_option = stepscope(
        "check", third, "--budget", budget, "--baseline", first, "--baseline", second, "--format", "json"
    )
    assert (by_file.returncode, by_option.returncode) == (0, 0)
    found = [json.loads(ended.stdout)["checks"][-1] for ended in (by_file, by_option)]
    assert found[0]["value"] == found[1]["value"]
    assert found[0]["noise"] == pytest.approx(found[1]["noise"])


def test_a_size_is_shown_in_the_unit_it_was_written_in(budget: Path) -> None:
    budget.write_text('peak_memory = "0.001 GB"\n')
    ended = stepscope(
        "check", FIXTURES / "diagnosis" / "torch_pressure.slow.pt.trace.json.gz", "--budget", budget
    )
    assert ended.returncode == 3
    assert re.search(
        r"peak_memory +0\.001 GB +[\d.,]+ GB +exceeded +[\d.,]+ GB over the limit\n", ended.stdout
    )


def test_what_is_missing_is_said(budget: Path, tmp_path: Path) -> None:
    """An empty rank and a cut file: the rest is judged, and the loss is told."""
    ranks = tmp_path / "ranks"
    shutil.copytree(FIXTURES / "capture_gpu" / "torch_ddp", ranks)
    sorted(ranks.glob("*.json.gz"))[1].write_bytes(b"")
    cut = tmp_path / "cut.pt.trace.json.gz"
    cut.write_bytes(MENDED.read_bytes()[:60_000])
    budget.write_text('step_time = "10 s"\n')
    for path, says in (
        (ranks, "Some ranks of the job are missing. 1 of 2 ranks; missing: 1."),
        (cut, "The file is truncated."),
    ):
        ended = stepscope("check", path, "--budget", budget)
        assert ended.returncode == 0
        assert says in " ".join(ended.stdout.split())


@pytest.mark.usefixtures("sides_once")
def test_a_baseline_of_another_framework_is_said_to_be_one(budget: Path) -> None:
    jax = FIXTURES / "diagnosis" / "jax_input.mended.xplane.pb.gz"
    budget.write_text(f'[baseline]\npath = "{jax}"\nstep_time = "500 %"\n')
    ended = stepscope("check", MENDED, "--budget", budget)
    assert ended.returncode == 0
    assert ended.stdout.count("A is JAX and B is PyTorch: names of ops and kernels differ") == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('step_tim = "1 ms"', "unknown key step_tim.\nDid you mean step_time?"),
        ("step_time = ", "is not valid TOML"),
        ('[baseline]\nstep_time = "5 %"', "The budget has limits against a baseline, but no baseline."),
        ('[baseline]\npath = "nowhere"\nstep_time = "5 %"', "nowhere"),
        ('findings = ["device-snyc"]', "findings: unknown finding device-snyc.\nDid you mean device-sync?"),
        ('[parts]\nsnyc = "1 ms"', "parts: unknown key snyc.\nDid you mean sync?"),
        (
            'step_time = "5 GB"',
            "invalid amount '5 GB'.\nWrite a number and its unit, such as \"120 ms\".",
        ),
        ("", "sets no limits."),
        ("findings = []", "sets no limits."),
        ("[parts]", "sets no limits."),
    ],
)
def test_wrong_budgets(budget: Path, text: str, says: str) -> None:
    budget.write_text(text)
    ended = stepscope("check", MENDED, "--budget", budget)
    assert ended.returncode == 1
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.fixture
def without_steps(tmp_path: Path) -> Path:
    """Three ops that never repeat: no steps are marked, and none can be inferred."""
    return write_ops(tmp_path / "rank0.pt.trace.json", "aten::mm", "aten::relu", "aten::cat")


@pytest.mark.parametrize(
    "text",
    [
        'step_time = "1 s"',
        'step_time_p90 = "1 s"',
        'findings = ["device-sync"]',
        'peak_memory = "24 GB"',
        '[parts]\nhost_compute = "1 s"',
        '[parts]\ncompute = "99 %"',
    ],
)
def test_what_was_not_judged_does_not_pass(without_steps: Path, budget: Path, text: str) -> None:
    budget.write_text(text)
    ended = stepscope("check", without_steps, "--budget", budget)
    assert ended.returncode == 3
    assert " unknown " in ended.stdout
    assert ended.stdout.endswith("UNKNOWN: 1 of 1 limit unknown.\n")


def test_new_findings_of_a_profile_without_steps_are_unknown(without_steps: Path, budget: Path) -> None:
    budget.write_text(f'[baseline]\npath = "{without_steps.name}"\nfindings = true\n')
    ended = stepscope("check", without_steps, "--budget", budget)
    assert ended.returncode == 3
    assert "The profile has no steps." in ended.stdout


@pytest.mark.usefixtures("sides_once")
@pytest.mark.parametrize("limits", ["", "findings = false\n", "parts = {}\n"])
def test_a_baseline_without_limits_allows_five_per_cent(budget: Path, limits: str) -> None:
    """It has passed everything, with 0 of 0 limits."""
    budget.write_text(f'[baseline]\npath = "{MENDED}"\n{limits}')
    ended = stepscope("check", SLOW, "--budget", budget, "--format", "json")
    assert ended.returncode == 3
    (found,) = json.loads(ended.stdout)["checks"]
    assert (found["name"], found["verdict"]) == ("baseline.step_time", "over")


@pytest.mark.usefixtures("sides_once")
def test_findings_about_memory_want_memory(budget: Path) -> None:
    budget.write_text('findings = ["memory-growth", "device-sync"]\n')
    ended = stepscope("check", MENDED, "--budget", budget)
    assert ended.returncode == 3
    lines = [line.split() for line in ended.stdout.splitlines()[1:3]]
    assert " ".join(lines[0]) == "findings.memory-growth 0 – unknown Memory was not recorded."
    assert lines[1][-1] == "met"


def test_findings_that_could_not_be_computed(budget: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A section that fails costs the report that section, and the gate must not take it for good news."""

    def fail(*_: object) -> None:
        raise ValueError("a bug")

    monkeypatch.setattr("stepscope.reports.sections.findings.apply_rules", fail)
    budget.write_text('findings = ["device-sync"]\n')
    ended = stepscope("check", SLOW, "--budget", budget)
    assert ended.returncode == 3
    assert "The findings could not be computed." in ended.stdout


def test_no_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = stepscope("check", MENDED)
    assert ended.returncode == 1
    assert "No such file or folder: budgets.toml" in ended.stderr


def test_help() -> None:
    assert "exit code is 3" in succeeds("check", "--help").replace("\n", " ")


@pytest.mark.usefixtures("sides_once")
def test_junit(budget: Path, tmp_path: Path) -> None:
    budget.write_text('step_time = "10 ms"\n')
    target = tmp_path / "junit.xml"
    assert stepscope("check", SLOW, "--budget", budget, "--junit", target).returncode == 3
    assert '<testsuite name="stepscope" tests="1" failures="1" errors="0" skipped="0">' in target.read_text()
    again = stepscope("check", SLOW, "--budget", budget, "--junit", target)
    assert again.returncode == 1
    assert "exists" in again.stderr
