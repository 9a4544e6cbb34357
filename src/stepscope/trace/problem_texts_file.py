"""Texts for what is wrong with a file: cut, damaged, or written by someone who does not keep to the format."""

from __future__ import annotations

from stepscope.trace.texts import Texts

_AGAIN = "Copy it again from where it was recorded; if it is damaged there, record again."
_WRITER = "A newer version of the profiler that wrote it may do better; nothing else is needed."

FILE: dict[str, Texts] = {
    "truncated": Texts(
        "error",
        "The file is cut short",
        "The job ended while it wrote, the disk was full, or a copy broke off. All complete events are kept.",
        _AGAIN,
    ),
    "damaged": Texts(
        "error", "Parts of the file are damaged", "A copy or a disk damaged it. The rest is read.", _AGAIN
    ),
    "damaged-gzip": Texts(
        "error", "The packed file is damaged", "It is cut, or followed by something else.", _AGAIN
    ),
    "damaged-message": Texts("error", "Messages break off", "A copy or a disk damaged the file.", _AGAIN),
    "damaged-events": Texts(
        "warning", "Some events are damaged", "A copy or a disk damaged the file.", _AGAIN
    ),
    "damaged-program": Texts(
        "warning",
        "The code of compiled programs is damaged",
        "A copy or a disk damaged the file. Ops, FLOPs and memory of the instructions that cannot be read are missing.",
        _AGAIN,
    ),
    "bad-header": Texts(
        "warning",
        "The header says what cannot be",
        "It was edited or damaged. The figures in question are left out.",
        _AGAIN,
    ),
    "too-many-devices": Texts(
        "warning",
        "More devices than any process drives",
        "The file is damaged, or several recordings were put into one. The busiest devices count.",
        _AGAIN,
    ),
    "lost-records": Texts(
        "error", "Bytes of an event file are not records", "A copy or a disk damaged it.", _AGAIN
    ),
    "crc-mismatch": Texts(
        "warning", "Records do not match their checksum", "A copy or a disk damaged the file.", _AGAIN
    ),
    "unreadable": Texts(
        "error", "The file could not be read to its end", "The disk or the network failed.", _AGAIN
    ),
    "unreadable-file": Texts(
        "error",
        "Files of the run could not be read",
        "They are empty, cut before their first event, or no profiles. The other ranks are loaded.",
        "Copy or record them again.",
    ),
    "gzip-bomb": Texts(
        "error", "The file unpacks to far more than any profile", "It was made to do harm.", "Do not use it."
    ),
    "file-changed": Texts(
        "warning",
        "The file changed while it was read",
        "The profiler still writes it.",
        "Try again when it has finished.",
    ),
    "cache-unwritable": Texts(
        "warning",
        "The tables could not be cached",
        "The cache folder is read-only, full or not private; the next open reads the profile again.",
        "Close the folder to other users (chmod 700), or set STEPSCOPE_CACHE to a folder of your own that can be written.",
    ),
    "bad-events": Texts(
        "error",
        "Events are not valid JSON",
        "The writer did not escape names, or the file is damaged. Everything around them is read.",
        _WRITER,
    ),
    "bad-time": Texts("warning", "Events at impossible times", "Their times are damaged.", _AGAIN),
    "bad-allocations": Texts(
        "warning", "Allocations that cannot be", "Their time or size is damaged.", _AGAIN
    ),
    "time-out-of-range": Texts("warning", "Events far outside of time", "Their times are damaged.", _WRITER),
    "untimed-events": Texts(
        "warning", "Events without a time", "The writer left it out, or it is damaged.", _WRITER
    ),
    "negative-duration": Texts(
        "warning", "Events end before they begin", "The recorder's clock jumped.", _WRITER
    ),
    "no-duration": Texts("warning", "Events without a duration", "The writer left it out.", _WRITER),
    "no-phase": Texts(
        "warning", "Events that do not say what they are", "The writer left out their phase.", _WRITER
    ),
    "edited-export": Texts(
        "warning",
        "An export of ours was edited by hand",
        "Parts no longer have our form.",
        "Export it again.",
    ),
    "sidecar-unreadable": Texts(
        "info",
        "The sidecar of the trace cannot be read",
        "It was edited, or a copy damaged it.",
        "Copy it again, or delete it.",
    ),
    "broken-text": Texts(
        "info", "Names that are not valid UTF-8", "The writer cut or copied them bytewise.", _WRITER
    ),
    "unescaped-quotes": Texts(
        "info", "Names with quotes that were not escaped", "PyTorch escapes them since mid-2026.", _WRITER
    ),
    "unnamed-events": Texts(
        "info", "Events without a name", "The writer left it out, or it is damaged.", _WRITER
    ),
    "outlives-parent": Texts(
        "info",
        "Events that outlive what encloses them",
        "A clock was rounded differently; old PyTorch does it.",
        _WRITER,
    ),
    "unfinished-events": Texts(
        "info", "Events that were never ended", "They ran when the recording stopped.", _WRITER
    ),
    "unmatched-ends": Texts("info", "Ends without a beginning", "They began before the recording.", _WRITER),
    "loose-flows": Texts(
        "info", "Arrows without an event", "What they pointed to was not recorded.", _WRITER
    ),
    "large-member": Texts("info", "Something large beside the events", "It is not part of a trace.", _WRITER),
    "trailing-bytes": Texts(
        "info",
        "Something follows the end of the trace",
        "Two writers used one file.",
        "Give each its own file.",
    ),
    "too-many-events": Texts(
        "warning",
        "More events than such a file can hold",
        "Very many runs were traced, or the file is damaged.",
        "Trace fewer runs into one file.",
    ),
    "unknown-fields": Texts(
        "info",
        "Fields that this version does not know",
        "The file is newer than stepscope.",
        "Update stepscope.",
    ),
    "unknown-phase": Texts(
        "info", "Events of an unknown phase", "The file is newer than stepscope.", "Update stepscope."
    ),
    "crc-unchecked": Texts(
        "info",
        "Checksums were not compared",
        "Without compiled hot loops that takes too long.",
        "Install a C compiler, and stepscope again.",
    ),
}
