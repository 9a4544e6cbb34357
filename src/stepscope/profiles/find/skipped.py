"""Why a file is not a profile: by its name where that suffices, else by its first bytes."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import IO

from stepscope.formats.not_a_profile import describe_bytes
from stepscope.formats.reader import Format
from stepscope.formats.registry import find_formats
from stepscope.lazy import dataclass, pattern

EXECUTION_TRACE = "an execution trace (operators and tensors, no times): it only completes the profile of the same process in its folder"
FROM_XPLANE = "made by XProf or TensorBoard from the xplane.pb"
NSYS_REPORT = "a report of Nsight Systems: export it with `nsys export --type sqlite FILE`"
HEAD_BYTES = 1 << 16


@dataclass(frozen=True)
class Verdict:
    """What a file seems to be: a profile of some format, or not, and why. Neither: look inside."""

    format_hint: str = ""
    reason: str = ""


LOOK_INSIDE = Verdict()
# Whatever else the name says.
_NEVER = (
    (
        pattern(r"^\.profile-empty$|\.profile-empty$"),
        "an empty marker that TensorFlow leaves beside its profiles",
    ),
    (pattern(r"^\."), "a hidden file"),
    (
        pattern(r"\.tmp(\.gz)?$|\.part$|\.partial$"),
        "left by a writer that died before it could rename the file",
    ),
    (pattern(r"\.sstable$|^cache_version\.txt$|^all_hosts\."), FROM_XPLANE),
    (
        pattern(
            r"\.(op_stats|hlo_proto|overview_page|input_pipeline|tensorflow_stats|framework_op_stats|kernel_stats"
            r"|memory_profile|memory_viewer|op_profile|pod_viewer|pod_stats|trace_viewer|tf_data_stats|roofline_model"
            r"|hlo_stats|inference_profile|dcn_collective_stats|smart_suggestion)(_v\d+)?(\.[a-z0-9_]+)*$"
        ),
        FROM_XPLANE,
    ),
    (pattern(r"\.et$|^execution_trace.*\.json(\.gz)?$|_et\.json(\.gz)?$"), EXECUTION_TRACE),
)
# Unless a format, which may come from a plug-in, has this suffix.
_OTHERS = (
    (pattern(r"\.(nsys-rep|qdrep)$"), NSYS_REPORT),
    (pattern(r"\.qdstrm$"), "a raw recording of Nsight Systems: open it there first, then export it"),
    (pattern(r"\.ncu-rep$"), "a report of Nsight Compute, which is not read"),
    (
        pattern(r"\.(pftrace|perfetto-trace|perfetto)(\.gz)?$"),
        "a Perfetto protobuf trace, which is not read",
    ),
    (
        pattern(r"\.(zip|tar|tgz|tar\.gz|zst|bz2|xz|7z|lz4)$"),
        "an archive: unpack it first",
    ),
)
_NO_PROFILE = pattern(
    r"\.(py|pyc|pyi|ipynb|sh|bat|c|cc|cpp|h|cu|cuh|rs|go|js|ts|css|html?|so|dll|dylib|exe|a|o|d|whl"
    r"|md|rst|txt|log|out|err|tex|pdf|docx?|xlsx?|csv|tsv|parquet|arrow|feather|jsonl|ya?ml|toml|ini|cfg|conf|lock|xml"
    r"|png|jpe?g|gif|svg|bmp|webp|mp4|avi|wav|mp3|flac|pt|pth|ckpt|safetensors|bin|npy|npz|h5|hdf5|onnx|tflite|index"
    r"|data-\d+-of-\d+|tfrecords?|mat|db|pid|lck)(\.gz)?$"
)


def by_name(name: str) -> Verdict:
    """The verdict by the name alone."""
    lower = name.lower()
    never = _reason(_NEVER, lower)
    if never:
        return Verdict(reason=never)
    if searched_by(lower) is not None:
        return LOOK_INSIDE
    found = _format_of(lower)
    if found is not None:
        return Verdict(found.name)
    other = _reason(_OTHERS, lower)
    if other:
        return Verdict(reason=other)
    ending = _NO_PROFILE.search(lower)
    return Verdict(reason=f"not a profile, by its name ({ending.group()})") if ending else LOOK_INSIDE


def _reason(shapes: Iterable[tuple[re.Pattern[str], str]], name: str) -> str:
    return next((reason for shape, reason in shapes if shape.search(name)), "")


def _format_of(name: str) -> Format | None:
    """The format with the longest suffix that the name has: *.pt.trace.json is also *.trace.json."""
    plain = name.removesuffix(".gz")
    fitting = [
        (suffix, each) for each in find_formats() for suffix in each.suffixes if plain.endswith(suffix)
    ]
    return max(fitting, key=lambda pair: len(pair[0]))[1] if fitting else None


def searched_by(name: str) -> Format | None:
    """The format that searches files of this name, whose first bytes do not suffice."""
    return next(
        (each for each in find_formats() if each.searched_names and each.searched_names in name), None
    )


def by_search(found: Format, file: IO[bytes], size: int) -> Verdict:
    """The verdict by all of the file."""
    reason = found.search(file, size) if found.search is not None else ""
    return Verdict(reason=reason) if reason else Verdict(found.name)


def by_content(head: bytes) -> Verdict:
    """The verdict by the first unpacked bytes."""
    text = head.lstrip(b"\xef\xbb\xbf \t\r\n")
    ours = _OURS.match(text)
    if ours is not None:
        return Verdict(reason=f"output of stepscope (a {ours[1].decode()}), not a profile")
    found = next((each for each in find_formats() if each.holds(head)), None)
    if found is not None:
        return Verdict(found.name)
    return Verdict(reason=_why_not_json(text) if text[:1] in (b"{", b"[") else describe_bytes(head))


_OURS = pattern(rb'\{\s*"schema"\s*:\s*"stepscope\.(\w+)/')


def _why_not_json(text: bytes) -> str:
    is_graph = b'"nodes"' in text and (b'"ctrl_deps"' in text or b"chakra" in text or b'"start_ts"' in text)
    return EXECUTION_TRACE if is_graph else "JSON without traceEvents, not a trace"
