"""The list of runs: new ones appear, broken ones stay among good ones, and what changes or vanishes is told."""

from __future__ import annotations

import shutil
import threading
from pathlib import Path

import pytest

from stepscope.errors import NothingFound
from stepscope.profiles.find.walk import Skipped
from stepscope.server.app import make_app
from stepscope.server.runs import opened
from stepscope.server.runs.watch import Found, Place, Runs, check_place
from tests.patience import PATIENCE_S, tries
from tests.server.conftest import SAMPLE, Asking


def test_all_formats_and_what_was_skipped(asking: Asking) -> None:
    found = asking.runs()
    assert {name.rsplit("/", 1)[-1] for name in found} == {
        "gpt.pt.trace.json.gz", "graph.pt.trace.json.gz", "events.out.tfevents.1794707819.vm", "jax.xplane.pb.gz", "broken.pt.trace.json.gz",
    }  # fmt: skip
    assert all(len(run["id"]) == 16 for run in found.values())
    skipped = asking.get("api/runs").get_json()["skipped"]
    assert [row["path"].rsplit("/", 1)[-1] for row in skipped] == ["notes.txt"]


def test_ids_stay(asking: Asking, logs: Path) -> None:
    other = Asking(make_app([Place(str(logs / "gpt.pt.trace.json.gz")), Place(str(logs))]))
    assert {run["id"] for run in other.runs().values()} == {run["id"] for run in asking.runs().values()}
    other.app.close()


def test_a_broken_profile_is_told_and_the_others_work(asking: Asking) -> None:
    broken = asking.id_of("broken.pt.trace.json.gz")
    answer = asking.get(f"api/runs/{broken}/report")
    assert answer.status_code == 200 or answer.get_json()["error"]["what"]
    assert asking.get(f"api/runs/{asking.id_of()}/report").status_code == 200


def test_an_unreadable_profile_has_an_error_and_a_diagnosis(alone: tuple[Asking, Path]) -> None:
    asking, folder = alone
    (folder / "bad.xplane.pb").write_bytes(b"\xff" * 3000)
    run = asking.id_of("bad.xplane.pb")
    answer = asking.get(f"api/runs/{run}/report")
    assert answer.status_code == 422
    assert answer.get_json()["error"]["what"]
    row = asking.runs()["bad.xplane.pb"]
    assert row["state"] == "failed"
    assert row["error"]["what"]
    assert asking.get(f"api/runs/{run}/doctor").get_json()["results"]
    shutil.copy(SAMPLE, folder / "bad.xplane.pb")
    asking.app.opened._loads.clear()
    assert asking.get(f"api/runs/{run}/report").status_code == 200


