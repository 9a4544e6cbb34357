"""Files and folders with one defect each, by the code of the check that must notice."""

from __future__ import annotations

import gzip
import json
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stepscope.capture.files.identity import host_name
from stepscope.capture.process.clock import process_start_ticks
from stepscope.capture.process.troubles import Troubles
from stepscope.capture.ring.ring import open_ring
from tests.builders import documents
from tests.builders.documents import Event, half
from tests.builders.dumps import CREATED_NS, dump, entry, hang, pending, put_dumps, usual
from tests.builders.kineto_steps import document, good, kernel, launch, on_host, op, step
from tests.builders.protobuf import message, number, packed
from tests.builders.snapshots import Job, script
from tests.builders.tf_wire import CPU, VERSION, event, node, traced
from tests.builders.xspace_bytes import PlaneBytes, space

Way = Callable[[Path], Path]
NOW_US = 1_790_000_000_000_000


def put(folder: Path, data: bytes, name: str = "a.pt.trace.json") -> Path:
    """The bytes as a file."""
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_bytes(data)
    return folder / name


def snapshot(history: bool = True, stacks: bool = True) -> bytes:
    """A memory snapshot, perhaps without its history or without stacks."""
    job = Job()
    for _ in range(4):
        job.take(1 << 20, script(5) if stacks else [])
    if not history:
        job.events.clear()
    return pickle.dumps(job.snapshot())


def kineto(*events: Event, **header: Any) -> Way:
    """A good trace with these events added."""
    return lambda folder: put(folder, document([*good(), *events], **header))


def only(*events: Event, **header: Any) -> Way:
    """A trace with nothing but these events."""
    return lambda folder: put(folder, document(list(events), **header))


def text(*pieces: bytes) -> Way:
    """A good trace with these pieces of text among its events."""
    data = document(good())
    cut = data.index(b'"traceEvents": [') + len(b'"traceEvents": [')
    return lambda folder: put(folder, data[:cut] + b"".join(piece + b", " for piece in pieces) + data[cut:])


def chrome(*events: Event, **header: Any) -> Way:
    """A Chrome trace of these."""
    return lambda folder: put(folder, documents.chrome(*events, **header), "a.json")


def host_plane() -> PlaneBytes:
    """A thread with two events."""
    plane = PlaneBytes("/host:CPU")
    plane.line("t", [plane.event("x", 0, 500_000), plane.event("y", 600_000, 500_000)])
    return plane


def xplane(data: bytes, name: str = "plugins/profile/2026_01_01_00_00_00/h.xplane.pb") -> Way:
    """An XPlane file in a logdir."""

    def way(folder: Path) -> Path:
        put(folder, data, name)
        return folder

    return way


def records(data: bytes) -> Way:
    """An event file of TensorFlow 1."""
    return lambda folder: put(folder, data, "events.out.tfevents.1700000000.host7")


def several(*ways: tuple[str, bytes]) -> Way:
    """Several files in one folder."""

    def way(folder: Path) -> Path:
        for name, data in ways:
            put(folder, data, name)
        return folder

    return way


def _light_window_lost(folder: Path) -> Path:
    """A trace whose sidecar names a light window that is not there."""
    moment = {"unix_ns": NOW_US * 1000, "perf_counter_ns": 0}
    stem = f"h_1.{NOW_US}"
    light = {
        "file": f"{stem}.stepscope-light",
        "moments_ns": [0, 1, 2],
        "clock": {"start": moment, "end": moment},
    }
    note = {"schema": "stepscope.capture/1", "light": light}
    files = (f"{stem}.pt.trace.json", document(good())), (f"{stem}.stepscope.json", json.dumps(note).encode())
    return several(*files)(folder)


def noted(code: str, severity: str = "error") -> Way:
    """A trace whose sidecar notes a problem of the capture."""

    def way(folder: Path) -> Path:
        put(folder, document(good()), f"h_1.{NOW_US}.pt.trace.json")
        problem = {"code": code, "title": "It went wrong", "severity": severity}
        put(
            folder,
            json.dumps({"schema": "stepscope.capture/1", "problems": [problem]}).encode(),
            f"h_1.{NOW_US}.stepscope.json",
        )
        return folder

    return way


