"""Why a file is not a profile: by its name where that suffices, else by its first bytes."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import IO

from stepscope.formats.not_a_profile import describe_bytes
from stepscope.ring_layout import ENDING as RING_ENDING
from stepscope.ring_layout import MAGIC as RING_MAGIC

PICKLE = "a pickle, perhaps a memory snapshot: pickles can run code, so it is never opened"
EXECUTION_TRACE = "an execution trace (operators and tensors, no times), not a profile"
FROM_XPLANE = "made by XProf or TensorBoard from the xplane.pb"
HEAD_BYTES = 1 << 16
RECORDS_LOOKED_AT = 10_000


@dataclass(frozen=True)
class Verdict:
    """What a file seems to be: a profile of some format, or not, and why. Neither: look inside."""

    format_hint: str = ""
    reason: str = ""


LOOK_INSIDE = Verdict()
_PROFILES = (
    (re.compile(r"\.xplane\.pb(\.gz)?$"), "xplane"),
    (re.compile(r"\.pt\.trace\.json(\.gz)?$"), "kineto"),
    (re.compile(re.escape(RING_ENDING) + r"(\.gz)?$"), "ring"),
    (re.compile(r"\.trace\.json(\.gz)?$|\.chrome_trace(\.json)?(\.gz)?$"), "chrome"),
)
_OTHERS = (
    (
        re.compile(r"^\.profile-empty$|\.profile-empty$"),
        "an empty marker that TensorFlow leaves beside its profiles",
    ),
    (re.compile(r"^\."), "a hidden file"),
    (
        re.compile(r"\.tmp(\.gz)?$|\.part$|\.partial$"),
        "left by a writer that died before it could rename the file",
    ),
    (re.compile(r"\.sstable$|^cache_version\.txt$|^all_hosts\."), FROM_XPLANE),
    (
        re.compile(
            r"\.(op_stats|hlo_proto|overview_page|input_pipeline|tensorflow_stats|framework_op_stats|kernel_stats"
            r"|memory_profile|memory_viewer|op_profile|pod_viewer|pod_stats|trace_viewer|tf_data_stats|roofline_model"
            r"|hlo_stats|inference_profile|dcn_collective_stats|smart_suggestion)(_v\d+)?(\.[a-z0-9_]+)*$"
        ),
        FROM_XPLANE,
    ),
    (re.compile(r"\.(pkl|pickle)(\.gz)?$"), PICKLE),
    (re.compile(r"\.et$|^execution_trace.*\.json(\.gz)?$|_et\.json(\.gz)?$"), EXECUTION_TRACE),
    (re.compile(r"\.(nsys-rep|qdrep|qdstrm|ncu-rep|sqlite)$"), "an Nsight report, which is not read"),
    (
        re.compile(r"\.(pftrace|perfetto-trace|perfetto)(\.gz)?$"),
        "a Perfetto protobuf trace, which is not read",
    ),
    (
        re.compile(r"\.(zip|tar|tgz|tar\.gz|zst|bz2|xz|7z|lz4)$"),
        "an archive: unpack it first",
    ),
)
_NO_PROFILE = re.compile(
    r"\.(py|pyc|pyi|ipynb|sh|bat|c|cc|cpp|h|cu|cuh|rs|go|js|ts|css|html?|so|dll|dylib|exe|a|o|d|whl"
    r"|md|rst|txt|log|out|err|tex|pdf|docx?|xlsx?|csv|tsv|parquet|arrow|feather|jsonl|ya?ml|toml|ini|cfg|conf|lock|xml"
    r"|png|jpe?g|gif|svg|bmp|webp|mp4|avi|wav|mp3|flac|pt|pth|ckpt|safetensors|bin|npy|npz|h5|hdf5|onnx|tflite|index"
    r"|data-\d+-of-\d+|tfrecords?|mat|db|pid|lck)(\.gz)?$"
)


def by_name(name: str) -> Verdict:
    """The verdict by the name alone."""
    lower = name.lower()
    for shape, reason in _OTHERS:
        if shape.search(lower):
            return Verdict(reason=reason)
    if is_event_file(lower):
        return LOOK_INSIDE
    for shape, hint in _PROFILES:
        if shape.search(lower):
            return Verdict(hint)
    ending = _NO_PROFILE.search(lower)
    return Verdict(reason=f"not a profile, by its name ({ending.group()})") if ending else LOOK_INSIDE


def is_event_file(name: str) -> bool:
    """Whether TensorBoard's writers would have given it this name."""
    return "tfevents." in name


def by_content(head: bytes) -> Verdict:
    """The verdict by the first unpacked bytes."""
    if head.startswith(RING_MAGIC):
        return Verdict("ring")
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    if text[:1] in (b"{", b"["):
        return _json(text)
    if head[:1] == b"\x0a" and (b"/host:" in head or b"/device:" in head or b"Task Environment" in head):
        return Verdict("xplane")
    return Verdict(reason=describe_bytes(head))


_KINETO_KEYS = (b'"deviceProperties"', b'"schemaVersion"', b'"distributedInfo"', b'"baseTimeNanoseconds"')


_OURS = re.compile(rb'\{\s*"schema"\s*:\s*"stepscope\.(\w+)/')


def _json(text: bytes) -> Verdict:
    ours = _OURS.match(text)
    if ours is not None:
        return Verdict(reason=f"output of stepscope (a {ours[1].decode()}), not a profile")
    if any(key in text for key in _KINETO_KEYS):
        return Verdict("kineto")
    if (
        b'"traceEvents"' in text
        or b'"displayTimeUnit"' in text
        or (b'"ph"' in text and (b'"ts"' in text or b'"name"' in text))
    ):
        return Verdict("chrome")
    if b'"nodes"' in text and (b'"ctrl_deps"' in text or b"chakra" in text or b'"start_ts"' in text):
        return Verdict(reason=EXECUTION_TRACE)
    return Verdict(reason="JSON without traceEvents, not a trace")


def by_records(file: IO[bytes], size: int) -> Verdict:
    """TensorBoard event files hold scalars; only those of TensorFlow 1 may hold a profile, one record of many."""
    at = 0
    for _ in range(RECORDS_LOOKED_AT):
        if at + 12 > size:
            return Verdict(reason="a TensorBoard event file without a profile (no RunMetadata)")
        file.seek(at)
        head = file.read(44)
        length = int.from_bytes(head[:8], "little")
        if _is_run_metadata(head[12 : 12 + length]):
            return Verdict("tf_events")
        at += 16 + length
    return Verdict(
        reason=f"a TensorBoard event file without a profile in its first {RECORDS_LOOKED_AT:,} records"
    )


def _is_run_metadata(event: bytes) -> bool:
    """An event begins with its wall time and step; field 8 is a tagged RunMetadata."""
    at = 9 if event[:1] == b"\x09" else 0
    if event[at : at + 1] == b"\x10":
        at += 1
        while at < len(event) and event[at] & 0x80:
            at += 1
        at += 1
    return event[at : at + 1] == b"\x42"
