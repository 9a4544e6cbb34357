"""Names come from untrusted files: what a terminal or a spreadsheet would obey is shown instead."""

from __future__ import annotations

_PLAIN = {0x09: "\\t", 0x0A: "\\n", 0x0D: "\\r"}
# Controls (C0, DEL, C1), and characters that are invisible or turn the direction of writing.
_RANGES = (
    (0x00, 0x1F),
    (0x7F, 0x9F),
    (0xAD, 0xAD),
    (0x061C, 0x061C),
    (0x180E, 0x180E),
    (0x200B, 0x200F),
    (0x2028, 0x202E),
    (0x2060, 0x206F),
    (0xD800, 0xDFFF),
    (0xFEFF, 0xFEFF),
    (0xFFF9, 0xFFFB),
    (0xE0000, 0xE007F),
)
# With which a spreadsheet takes a cell of a CSV file for a formula; some also take the wide forms of these.
FORMULA_STARTS = "=+-@\t\r\n＝＋－＠"


def _shown(code: int) -> str:
    if code in _PLAIN:
        return _PLAIN[code]
    if 0xDC80 <= code <= 0xDCFF:  # a byte of a file's name that is no UTF-8
        code -= 0xDC00
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


_TABLE = {code: _shown(code) for first, last in _RANGES for code in range(first, last + 1)}
_KEEPING_LINES = {code: text for code, text in _TABLE.items() if code not in (0x09, 0x0A)}


def safe(text: object) -> str:
    """The text on one line, with escapes for everything a terminal would act on."""
    return str(text).translate(_TABLE)


def safe_lines(text: object) -> str:
    """The same for text of several lines: line ends and tabs stay."""
    return str(text).translate(_KEEPING_LINES)


def safe_cell(text: str) -> str:
    """Text for a cell of a CSV file: what a spreadsheet would run as a formula begins with an apostrophe, which it hides."""
    return f"'{text}" if text.startswith(tuple(FORMULA_STARTS)) else text


def readable(path: str) -> str:
    """The path as text that can be written anywhere: bytes of a name that are not UTF-8 become escapes."""
    return path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
