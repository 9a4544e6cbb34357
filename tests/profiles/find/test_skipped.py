"""Why files are no profiles."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.profiles.find import skipped


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("vm.xplane.pb", "xplane"),
        ("vm.xplane.pb.gz", "xplane"),
        ("vm_1.1694128201545.pt.trace.json", "kineto"),
        ("x.PT.Trace.JSON.gz", "kineto"),
        ("1759-TP-3.trace.json.gz", "chrome"),
        ("timeline.chrome_trace", "chrome"),
    ],
)
def test_names_of_profiles(name: str, hint: str) -> None:
    assert skipped.by_name(name).format_hint == hint


@pytest.mark.parametrize(
    "name",
    [
        "trace.json",
        "a.json.gz",
        "events.out.tfevents.1794703456.vm",
        "model.pb",
        "noending",
        "snapshot.pickle",
        "mem.pkl",
    ],
)
def test_names_that_do_not_tell(name: str) -> None:
    assert skipped.by_name(name) == skipped.LOOK_INSIDE


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("vm.hlo_proto.pb", "made by XProf"),
        ("ALL_HOSTS.op_stats_v2.pb", "made by XProf"),
        ("vm.SSTABLE", "made by XProf"),
        ("cache_version.txt", "made by XProf"),
        ("vm.memory_profile.json.gz", "made by XProf"),
        ("x.pt.trace.json.tmp", "a writer that died"),
        (".hidden.json", "hidden"),
        ("execution_trace_0.json", "execution trace"),
        ("report.nsys-rep", "Nsight"),
        ("torch.pftrace", "Perfetto"),
        ("traces.tar.gz", "unpack it first"),
        ("train.py", "(.py)"),
        ("model.safetensors", "(.safetensors)"),
    ],
)
def test_names_of_other_files(name: str, reason: str) -> None:
    assert reason in skipped.by_name(name).reason


@pytest.mark.parametrize(
    ("document", "hint", "reason"),
    [
        ({"schemaVersion": 1, "traceEvents": []}, "kineto", ""),
        ({"traceEvents": [{"ph": "X"}]}, "chrome", ""),
        ([{"ph": "B", "name": "x", "ts": 1}], "chrome", ""),
        ({"schema": "1.1.1-chakra.0.0.4", "pid": 1, "start_ts": 1, "nodes": []}, "", "an execution trace"),
        ({"images": [], "annotations": []}, "", "JSON without traceEvents"),
        ([1, 2], "", "JSON without traceEvents"),
        (
            {"schema": "stepscope.report/1", "x": '"schemaVersion"'},
            "",
            "output of stepscope (a report)",
        ),
    ],
)
def test_json_by_its_first_bytes(document: object, hint: str, reason: str) -> None:
    found = skipped.by_content(json.dumps(document).encode())
    assert found.format_hint == hint
    assert found.reason.startswith(reason)


def test_xplane_by_its_first_bytes() -> None:
    assert skipped.by_content(b"\x0a\x40\x12\x09/host:CPU").format_hint == "xplane"


@given(st.binary(max_size=200))
def test_any_bytes_get_a_verdict(head: bytes) -> None:
    found = skipped.by_content(head)
    assert bool(found.format_hint) != bool(found.reason)