def ranked(rank: int, world: int, at_us: float = 0) -> bytes:
    """A good trace of one rank."""
    events = [{**each, "ts": each["ts"] + at_us} for each in good()]
    return document(
        events, distributedInfo={"rank": rank, "world_size": world}, baseTimeNanoseconds=NOW_US * 1000
    )


def _cut_gzip(share: float) -> Way:
    """A packed trace of which only the first part was copied; its events differ, so that half of the bytes hold about half of them."""
    data = gzip.compress(
        document([{**each, "ts": each["ts"] + 1000.001 * n} for n in range(200) for each in good()])
    )
    return lambda folder: put(folder, data[: int(share * len(data))], "a.pt.trace.json.gz")


def _empty_run(folder: Path) -> Path:
    (folder / "plugins" / "profile" / "2026_01_01_00_00_00").mkdir(parents=True)
    return folder


def _recording(folder: Path) -> Path:
    put(folder, document(good()))
    put(folder, b"{", ".recording-h_7-0a1b2c3d/torch/trace.json")
    return folder


def _ring(**facts: Any) -> Way:
    """What a process left that did not come to write its profile."""

    def make(folder: Path) -> Path:
        kept = open_ring(folder, "h_7", Troubles(), 64)
        assert kept is not None
        kept.open_window(0, backend="torch", worker="h_7", window=0, **facts)
        kept.end(kept.begin("a", "forward", 10), 20)
        kept.keep()
        return folder

    return make


def _running(folder: Path) -> Path:
    return _ring(host=host_name(), start_ticks=process_start_ticks())(folder)


def _edited_export(folder: Path) -> Path:
    from tests.builders.traces import trace
    from tests.formats.own_export.test_write import exported

    path = exported(trace(), folder)
    path.write_text(path.read_text().replace('"registers"', '"x"').replace('"grid":[132,1,1]', '"grid":{}'))
    return path


def _flipped(content: bytes, at: int) -> bytes:
    return content[:at] + bytes([content[at] ^ 4]) + content[at + 1 :]


def _far_away() -> bytes:
    plane = PlaneBytes("/host:CPU")
    plane.line("t", [plane.event("x", 1 << 62, 1 << 62)], time_ns=-(1 << 63))
    return space(plane, host_plane())


def _damaged_program() -> PlaneBytes:
    plane = PlaneBytes("/host:metadata")
    plane.describe("jit_step(7)", hlo_proto=packed(1, packed(1, "jit_step") + packed(3, b"\x12\x7f")))
    return plane


_RUN = traced("run_1", (CPU, [node("n", 0, 5, "")]))
_ABSURD = traced(
    "r", (CPU, [node("n", 0, 5, ""), node("a", 30, 5, "", (6, message((6, message((1, 2**62), (2, 1))))))])
)
_BROKEN_TAG = event((8, message((1, "r")) + b"\x12\x7f\x01"))
_COMPILING = [
    each
    for place in range(1, 4)
    for each in (
        step(place),
        on_host("cpu_op", "TorchDynamo Cache Lookup", 100 * place + 1, 80),
        op(100 * place + 85, dur=2),
    )
]


def dumps_of(ranks: dict[int, dict[str, Any]]) -> Way:
    """Flight-recorder dumps of these ranks."""
    return lambda folder: put_dumps(folder / "dumps", ranks)


