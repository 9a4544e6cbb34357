"""Real frameworks through the public API: steps, account, ops with runtime, memory and annotations come out of the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.capture.running import needs, sidecars, told

RECORDED = ("torch", "jax", "tensorflow", "numpy")
TRIES = 3
MOST_UNEXPLAINED = 0.5


@pytest.fixture(
    scope="module",
    params=[pytest.param(name, marks=() if name == "numpy" else needs(name)) for name in RECORDED],
)
def job(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What one framework's job told; again where another process took most of each of its steps, which are milliseconds."""
    for _ in range(TRIES):
        folder = tmp_path_factory.mktemp(request.param)
        found = told(f"{request.param}_job", folder)
        if found["scheduled"]["unexplained_share_at_best"] < MOST_UNEXPLAINED:
            break
    return found | {"name": request.param, "folder": folder}


def test_scheduled_steps(job: dict[str, Any]) -> None:
    found = job["scheduled"]
    assert (found["source"], found["steps"], found["partial"]) == ("marker", 4, 0)
    steps = found["capture"]["steps"]
    assert [steps[part]["first"] for part in ("before", "warmup", "inside", "after")] == [0, 4, 6, 10]
    assert [len(steps[part]["durations_ns"]) for part in ("before", "warmup", "inside", "after")] == [
        4,
        2,
        4,
        6,
    ]
    assert found["capture"]["unprofiled_step_ns"] is None  # four short steps do not show how long one takes
    assert found["problems"] == []


def test_without_a_schedule_everything_is_recorded(job: dict[str, Any]) -> None:
    assert job["plain"]["steps"] == 16


def test_the_account_explains_the_steps(job: dict[str, Any]) -> None:
    assert sum(job["scheduled"]["parts"].values()) > 0
    assert job["scheduled"]["unexplained_share_at_best"] < MOST_UNEXPLAINED


def test_annotations_input_and_custom_op(job: dict[str, Any]) -> None:
    found = job["scheduled"]
    assert found["roles"]["input"] >= 4
    assert found["ops"]["my_kernel"][0] >= 4
    assert found["ops"]["my_kernel"][1] > 0
    inside = "forward" if job["name"] in ("torch", "numpy") else "update"
    assert found["names"][inside] == 4
    assert {inside, "my_kernel", "input_pipeline"} <= set(found["phases"])
    noted = found["capture"]["ops"]["my_kernel"]
    assert noted["calls"] >= 4
    assert "device_delta_bytes" in noted  # without a GPU, the resident memory


def test_coverage(job: dict[str, Any]) -> None:
    """Runtime of at least 99 % of ops; memory of at least 95 % of bytes, or the reason that there is none."""
    for name in [each for each in ("scheduled", "eager", "graph", "keras") if each in job]:
        found = job[name]
        assert found["runtime"] >= 0.99, name
        if found["memory"] is None:
            assert any("llocation" in reason or "memory" in reason for reason in found["gaps"]), found["gaps"]
        else:
            assert found["memory"] >= 0.95, name
    if job["name"] == "torch":
        assert job["scheduled"]["memory"] >= 0.95


def test_only_regions_are_recorded(job: dict[str, Any]) -> None:
    if "regions" not in job:
        return
    found = job["regions"]
    assert found["steps"] == 3
    assert found["outside_steps"] == 0
    assert not {"aten::sin", "sin", "Sin"} & set(found["ops"])
    assert found["phases"]["train"]["calls"] == 3


def test_the_sidecar(job: dict[str, Any]) -> None:
    notes = sidecars(job["folder"])
    assert all(note["schema"] == "stepscope.capture/1" for note in notes)
    assert all(
        note["host"] and note["pid"] and note["command"] and note["versions"]["python"] for note in notes
    )
    assert len({note["run"] for note in notes}) == len(notes)
    clock = notes[0]["clock"]
    assert abs(clock["drift_ns"]) < 1_000_000_000
    assert job["plain"]["telemetry"] >= 2  # one at each end, however short the window


def test_nothing_is_left_beside_the_traces(job: dict[str, Any]) -> None:
    folder: Path = job["folder"]
    assert [path for path in folder.rglob(".*") if path.name != ".profile-empty"] == []


@needs("torch")
def test_torch_names_and_json(tmp_path_factory: pytest.TempPathFactory, job: dict[str, Any]) -> None:
    if job["name"] != "torch":
        return
    path = Path(job["scheduled"]["files"][0])
    assert json.loads(path.read_text())["traceEvents"]
    assert path.name.endswith(".pt.trace.json")
    assert Path(job["packed"]["files"][0]).name.endswith(".pt.trace.json.gz")
    assert job["packed"]["steps"] == 4


@needs("torch")
def test_compiled_code_is_not_broken(job: dict[str, Any]) -> None:
    if job["name"] == "torch":
        assert job["compiled"] == {"graphs": 1, "breaks": {}, "files": 1}
        assert job["stderr"].count("will be ignored") <= 1


def test_names_inside_graphs(job: dict[str, Any]) -> None:
    if job["name"] == "jax":
        assert job["scope"]
    if job["name"] == "tensorflow":
        assert any("forward_pass_" in node for node in job["nodes"])
        assert any("my_kernel" in node for node in job["nodes"])
        assert job["stderr"].count("AutoGraph could not") == 0


def test_work_whose_results_are_dropped_is_recorded(job: dict[str, Any]) -> None:
    if job["name"] == "jax":
        calls = {name: row[0] for name, row in job["dropped"]["ops"].items()}
        assert calls == {
            "dot_general": 24,
            "tanh": 24,
        }  # 6 in each of 4 steps; the program that waits is in none


def test_python_functions_have_names(job: dict[str, Any]) -> None:
    """TensorFlow's own profiler writes none: they are sampled, so that a short job has some of them."""
    import stepscope

    if job["name"] == "tensorflow":
        events = stepscope.load(job["scheduled"]["files"][0]).traces[0].events
        names = events.filter(events["kind"] == "python")["name"].cast(str)
        assert names.str.contains(r"tensorflow_job\.py\(\d+\): ").any()


def test_xprof_reads_it(job: dict[str, Any]) -> None:
    if job["name"] not in ("jax", "tensorflow"):
        return
    convert = pytest.importorskip("xprof.convert.raw_to_tool_data")
    path = job["scheduled"]["files"][0]
    data, _ = convert.xspace_to_tool_data([path], "overview_page", {"use_saved_result": False})
    assert data and b"stepnum" in (data if isinstance(data, bytes) else str(data).encode()).lower()
