"""`stepscope diff` as a user runs it."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from benchmarks.recordings.archive import open_recording
from stepscope.diffs.data.model import Diff
from tests.builders.files import write_ops
from tests.cli.inside import stepscope, succeeds
from tests.cli.run import FIXTURES

MENDED, SLOW = (FIXTURES / "diagnosis" / f"torch_item.{name}.pt.trace.json.gz" for name in ("mended", "slow"))
SAME = [open_recording("diff", f"small.none.{number}.pt.trace.json.gz") for number in (0, 1)]


@pytest.mark.usefixtures("sides_once")
def test_in_a_terminal() -> None:
    text = succeeds("diff", MENDED, SLOW, "-n", "3", "--color", "never")
    assert "The step is slower: 9.52 ms → 14.7 ms (+54 %), noise ± 2.05 ms." in text
    first = text.split("what explains it\n")[1].splitlines()[0]
    assert "1.  waiting for the device in aten::_local_scalar_dense" in first
    assert "+2.08 ms" in first
    assert "device-sync, worth" in text


@pytest.mark.usefixtures("sides_once")
def test_files_of_every_kind(tmp_path: Path) -> None:
    """One read for JSON, whose schema it keeps; the others are made from the same object."""
    for name in ("diff.json", "diff.folded"):
        succeeds("diff", MENDED, SLOW, "-o", tmp_path / name)
    found = msgspec.json.decode((tmp_path / "diff.json").read_bytes(), type=Diff)
    assert found.schema == "stepscope.diff/1"
    assert found.lines[0].kind == "sync"
    stacks = (tmp_path / "diff.folded").read_text().splitlines()
    assert all(len(line.rsplit(" ", 2)) == 3 for line in stacks)
    refused = stepscope("diff", MENDED, SLOW, "-o", tmp_path / "diff.json")
    assert refused.returncode == 1
    assert "exists" in refused.stderr


def test_schema() -> None:
    schema = json.loads(succeeds("diff", "--schema"))
    assert "Diff" in schema["$defs"]


@pytest.mark.usefixtures("sides_once")
def test_fail_on() -> None:
    ended = stepscope("diff", MENDED, SLOW, "--fail-on", "5%", "--format", "md")
    assert ended.returncode == 3
    assert ended.stdout.startswith("### 🔺 The step is slower")
    assert "baseline.step_time" in ended.stderr
    assert "exceeded  4.71 ms over the limit" in ended.stderr
    assert ended.stderr.endswith("FAILED: 1 of 1 limit exceeded.\n")


@pytest.mark.usefixtures("sides_once")
def test_several_recordings_of_a_side() -> None:
    more = open_recording("diff", "small.none.5.pt.trace.json.gz")
    text = succeeds("diff", *SAME, "--also-a", more, "-n", "1", "--color", "never")
    assert "12 steps in 2 recordings" in text.splitlines()[0]
    assert "what explains it" not in text


@pytest.mark.usefixtures("sides_once")
def test_fail_on_what_may_be_noise() -> None:
    ended = stepscope("diff", *SAME, "--fail-on", "5%", "--format", "json")
    assert ended.returncode == 0
    assert "inconclusive  4.25 ms over the limit, but the host was 75 % slower throughout" in ended.stderr
    assert ended.stderr.endswith("PASSED: 1 of 1 limit inconclusive.\n")


@pytest.mark.usefixtures("sides_once")
def test_a_recording_without_steps_is_not_held_against_steps(tmp_path: Path) -> None:
    """No figure, no yes: exit code 3."""
    target = write_ops(tmp_path / "stepless.pt.trace.json", *(f"aten::{name}" for name in "abcdefg"))
    ended = stepscope("diff", MENDED, target, "--fail-on", "5%")
    assert ended.returncode == 3
    assert "Steps cannot be compared: B has none." in ended.stdout
    assert "unknown  The profile has no steps." in ended.stderr


@pytest.mark.usefixtures("sides_once")
def test_what_was_cut_is_said(tmp_path: Path) -> None:
    cut = tmp_path / "cut.pt.trace.json.gz"
    cut.write_bytes(SLOW.read_bytes()[:60_000])
    text = " ".join(succeeds("diff", MENDED, cut, "--color", "never").split())
    assert "! B: The file is truncated." in text


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (("diff", MENDED), 2, "Missing argument 'B'"),
        (("diff", MENDED, "nowhere"), 1, "nowhere"),
        (("diff", MENDED, "nix://x/y"), 1, "nix"),
        (("diff", MENDED, SLOW, "--fail-on", "five"), 1, "invalid amount"),
        (("diff", MENDED, SLOW, "--step", "x"), 1, "is no range of steps"),
    ],
)
def test_bad_input_gives_one_message(arguments: tuple[str | Path, ...], code: int, says: str) -> None:
    ended = stepscope(*arguments)
    assert ended.returncode == code
    assert says in ended.stderr
    assert "Traceback" not in ended.stderr
    assert ended.stdout == ""