def aged(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same of a run before."""
    return [{**each, "time_created_ns": CREATED_NS - 10**13} for each in entries]


WRONG: dict[str, list[Way]] = {
    "nothing-found": [several(("train/events.out.tfevents.1.h.v2", VERSION)), several(("notes.txt", b"hello"))],
    "not-a-profile": [
        lambda folder: put(folder, b"hello", "notes.md"),
        lambda folder: put(folder, b'{"schema": "1.0.3", "pid": 5, "nodes": []}', "observer_0.json"),
        lambda folder: put(folder, b"", "a.pt.trace.json"),
    ],
    "no-history": [lambda folder: put(folder, snapshot(history=False), "snapshot.pickle")],
    "no-allocation-stacks": [lambda folder: put(folder, snapshot(stacks=False), "snapshot.pickle")],
    "wrong-logdir": [
        xplane(space(host_plane()), "h.xplane.pb"),
        lambda folder: xplane(space(host_plane()))(folder) / "plugins" / "profile",
    ],
    "no-shapes": [only(*[{**each, "args": {}} if each["cat"] == "cpu_op" else each for each in good()], record_shapes=0)],
    "no-stacks": [kineto()],
    "no-memory": [kineto()],
    "no-device-events": [only(*[each for each in good() if each["cat"] != "kernel"])],
    "launches-without-work": [kineto(launch(350, 90), launch(353, 91))],
    "work-without-launch": [kineto(kernel(360, 90), kernel(372, 91))],
    "dropped-events": [xplane(space(host_plane(), warnings=["2097153 events dropped because the buffer was full"]))],
    "buffer-overflow": [chrome(on_host("f", "a", 1), viztracer_metadata={"overflow": True, "version": "1"})],
    "capture-error": [kineto(ERROR=["CUPTI_ERROR_INSUFFICIENT_PRIVILEGES"]), xplane(space(host_plane(), errors=["CUPTI needs root access"]))],
    "capture-warning": [xplane(space(host_plane(), warnings=["the clock is odd"]))],
    "capture-killed": [_ring()],
    "capture-unwritten": [_ring(has_ended=True)],
    "capture-running": [_running],
    "never-stopped": [_empty_run, _recording, several(("a.pt.trace.json", b"")), several(("a.pt.trace.json", document(good())), ("b.xplane.pb", b""))],
    "leftover-files": [several(("a.pt.trace.json", document(good())), ("b.pt.trace.json.tmp", b"{")), several(("b.xplane.pb.part", b"x"))],
    "no-steps": [only(op(1), op(100, "aten::add"))],
    "one-step": [only(step(1), op(110))],
    "only-warm-up": [only(*_COMPILING)],
    "graph-capture": [only(step(1), on_host("cuda_runtime", "cudaStreamBeginCapture", 101, 2), launch(110, 90), on_host("cuda_runtime", "cudaStreamEndCapture", 180, 2))],
    "option-without-data": [kineto(with_stack=1)],
    "clock-inversion": [kineto(launch(380, 90), kernel(350, 90))],
    "zero-time": [kineto(kernel(0, 90))],
    "graphs-hide-ops": [
        kineto(on_host("cuda_runtime", "cudaGraphLaunch", 340, 2, correlation=90), kernel(343, 90, dur=30, args={"graph node id": 5, "graph id": 1})),
    ],
    "no-kernel-facts": [
        only(*[{**each, "args": {key: value for key, value in each["args"].items() if "registers" not in key}} for each in good()]),
    ],
    "unnamed-collectives": [kineto(launch(345, 90), kernel(350, 90, "ncclDevKernel_AllReduce_Sum_f32_RING_LL"))],
    "wait-without-record": [
        kineto(on_host("cuda_sync", "Stream Wait Event", 350, 1, tid=7, pid=0, stream=7, device=0, correlation=42,
                    wait_on_cuda_event_record_corr_id=-1, wait_on_cuda_event_id=9)),
    ],
    "missing-ranks": [several(("rank0.pt.trace.json", ranked(0, 4)), ("rank1.pt.trace.json", ranked(1, 4)))],
    "duplicate-rank": [several(("rank0.pt.trace.json", ranked(0, 2)), ("rank1.pt.trace.json", ranked(0, 2)))],
    "split-runs": [
        several(
            ("plugins/profile/2026_01_01_00_00_00/a.xplane.pb", space(host_plane())),
            ("plugins/profile/2026_01_01_00_00_01/b.xplane.pb", space(host_plane())),
        ),
    ],
    "hang": [
        dumps_of(hang()),
        dumps_of(hang(entries=[*usual(), pending("nccl:broadcast", 5)])),
        dumps_of({rank: each for rank, each in hang().items() if rank != 2}),
    ],
    "nothing-pending": [dumps_of({rank: dump(usual()) for rank in range(4)})],
    "empty-dump": [dumps_of({rank: dump([]) for rank in range(4)})],
    "dump-without-stacks": [dumps_of({0: dump([entry("gloo:all_reduce", 1, frames=[])], range(1))})],
    "mixed-dumps": [dumps_of({0: dump(usual(), range(2)), 1: dump(aged(usual()), range(2))})],
    "ranks-apart": [several(("rank0.pt.trace.json", ranked(0, 2)), ("rank1.pt.trace.json", ranked(1, 2, 5e6)))],
    "two-workers": [kineto(*[{**each, "pid": 8} for each in good() if each["cat"] != "kernel"])],
    "other-runs": [several(("a.json", document(good())), ("b.json", document(good())))],
    "truncated": [lambda folder: put(folder, document(good())[:-300]), xplane(space(host_plane())[:-60])],
    "damaged": [xplane(packed(1, packed(2, "/host:CPU") + packed(3, host_plane().lines[0]) + b"\x0f\xff\xff") + space(host_plane()))],
    "damaged-gzip": [_cut_gzip(0.999), _cut_gzip(0.5)],
    "damaged-message": [records(VERSION + _BROKEN_TAG + _RUN)],
    "damaged-events": [
        xplane(packed(1, packed(2, "/host:CPU") + packed(3, packed(4, number(1, 1) + b"\x10" + b"\xff" * 11) + host_plane().lines[0]))),
    ],
    "damaged-program": [xplane(space(_damaged_program(), host_plane()))],
    "bad-header": [lambda folder: put(folder, document(good(), distributedInfo={"rank": -1}))],
    "too-many-devices": [kineto(*(on_host("kernel", "k", 350, tid=7, pid=device, device=device, stream=7) for device in range(100)))],
    "lost-records": [records(VERSION + _flipped(VERSION, 1) + _RUN)],
    "crc-mismatch": [records(VERSION + _flipped(_RUN, len(_RUN) - 1))],
    "unreadable-file": [several(("rank0.pt.trace.json", document(good())), ("rank1.pt.trace.json", b"no JSON"))],
    "bad-events": [text(b"{junk}")],
    "bad-time": [xplane(_far_away())],
    "bad-allocations": [records(VERSION + _ABSURD)],
    "time-out-of-range": [text(b'{"ph":"X","cat":"cpu_op","name":"x","pid":7,"tid":1,"ts":1e30,"dur":1}')],
    "untimed-events": [text(b'{"ph":"X","cat":"cpu_op","name":"x","pid":7,"tid":1,"ts":"N/A","dur":1}')],
    "negative-duration": [kineto(op(350, dur=-5))],
    "no-duration": [text(b'{"ph":"X","cat":"cpu_op","name":"x","pid":7,"tid":1,"ts":351,"dur":null}')],
    "no-phase": [text(b'{"name":"x","ts":1}')],
    "edited-export": [_edited_export],
    "broken-text": [text(b'{"ph":"X","cat":"cpu_op","name":"a\xff","pid":7,"tid":1,"ts":351,"dur":1}')],
    "unescaped-quotes": [text(b'{"ph":"X","cat":"cpu_op","name":"lambda("x")","pid":7,"tid":1,"ts":351,"dur":1}')],
    "unnamed-events": [text(b'{"ph":"X","cat":"cpu_op","pid":7,"tid":1,"ts":351,"dur":1}')],
    "outlives-parent": [kineto(op(350, dur=10), op(355, "aten::add", dur=10))],
    "unfinished-events": [chrome(half("B", "open", 2), on_host("f", "a", 3, 97))],
    "unmatched-ends": [chrome(half("E", "lost", 1), on_host("f", "a", 3, 97))],
    "unknown-phase": [chrome(half("?", "odd", 5), on_host("f", "a", 3))],
    "loose-flows": [chrome(on_host("f", "a", 0, 5), half("s", "x", 90, id=3), half("f", "x", 95, id=3, bp="e"))],
    "trailing-bytes": [lambda folder: put(folder, document(good()) + b"[1, 2]")],
    "unknown-fields": [xplane(packed(1, packed(2, "/host:CPU") + packed(3, packed(4, number(1, 1) + number(77, 1)) + host_plane().lines[0])))],
    "light-window-unused": [_light_window_lost],
    "sidecar-unreadable": [several((f"h_1.{NOW_US}.pt.trace.json", document(good())), (f"h_1.{NOW_US}.stepscope.json", b"{"))],
    **{
        code: [noted(code)]
        for code in (
            "capture-failed", "cupti-failed", "second-profiler", "gpu-traced-once", "started-twice", "nothing-recorded", "no-nvtx",
            "disk-full", "folder-unwritable", "ring-failed", "windows-removed", "frames-left-out",
        )
    },
}  # fmt: skip
