"""`stepscope check`: exact exit codes and messages where budgets are kept, broken, noisy, unknown and wrong."""

from __future__ import annotations

import json
import re
import shutil
from pathlib import Path

import pytest

from tests.cli.inside import stepscope, succeeds
from tests.cli.run import FIXTURES

MENDED, SLOW = (FIXTURES / "diagnosis" / f"torch_item.{name}.pt.trace.json.gz" for name in ("mended", "slow"))


@pytest.fixture
def budget(tmp_path: Path) -> Path:
    return tmp_path / "budgets.toml"


def test_kept(budget: Path) -> None:
    budget.write_text(
        'step_time = "20 ms"\nfindings = ["input-bound"]\n[parts]\nsync = "3 ms"\ncompute = "99 %"\n'
    )
    ended = stepscope("check", SLOW, "--budget", budget)
    assert ended.returncode == 0
    assert ended.stdout.splitlines()[1].split()[:6] == ["step_time", "20.0", "ms", "14.7", "ms", "916"]
    assert ended.stdout.endswith("\nPASSED: 4 of 4 limits met.\n")


def test_broken(budget: Path) -> None:
    budget.write_text(
        f'step_time = "10 ms"\npeak_memory = "24 GB"\nfindings = ["device-sync"]\n[parts]\nsync = "1 ms"\n'
        f'[baseline]\npath = "{MENDED}"\nstep_time = "5 %"\nfindings = true\n[baseline.parts]\ncompute = "5 %"\n'
    )
    ended = stepscope("check", SLOW, "--budget", budget)
    assert ended.returncode == 3
    lines = [re.sub(r" {2,}", " | ", line.strip()) for line in ended.stdout.splitlines()]
    assert lines[1:] == [
        "step_time | 10.0 ms | 14.7 ms | 916 µs | over | over by 4.72 ms",
        "parts.sync | 1.00 ms | 2.08 ms | 226 µs | over | over by 1.08 ms",
        "peak_memory | 24 GB | – | unknown | Memory was not recorded.",
        "findings.device-sync | 0 | 1 | over | The host waits for the device inside the step, worth 2.90 ms a step",
        "baseline.step_time | +476 µs | +5.19 ms | 2.05 ms | over | over by 4.71 ms",
        "baseline.parts.compute | +453 µs | −131 µs | 319 µs | ok",
        "baseline.findings | 0 | 1 | over | The host waits for the device inside the step (device-sync)",
        "",
        "FAILED: 6 of 7 limits not met.",
    ]


def test_noisy(budget: Path) -> None:
    """Above the limit by less than the steps differ among themselves: told, and failed only if asked to."""
    budget.write_text('step_time = "14.5 ms"\n')
    ended = stepscope("check", SLOW, "--budget", budget)
    assert ended.returncode == 0
    assert "noisy    over by 219 µs, within noise" in ended.stdout
    assert "! Inconclusive: step_time. Record more steps" in ended.stdout
    assert ended.stdout.endswith("PASSED: 1 limit exceeded within noise (inconclusive).\n")
    strict = stepscope("check", SLOW, "--budget", budget, "--strict", "--format", "json")
    assert strict.returncode == 3
    found = json.loads(strict.stdout)
    assert (found["schema"], found["passed"], found["checks"][0]["verdict"]) == (
        "stepscope.gate/1",
        False,
        "noisy",
    )
    assert strict.stderr == "FAILED: 1 of 1 limits not met.\n"


def test_baseline_by_option(budget: Path, tmp_path: Path) -> None:
    budget.write_text('step_time = "1 s"\n')
    ended = stepscope(
        "check", SLOW, "--budget", budget, "--baseline", MENDED, "--format", "md", "-o", tmp_path / "gate.md"
    )
    assert ended.returncode == 3
    assert ended.stderr == "FAILED: 1 of 2 limits not met.\n"
    assert (
        "| `baseline.step_time` | +476 µs | +5.19 ms | 2.05 ms | ❌ over | over by 4.71 ms |"
        in (tmp_path / "gate.md").read_text()
    )


def test_several_recordings_as_a_baseline(budget: Path) -> None:
    """In the file, relative to it, or by the option: the noise is what they differ by."""
    first, second, third = (
        FIXTURES / "diff" / f"small.none.{number}.pt.trace.json.gz" for number in (0, 1, 5)
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


def test_a_size_is_told_in_the_unit_it_was_written_in(budget: Path) -> None:
    budget.write_text('peak_memory = "0.001 GB"\n')
    ended = stepscope(
        "check", FIXTURES / "diagnosis" / "torch_pressure.slow.pt.trace.json.gz", "--budget", budget
    )
    assert ended.returncode == 3
    assert re.search(r"peak_memory +0\.001 GB +[\d.,]+ GB +over +over by [\d.,]+ GB\n", ended.stdout)


def test_what_is_missing_is_said(budget: Path, tmp_path: Path) -> None:
    """An empty rank and a cut file: the rest is judged, and the loss is told."""
    ranks = tmp_path / "ranks"
    shutil.copytree(FIXTURES / "capture_gpu" / "torch_ddp", ranks)
    sorted(ranks.glob("*.json.gz"))[1].write_bytes(b"")
    cut = tmp_path / "cut.pt.trace.json.gz"
    cut.write_bytes(MENDED.read_bytes()[:60_000])
    budget.write_text('step_time = "10 s"\n')
    for path, says in (
        (ranks, "Not all ranks of the job were loaded. 1 of 2 ranks; missing: 1."),
        (cut, "The file is cut short."),
    ):
        ended = stepscope("check", path, "--budget", budget)
        assert ended.returncode == 0
        assert says in " ".join(ended.stdout.split())


def test_a_baseline_of_another_framework_is_said_to_be_one(budget: Path) -> None:
    jax = FIXTURES / "diagnosis" / "jax_sync.mended.xplane.pb.gz"
    budget.write_text(f'[baseline]\npath = "{jax}"\nstep_time = "500 %"\n')
    ended = stepscope("check", MENDED, "--budget", budget)
    assert ended.returncode == 0
    assert ended.stdout.count("A is JAX and B is PyTorch: their ops and kernels have other names") == 1


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('step_tim = "1 ms"', "unknown key step_tim.\nDid you mean step_time?"),
        ("step_time = ", "is not valid TOML"),
        ('[baseline]\nstep_time = "5 %"', "The budget has baseline limits, but no baseline."),
        ('[baseline]\npath = "nowhere"\nstep_time = "5 %"', "nowhere"),
        ('findings = ["device-snyc"]', "unknown finding device-snyc.\nDid you mean device-sync?"),
        ('[parts]\nsnyc = "1 ms"', "unknown key snyc.\nDid you mean sync?"),
        (
            'step_time = "5 GB"',
            "invalid amount '5 GB'.\nWrite a number and its unit, such as \"120 ms\".",
        ),
        ("", "contains no limits."),
    ],
)
def test_wrong_budgets(budget: Path, text: str, says: str) -> None:
    budget.write_text(text)
    ended = stepscope("check", MENDED, "--budget", budget)
    assert ended.returncode == 1
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr


def test_no_budget(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    ended = stepscope("check", MENDED)
    assert ended.returncode == 1
    assert "No such file: budgets.toml" in ended.stderr


def test_help() -> None:
    assert "exit code is 3" in succeeds("check", "--help").replace("\n", " ")
