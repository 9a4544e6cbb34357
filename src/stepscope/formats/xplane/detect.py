"""Whether bytes begin as an XSpace does."""

from __future__ import annotations

_PLANE, _TEXTS = 0x0A, (0x12, 0x1A, 0x22)  # planes; errors, warnings, hostnames
# The wire types of a plane's fields.
_FORMS = {1: 0, 2: 2, 3: 2, 4: 2, 5: 2, 6: 2}
_ENOUGH_FIELDS = 1000
_NAMES = (b"/host:", b"/device:", b"Task Environment")  # of planes
SUFFIX = ".xplane.pb"


def matches(head: bytes, name: str) -> bool:
    """A plane that has a plane's fields and fills its length, perhaps after texts. With a typical name, less is required.

    Little else is certain: a newline and a brace, with which JSON may begin, are also a plane of 123 bytes.
    """
    if not head or head[0] not in (_PLANE, *_TEXTS):
        return False
    if name.endswith((SUFFIX, f"{SUFFIX}.gz")):
        return True
    at = 0
    while at < len(head) and head[at] in _TEXTS:
        size, at = _varint(head, at + 1)
        at += size
    if at >= len(head) or head[at] != _PLANE:
        return at == len(head) > 2
    size, at = _varint(head, at + 1)
    return size > 0 and _is_plane(head, at, at + size)


def is_inside(head: bytes) -> bool:
    """Whether a file of any name is one: it also has to name a plane that profilers write."""
    return head[:1] == b"\x0a" and any(name in head for name in _NAMES) and matches(head, "")


def _is_plane(head: bytes, at: int, stop: int) -> bool:
    seen = 0
    while at < min(stop, len(head)) and seen < _ENOUGH_FIELDS:
        key, at = _varint(head, at)
        if _FORMS.get(key >> 3) != key & 7:
            return False
        size, at = _varint(head, at)
        at += size if key & 7 == 2 else 0
        seen += 1
        if at > stop:
            return False
    return seen > 0 and (stop >= len(head) or seen == _ENOUGH_FIELDS or head[stop] in (_PLANE, *_TEXTS))


def _varint(data: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while at < len(data) and shift < 70:
        value |= (data[at] & 127) << shift
        shift += 7
        at += 1
        if data[at - 1] < 128:
            break
    return value, at
