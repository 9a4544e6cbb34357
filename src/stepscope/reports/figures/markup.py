"""HTML and SVG out of pieces: whatever comes from a profile is escaped here, and only here."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from stepscope.safe import safe

# Elements without an end.
_EMPTY = frozenset(
    ["br", "hr", "img", "input", "line", "link", "meta", "path", "rect", "circle", "polyline", "polygon"]
)


class Markup(str):
    """Text that is markup already."""

    __slots__ = ()


Content = str | Markup | None | Iterable["Content"]


def text(value: str) -> Markup:
    """Words as markup: what a browser, or a terminal showing the source, would act on is shown instead."""
    return value if isinstance(value, Markup) else Markup(escape(safe(value), quote=True))


def join(content: Content) -> Markup:
    """Pieces in a row. A plain string is words; only Markup is taken as it is."""
    if content is None:
        return Markup()
    if isinstance(content, str):
        return text(content)
    return Markup("".join(join(piece) for piece in content))


def lines(*words: str) -> Markup:
    """Words on lines of their own; what is empty is left out."""
    return Markup("\n".join(text(each) for each in words if each))


def tag(name: str, /, *content: Content, **attributes: str | float | bool | None) -> Markup:
    """An element; `class_` and `data_x` stand for attributes that are not Python names, None and False for none."""
    opening = name + "".join(_attribute(key, value) for key, value in attributes.items())
    if name in _EMPTY and not content:
        return Markup(f"<{opening}/>")
    return Markup(f"<{opening}>{join(content)}</{name}>")


def _attribute(key: str, value: str | float | bool | None) -> str:
    if value is None or value is False:
        return ""
    name = _SPELLINGS.get(key) or key.rstrip("_").replace("_", "-")
    if value is True:
        return f" {name}"
    return f' {name}="{_number(value) if isinstance(value, float) else text(str(value))}"'


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")


# SVG minds capitals.
_SPELLINGS = {"view_box": "viewBox", "preserve_aspect_ratio": "preserveAspectRatio"}
