"""Binary files that went through a text decoder, which puts U+FFFD in place of bytes that are not text."""

from __future__ import annotations

from stepscope.errors import UnreadableFile

_REPLACED = "\ufffd"
_LEAST = 4  # a few may be in names
_LEAST_SHARE = 0.01  # of the characters; a JSON document may quote some
_TEXT_CONTROLS = frozenset("\t\n\r\f")
_CUT = 3  # bytes of a character that the end of the head may cut off


def is_mangled(head: bytes) -> bool:
    """Whether bytes that cannot be text are valid UTF-8 all the same, full of replacement characters."""
    text = _decoded(head)
    if text is None or text.count(_REPLACED) < max(_LEAST, _LEAST_SHARE * len(text)):
        return False
    return any(letter < " " and letter not in _TEXT_CONTROLS for letter in text)


def _decoded(head: bytes) -> str | None:
    for end in range(len(head), max(-1, len(head) - _CUT - 1), -1):
        try:
            return head[:end].decode()
        except UnicodeDecodeError as error:
            if error.start < end - _CUT:
                return None
    return None


def refuse(path: str) -> UnreadableFile:
    """What happened to it, and what to do."""
    return UnreadableFile(
        f"{path} was decoded as text on its way here: other bytes are now U+FFFD (EF BF BD), and cannot be restored.",
        fix="Copy the original again as binary: open(…, 'rb'), response.content instead of response.text, scp or curl --output.",
    )