def test_new_profiles_are_found(alone: tuple[Asking, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    asking, folder = alone
    monkeypatch.setattr("stepscope.server.runs.watch.SCAN_EVERY_S", 0.05)
    wanted = {"one.pt.trace.json.gz", "two.pt.trace.json.gz"}
    asking.client.get("/api/runs")
    shutil.copy(SAMPLE, folder / "two.pt.trace.json.gz")
    for _ in tries():
        names = {run["name"] for run in asking.client.get("/api/runs").get_json()["runs"]}
        if names == wanted:
            break
    assert names == wanted


def test_a_look_that_ends_late_brings_nothing_back(monkeypatch: pytest.MonkeyPatch) -> None:
    """It began before the other one: what it saw is older, whichever ends first."""
    begun, may_end = threading.Event(), threading.Event()
    answers = iter([Found({}, (Skipped("old", ""),), is_complete=True), Found(is_complete=True)])

    def look(places: object) -> Found:
        found = next(answers)
        if found.skipped:
            begun.set()
            may_end.wait(PATIENCE_S)
        return found

    monkeypatch.setattr("stepscope.server.runs.watch._look", look)
    runs = Runs([])
    slow = threading.Thread(target=runs.look_now)
    slow.start()
    assert begun.wait(PATIENCE_S)
    runs.look_now()
    may_end.set()
    slow.join()
    assert runs._found.skipped == ()


def test_a_link_waits_for_the_first_look(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """That takes its time in a large folder: nobody knows yet that there is no such run."""
    may_end = threading.Event()
    monkeypatch.setattr("stepscope.server.runs.watch.FIRST_LOOK_S", 0.01)

    def look(places: object) -> Found:
        may_end.wait(PATIENCE_S)
        return Found(is_complete=True)

    monkeypatch.setattr("stepscope.server.runs.watch._look", look)
    asking = Asking(make_app([Place(str(tmp_path))]))
    assert asking.client.get("/api/runs/0123456789abcdef/report").status_code == 202
    may_end.set()
    assert asking.get("api/runs/0123456789abcdef/report").status_code == 404
    asking.app.close()


def test_a_change_is_told_once(alone: tuple[Asking, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    asking, folder = alone
    monkeypatch.setattr(opened, "CHECK_EVERY_S", 0.0)
    run = asking.id_of("one.pt.trace.json.gz")
    assert asking.get(f"api/runs/{run}/table/tracks").status_code == 200
    data = SAMPLE.read_bytes()
    (folder / "one.pt.trace.json.gz").write_bytes(data)
    answer = asking.get(f"api/runs/{run}/table/tracks")
    assert answer.status_code == 409
    assert "changed" in answer.get_json()["error"]["what"]
    assert asking.get(f"api/runs/{run}/table/tracks").status_code == 200


def test_a_profile_that_vanishes(alone: tuple[Asking, Path], monkeypatch: pytest.MonkeyPatch) -> None:
    asking, folder = alone
    monkeypatch.setattr(opened, "CHECK_EVERY_S", 0.0)
    run = asking.id_of("one.pt.trace.json.gz")
    assert asking.get(f"api/runs/{run}/report").status_code == 200
    (folder / "one.pt.trace.json.gz").unlink()
    answer = asking.get(f"api/runs/{run}/report")
    assert answer.status_code == 410
    assert "no longer there" in answer.get_json()["error"]["what"]
    assert asking.runs() == {}
    gone = asking.get(f"api/runs/{run}/report")
    assert gone.status_code == 404
    assert "gone" in gone.get_json()["error"]["fix"]


def test_a_place_that_is_not_there_says_so_and_may_come(tmp_path: Path) -> None:
    asking = Asking(make_app([Place(str(tmp_path / "later"))]))
    assert asking.runs() == {}
    (row,) = asking.get("api/runs").get_json()["skipped"]
    assert "No such file or folder" in row["reason"]
    (tmp_path / "later").mkdir()
    shutil.copy(SAMPLE, tmp_path / "later")
    assert len(asking.runs()) == 1
    asking.app.close()


def test_a_typo_on_the_command_line_is_told_at_once(tmp_path: Path) -> None:
    check_place(str(tmp_path))
    check_place(f"{tmp_path}/*.gz")
    with pytest.raises(NothingFound, match="No such file"):
        check_place(str(tmp_path / "logss"))


def test_looking_for_runs_ends_with_the_server(tmp_path: Path) -> None:
    runs = Runs([Place(str(tmp_path))])
    runs.found()
    runs.close()
    assert runs.found().runs == {}


def test_profiles_behind_a_url() -> None:
    import fsspec

    files = fsspec.filesystem("memory")
    files.pipe("/served-bucket/run/far.pt.trace.json.gz", SAMPLE.read_bytes())
    asking = Asking(make_app([Place("memory://served-bucket")]))
    (run,) = asking.runs().values()
    assert asking.get(f"api/runs/{run['id']}/report").status_code == 200
    assert asking.get(f"api/runs/{run['id']}/table/tracks").get_json()["total"] > 0
    answer = asking.post(f"api/runs/{run['id']}/sql", {"query": "SELECT COUNT(*) > 0 AS some FROM events"})
    assert answer.get_json()["rows"] == [[True]]  # the tables come from this process, wherever they were read
    assert asking.get("api/state").get_json()["capture"] is False
    files.rm("/served-bucket", recursive=True)
    asking.app.close()
