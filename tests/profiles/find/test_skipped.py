"""Why files are no profiles."""

from __future__ import annotations

import io
import json
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stepscope.profiles.find import skipped as skips


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
    assert skips.by_name(name).format_hint == hint


@pytest.mark.parametrize(
    "name", ["trace.json", "a.json.gz", "events.out.tfevents.1794703456.vm", "model.pb", "noending"]
)
def test_names_that_do_not_tell(name: str) -> None:
    assert skips.by_name(name) == skips.LOOK_INSIDE


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
        ("snapshot.pickle", "never opened"),
        ("mem.pkl", "never opened"),
        ("execution_trace_0.json", "execution trace"),
        ("report.nsys-rep", "Nsight"),
        ("torch.pftrace", "Perfetto"),
        ("traces.tar.gz", "unpack it first"),
        ("train.py", "(.py)"),
        ("model.safetensors", "(.safetensors)"),
    ],
)
def test_names_of_other_files(name: str, reason: str) -> None:
    assert reason in skips.by_name(name).reason


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
    found = skips.by_content(json.dumps(document).encode())
    assert found.format_hint == hint
    assert found.reason.startswith(reason)


def test_xplane_by_its_first_bytes() -> None:
    assert skips.by_content(b"\x0a\x40\x12\x09/host:CPU").format_hint == "xplane"


@given(st.binary(max_size=200))
def test_any_bytes_get_a_verdict(head: bytes) -> None:
    found = skips.by_content(head)
    assert bool(found.format_hint) != bool(found.reason)


def record(event: bytes) -> bytes:
    return struct.pack("<QI", len(event), 0) + event + b"\0\0\0\0"


SCALAR = b"\x09" + b"\0" * 8 + b"\x10\x83\x01" + b"\x2a\x03abc"
RUN_METADATA = b"\x09" + b"\0" * 8 + b"\x10\x05" + b"\x42\x04xxxx"


@pytest.mark.parametrize(
    ("records", "hint", "reason"),
    [
        ([SCALAR, RUN_METADATA], "tf_events", ""),
        ([SCALAR], "", "without a profile (no RunMetadata)"),
        ([], "", "without a profile (no RunMetadata)"),
    ],
)
def test_event_files_by_their_records(records: list[bytes], hint: str, reason: str) -> None:
    data = b"".join(map(record, records))
    found = skips.by_records(io.BytesIO(data), len(data))
    assert found.format_hint == hint
    assert reason in found.reason


@given(st.binary(max_size=300))
def test_any_event_file_gets_a_verdict(data: bytes) -> None:
    found = skips.by_records(io.BytesIO(data), len(data))
    assert bool(found.format_hint) != bool(found.reason)


def test_event_files_are_not_read_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(skips, "RECORDS_LOOKED_AT", 2)
    data = record(SCALAR) * 3 + record(RUN_METADATA)
    assert "first 2 records" in skips.by_records(io.BytesIO(data), len(data)).reason
