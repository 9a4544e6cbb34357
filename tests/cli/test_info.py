"""`stepscope info`: the truth about a profile, in words and as JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stepscope.cli import info as verb
from stepscope.cli.info_text import lines
from stepscope.native import interpreted
from stepscope.profiles.overview import overview
from stepscope.profiles.profile import Profile
from tests.builders.files import kineto, put
from tests.builders.traces import trace
from tests.cli.inside import stepscope, succeeds
from tests.cli.run import PROFILE


def told(*arguments: str | Path) -> dict[str, Any]:
    """What info says, as JSON."""
    found: dict[str, Any] = json.loads(succeeds("info", *arguments, "--format", "json"))
    return found


def text_of(profile: Profile, *, verbose: bool = False, width: int | None = None) -> str:
    """The lines of info without colours."""
    return "\n".join(line.plain for line in lines(overview(profile), verbose=verbose, width=width))


def test_a_profile_on_one_screen() -> None:
    text = succeeds("info", PROFILE)
    for part in (
        "framework   PyTorch (kineto)",
        "devices     NVIDIA H200",
        "steps       2 (ProfilerStep 1–2): min 298 µs, median 377 µs, max 457 µs",
        "events      53, 8 of them on devices",
        "recorded    nothing optional; not shapes, stacks, memory, flops, modules",
        "cuda_runtime         runtime         19",
    ):
        assert part in text


def test_json() -> None:
    found = told(PROFILE)
    assert found["schema"] == "stepscope.info/1"
    assert found["steps"]["count"] == 2
    assert found["events"] == sum(each["events"] for each in found["categories"]) == 53


def test_problems_in_words() -> None:
    text = text_of(Profile("/x", [trace(0), trace(1)], [0, 1]))
    assert (
        "problems (2)\n  error   The file is cut (246) on ranks 0–1\n          It ends after 123 bytes.\n          → Copy it again."
        in text
    )


def test_long_texts_keep_their_indent() -> None:
    wrapped = text_of(Profile("/x", [trace()], [0]), width=40).splitlines()
    assert all(len(line) <= 40 for line in wrapped if line.startswith("          "))


def test_names_cannot_format_themselves() -> None:
    profile = Profile("/x", [trace()], [0], name="[red]x\x1b[31m")
    assert text_of(profile).startswith("[red]x\\x1b[31m\n")


def test_several_ranks(tmp_path: Path) -> None:
    put(tmp_path, "rank0.pt.trace.json", content=kineto(rank=0, world_size=4))
    put(tmp_path, "rank2.pt.trace.json", content=kineto(events=5, rank=2, world_size=4))
    text = succeeds("info", tmp_path)
    assert "ranks       0, 2 of 4" in text
    assert "Some ranks of the job are missing (2)" in text
    one = told(tmp_path, "--rank", "2")
    assert [rank["rank"] for rank in one["ranks"]] == [2]
    assert one["events"] == 6


def test_several_runs(tmp_path: Path) -> None:
    put(tmp_path, "a.pt.trace.json", "b.pt.trace.json", "notes.txt")
    text = succeeds("info", tmp_path)
    assert "runs in this folder" in text
    assert "--run" in text
    assert "files skipped (1)" in text
    assert "There are other runs here" not in text
    found = told(tmp_path, "--run", "a.pt.trace.json")
    assert found["name"] == "a.pt.trace.json"
    assert [run["is_loaded"] for run in found["runs"]] == [True, False]


def test_long_lists_are_cut_aloud(tmp_path: Path) -> None:
    put(tmp_path, "a.pt.trace.json", *(f"note{i}.txt" for i in range(30)))
    text = succeeds("info", tmp_path)
    assert "… and 18 more; -v shows all" in text
    assert "more; -v shows all" not in succeeds("info", tmp_path, "-v")


def test_no_cache(tmp_path: Path) -> None:
    cache = {"STEPSCOPE_CACHE": str(tmp_path / "cache")}
    assert "cache       not used" in succeeds("info", PROFILE, "--no-cache", env=cache)
    assert not (tmp_path / "cache").exists()
    assert f"tables kept in {tmp_path / 'cache'}" in succeeds("info", PROFILE, env=cache)


def test_the_slow_path_is_told_aloud(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("stepscope.profiles.overview.interpreted", lambda: ["events", "wire"])
    verb.info([str(PROFILE)], quiet=True)
    said = capsys.readouterr().err
    assert "slow path: 2 hot loops run interpreted" in said
    assert said.count("\n") == 1


def test_talk_is_only_about_the_slow_path() -> None:
    assert bool(stepscope("info", PROFILE).stderr) is bool(interpreted())
