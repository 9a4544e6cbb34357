"""The style of pages and figures: colours from the parts, rules from the files beside this one."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache
from importlib.resources import files

from stepscope.reports.wording.parts import PARTS

# Light, dark.
_PRECISIONS = {
    "fp64": ("#8f1d1d", "#d05a5a"),
    "fp32": ("#e8710a", "#f68d32"),
    "tf32": ("#c9a400", "#e5c02d"),
    "fp16": ("#0f96a8", "#2fb9cb"),
    "bf16": ("#2f6fde", "#5b93f5"),
    "fp8": ("#7048c6", "#9d7bea"),
    "fp4": ("#c2378b", "#e364b1"),
    "int8": ("#5f9411", "#8abf3a"),
    "int4": ("#2f9e6e", "#4cc38f"),
    "none": ("#c3c9d1", "#59616c"),
    "unknown": ("#98a0ab", "#747c87"),
}
_OTHERS = {
    "paper": ("#ffffff", "#14171c"),
    "card": ("#f6f7f9", "#1c2129"),
    "ink": ("#1b1f26", "#e8eaee"),
    "faint": ("#667080", "#99a3b1"),
    "rule": ("#e1e5ea", "#2c333d"),
    "accent": ("#2b6bda", "#5b93f5"),
    "on-accent": ("#ffffff", "#0b0d10"),
    "error": ("#c92a2a", "#ff6b6b"),
    "warning": ("#ae5900", "#ffa94d"),
    "good": ("#1e7d34", "#5bc878"),
    "m-allocated": ("#2f6fde", "#5b93f5"),
    "m-reserved": ("#98a0ab", "#747c87"),
}


@cache
def asset(name: str) -> str:
    """The text of a file in `assets`."""
    return (files("stepscope.reports") / "assets" / name).read_text("utf-8")


@cache
def theme_style() -> str:
    """All colours by their names, light and dark, for whatever is of the class stepscope."""
    return "\n".join(_themes())


@cache
def figure_style() -> str:
    """What a figure needs, on a page or alone."""
    return "\n".join([*_themes(), *_classes(), asset("figure.css")])


@cache
def content_style() -> str:
    """What the content of a page needs, inside any page."""
    return "\n".join([figure_style(), *map(_scoped, asset("content.css").splitlines())])


@cache
def page_style() -> str:
    """What a page of our own needs."""
    return "\n".join([content_style(), asset("page.css")])


def _scoped(line: str) -> str:
    """The rule of the line, for elements below .stepscope alone."""
    selectors, brace, rest = line.partition(" {")
    if not brace or line.startswith("/*"):
        return line
    return ", ".join(f".stepscope {selector.strip()}" for selector in selectors.split(",")) + brace + rest


def _themes() -> Iterator[str]:
    light, dark = (";".join(f"--{name}:{pair[i]}" for name, pair in _pairs().items()) for i in (0, 1))
    yield f".stepscope,svg.alone{{{light}}}"
    yield f"@media (prefers-color-scheme:dark){{.stepscope:not([data-theme=light]),svg.alone{{{dark}}}}}"
    yield f".stepscope[data-theme=dark]{{{dark}}}"
    yield f"@media print{{.stepscope{{{light}}}}}"


def _classes() -> Iterator[str]:
    for name in _pairs():
        if name[:2] in ("p-", "q-", "m-"):
            yield f".stepscope .{name},svg.alone .{name}{{fill:var(--{name});background:var(--{name});stroke:var(--{name})}}"


def _pairs() -> dict[str, tuple[str, str]]:
    parts = {f"p-{name}": (part.light, part.dark) for name, part in PARTS.items()}
    return {**_OTHERS, **parts, **{f"q-{name}": pair for name, pair in _PRECISIONS.items()}}
